#include "support/read_file.h"

#include <fstream>
#include <iterator>

#include "support/error.h"
#include "support/text.h"

namespace tc {

std::optional<std::string> try_read_file(const std::filesystem::path& path) try {
  std::ifstream in(path, std::ios::binary);
  if (!in) return {};
  return std::string(std::istreambuf_iterator<char>(in), {});
} catch (const std::ios_base::failure&) {  // a folder can be opened
  return {};
}

std::string read_file(const std::filesystem::path& path) {
  std::optional<std::string> bytes = try_read_file(path);
  if (!bytes) throw Error("TC0601", ExitCode::Io, "cannot read " + printable(path.string()));
  return std::move(*bytes);
}

}  // namespace tc
