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

namespace {

// A device or a pipe is written to; a link stays, and what it names is replaced.
fs::path place_of(const fs::path& path) {
  std::error_code ec;
  const fs::path named = fs::is_symlink(path, ec) ? fs::canonical(path, ec) : path;
  return ec ? path : named;
}

bool is_stream(const fs::path& path) {
  std::error_code ec;
  const fs::file_status s = fs::status(path, ec);
  return fs::exists(s) && !fs::is_regular_file(s) && !fs::is_directory(s);
}

}  // namespace

NewFile::NewFile(const fs::path& path, const std::function<void(std::ostream&)>& fill)
    : path_(is_stream(path) ? path : place_of(path)),
      written_(is_stream(path_) ? fs::path() : fs::path(path_.string() + ".tc-new")) {
  errno = 0;
  std::ofstream f(written_.empty() ? path_ : written_, std::ios::binary);
  try {
    fill(f);
  } catch (...) {
    f.close();
    remove();
    throw;
  }
  f.close();
  if (f) return;
  remove();
  cannot_write(path);
}

NewFile::NewFile(const fs::path& path, const std::string& bytes)
    : NewFile(path, [&](std::ostream& f) { f << bytes; }) {}

NewFile::~NewFile() { remove(); }

void NewFile::remove() const {
  std::error_code ec;
  if (!written_.empty()) fs::remove(written_, ec);
}

void NewFile::put_in_place() const {
  if (!written_.empty() && ::rename(written_.c_str(), path_.c_str()) != 0) cannot_write(path_);
}

}  // namespace tc
