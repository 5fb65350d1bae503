#include <cstdlib>
#include <string>

#include "generated_tests/fuzz/targets.h"
#include "generated_tests/fuzz/wire.h"
#include "importer/import.h"
#include "ir/verify.h"

namespace tc::fuzz {
namespace {

/// A model with a weight of two floats that lies where the lines say.
std::string with_external_data(const std::string& lines) {
  static const char* const keys[] = {"location", "offset", "length", "checksum"};
  std::string entries, rest = lines;
  for (const char* key : keys) {
    const size_t end = rest.find('\n');
    entries += bytes(13, bytes(1, key) + bytes(2, rest.substr(0, end)));
    if (end == std::string::npos) break;
    rest = rest.substr(end + 1);
  }
  const std::string weight = number(1, 2) + number(2, 1) + bytes(8, "w") + entries + number(14, 1);
  const std::string node = bytes(1, "x") + bytes(1, "w") + bytes(2, "y") + bytes(4, "Add");
  const std::string graph =
      bytes(1, node) + bytes(2, "g") + bytes(5, weight) + bytes(11, port("x")) + bytes(12, port("y"));
  return number(1, 8) + bytes(7, graph) + bytes(8, number(2, 17));
}

}  // namespace

void import_bytes(const uint8_t* data, size_t size) {
  static const Folder folder;
  if (size == 0) return;
  folder.write("weights.bin", std::string(64, '\1'));
  const std::string rest(reinterpret_cast<const char*>(data) + 1, size - 1);
  const std::string path = data[0] % 3 == 1   ? folder.write("model.onnxtxt", rest)
                           : data[0] % 3 == 0 ? folder.write("model.onnx", rest)
                                              : folder.write("model.onnx", with_external_data(rest));
  ImportOptions options;
  options.max_tensor_bytes = 16 << 20;
  options.max_nodes = 2000;
  Diagnostics problems;
  const Graph graph = import_model(path, options, problems);
  for (const Diagnostic& d : problems.list())
    for (const char c : d.render())
      if ((c < ' ' && c != '\n') || c == 127) std::abort();  // a message that a terminal would obey
  if (!problems.has_errors()) verify(graph, false);          // shape inference of ONNX may leave types open
}

}  // namespace tc::fuzz
