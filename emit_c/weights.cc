#include "emit_c/weights.h"

#include <algorithm>
#include <cstring>

#include "emit_c/source_writer.h"
#include "support/xxh64.h"
#include "templates/text.h"

namespace tc {
namespace {

constexpr int64_t kHeaderBytes = 64;

std::string blob_header(uint64_t bytes, uint64_t layout_id, uint64_t content) {
  const uint32_t order = 0x01020304, version = 1;
  std::string header(size_t(kHeaderBytes), '\0');
  std::memcpy(header.data(), "TCWEIGHT", 8);
  std::memcpy(header.data() + 8, &order, 4);
  std::memcpy(header.data() + 12, &version, 4);
  std::memcpy(header.data() + 16, &bytes, 8);
  std::memcpy(header.data() + 24, &layout_id, 8);
  std::memcpy(header.data() + 32, &content, 8);
  return header;
}

// Gives what stands behind the header one part after another, and hashes it.
class Content {
 public:
  explicit Content(const TakesPart& take) : take_(take) {}
  void add(std::string_view part) {
    hash_.add(part);
    if (!part.empty()) take_(at_, part);
    at_ += int64_t(part.size());
  }
  void zeros_until(int64_t offset) {
    check(offset >= at_, "weights lie behind each other");
    const std::string zeros(size_t(std::min<int64_t>(offset - at_, 4096)), '\0');
    while (at_ < offset) add(std::string_view(zeros).substr(0, size_t(offset - at_)));
  }
  uint64_t hash() const { return hash_.value(); }

 private:
  const TakesPart& take_;
  Xxh64 hash_;
  int64_t at_ = kHeaderBytes;
};

}  // namespace

OutputFile weights_file(const Program& p, const ProgramNames& n,
                        const std::function<void(const std::string&)>& progress) {
  const auto parts = [weights = p.weights, bytes = p.weights_bytes, layout = p.weights_layout,
                      progress](const TakesPart& take) {
    Content content(take);
    const std::string number = "/" + to_text(int64_t(weights.size()));
    for (size_t i = 0; i < weights.size(); i++) {
      if (progress) progress("weights " + to_text(int64_t(i + 1)) + number);
      const Constant data = data_of(weights[i]);
      check(data->num_bytes == weights[i].data->num_bytes, "a packed weight has the size that was planned");
      content.zeros_until(weights[i].offset);
      content.add({reinterpret_cast<const char*>(data->bytes.get()), data->num_bytes});
    }
    content.zeros_until(bytes);
    take(0, blob_header(uint64_t(bytes), layout, content.hash()));
  };
  return {n.lower + "_weights.bin", "", parts};
}

std::string weights_assembly(const std::string& x) {
  return std::string(kLicenseLine) + "\n" + fill(support_text("weights.S.in"), {{"name", x}});
}

std::string map_include(const Program& p) { return p.external_weights ? "#include \"tc_map.h\"\n" : ""; }

std::string linked_weights(const Program& p, const ProgramNames& n) {
  if (p.external_weights) return "";
  const std::string& x = n.lower;
  return "#ifdef __cplusplus\nextern \"C\" const unsigned char " + x +
         "_weights_blob[];\n#else\nextern const unsigned char " + x + "_weights_blob[];\n#endif\n\nconst void *" + x +
         "_weights(void) { return " + x + "_weights_blob; }\n\n";
}

std::vector<Hole> weights_holes(const Program& p, const ProgramNames& n, const std::string& between) {
  const bool linked = !p.external_weights;
  const auto text = [&n](std::string_view name) { return fill(support_text(name), {{"name", n.lower}}); };
  return {{"weights_source", linked ? between + n.lower + "_weights.S" : ""},
          {"weights_properties", text(linked ? "weights_linked.cmake.in" : "weights_external.cmake.in")},
          {"weights_beside", linked ? "" : text("weights_beside.cmake.in")}};
}

std::string map_functions(const Program& p, const ProgramNames& n) {
  if (!p.external_weights) return "";
  const std::string &x = n.lower, &u = n.upper;
  const std::string bytes = u + "_WEIGHTS_BYTES";
  return x + "_status " + x + "_map_weights(const char *path, const void **weights)\n{\n" +
         "  if (!path || !weights) return " + u + "_E_ARG;\n" + "  switch (tc_map(path, " + bytes + ", " + u +
         "_ALIGN, weights)) {\n" + "    case TC_MAP_OK: break;\n" + "    case TC_MAP_UNREADABLE: return " + u +
         "_E_FILE;\n" + "    case TC_MAP_SIZE: return " + u + "_E_WEIGHTS;\n" + "    case TC_MAP_MEMORY: return " + u +
         "_E_MEMORY;\n  }\n" + "  if (fits(*weights, " + bytes + ")) return " + u + "_OK;\n" + "  tc_unmap(*weights, " +
         bytes + ");\n  *weights = NULL;\n  return " + u + "_E_WEIGHTS;\n}\n\n" + "void " + x +
         "_unmap_weights(const void *weights) { tc_unmap(weights, " + bytes + "); }\n\n";
}

}  // namespace tc
