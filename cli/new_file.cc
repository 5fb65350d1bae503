#include "cli/new_file.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>

#include "support/error.h"
#include "support/text.h"

namespace tc {
namespace fs = std::filesystem;

void cannot_write(const fs::path& path) {
  throw Error("TC0601", ExitCode::Io, "cannot write " + printable(path.string()) + ": " + std::strerror(errno));
}

NewFile::NewFile(const fs::path& path, const std::function<void(std::ostream&)>& fill)
    : path_(path), written_(path.string() + ".tc-new") {
  errno = 0;
  std::ofstream f(written_, std::ios::binary);
  fill(f);
  f.close();
  if (f) return;
  std::error_code ec;
  fs::remove(written_, ec);
  cannot_write(path_);
}

NewFile::NewFile(const fs::path& path, const std::string& bytes)
    : NewFile(path, [&](std::ostream& f) { f << bytes; }) {}

NewFile::~NewFile() {
  std::error_code ec;
  fs::remove(written_, ec);
}

void NewFile::put_in_place() const {
  if (::rename(written_.c_str(), path_.c_str()) != 0) cannot_write(path_);
}

}  // namespace tc
