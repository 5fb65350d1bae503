#include "support/output_dir.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "support/error.h"
#include "support/text.h"

namespace tc {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void fail(const std::string& what, const fs::path& path) {
  throw Error("TC0601", ExitCode::Io, what + " " + printable(path.string()) + ": " + std::strerror(errno));
}

bool read_file(const fs::path& path, std::string& bytes) {
  std::ifstream f(path, std::ios::binary);
  if (!f) return false;
  bytes.assign(std::istreambuf_iterator<char>(f), {});
  return true;
}

bool same_bytes(const fs::path& path, const std::string& bytes) {
  std::error_code ec;
  if (fs::is_symlink(path, ec) || fs::file_size(path, ec) != bytes.size() || ec) return false;
  std::string old;
  return read_file(path, old) && old == bytes;
}

// A new file beside the target, synced.
void write_temporary(const fs::path& path, const std::string& bytes) {
  const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0666);
  if (fd < 0) fail("cannot create", path);
  size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t n = ::write(fd, bytes.data() + done, bytes.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) {
      const int why = errno;
      ::close(fd);
      ::unlink(path.c_str());
      errno = why;
      fail("cannot write", path);
    }
    done += size_t(n);
  }
  if (::close(fd) != 0) fail("cannot write", path);
}

// The "files" of the manifest that lies in dir; empty if there is none or it is not ours.
std::set<std::string> listed_files(const fs::path& dir) {
  std::set<std::string> files;
  std::string text;
  if (!read_file(dir / "manifest.json", text) || text.size() > (size_t(64) << 20)) return files;
  const auto json = nlohmann::json::parse(text, nullptr, false);
  if (!json.is_object() || !json.contains("files") || !json["files"].is_array() ||
      json.value("generator", "") != "tc-emit")
    return files;
  for (const auto& f : json["files"])
    if (f.is_string()) {
      const std::string p = f.get<std::string>();
      const bool plain = !p.empty() && p[0] != '/' && p.find("..") == std::string::npos;
      if (plain) files.insert(p);
    }
  return files;
}

}  // namespace

WriteReport write_package(const std::string& dir_text, const std::vector<OutputFile>& files) {
  const fs::path dir(dir_text);
  std::error_code ec;
  fs::create_directories(dir, ec);
  if (!fs::is_directory(dir, ec)) {
    errno = ENOTDIR;
    fail("cannot make the folder", dir);
  }
  std::set<std::string> stale = listed_files(dir);
  WriteReport report;
  std::vector<const OutputFile*> order;
  for (const OutputFile& f : files) order.push_back(&f);
  std::stable_partition(order.begin(), order.end(), [](const OutputFile* f) { return f->path != "manifest.json"; });

  std::vector<std::pair<fs::path, fs::path>> renames;
  auto discard = [&] {
    for (const auto& [from, to] : renames) ::unlink(from.c_str());
  };
  try {
    for (const OutputFile* f : order) {
      stale.erase(f->path);
      const fs::path target = dir / f->path;
      if (same_bytes(target, f->bytes)) {
        report.unchanged.push_back(f->path);
        continue;
      }
      fs::create_directories(target.parent_path(), ec);
      if (fs::is_symlink(target.parent_path(), ec) && target.parent_path() != dir) {
        errno = ELOOP;
        fail("will not write through the link", target.parent_path());
      }
      const fs::path temporary = target.string() + ".tc-new";
      write_temporary(temporary, f->bytes);
      renames.emplace_back(temporary, target);
      report.written.push_back(f->path);
    }
  } catch (...) {
    discard();
    throw;
  }
  for (const auto& [from, to] : renames)
    if (::rename(from.c_str(), to.c_str()) != 0) {
      const int why = errno;
      discard();
      errno = why;
      fail("cannot replace", to);
    }
  for (const std::string& p : stale)
    if (fs::remove(dir / p, ec)) report.removed.push_back(p);
  return report;
}

std::vector<std::string> compare_package(const std::string& dir_text, const std::vector<OutputFile>& files) {
  const fs::path dir(dir_text);
  std::set<std::string> stale = listed_files(dir);
  std::vector<std::string> differences;
  std::error_code ec;
  for (const OutputFile& f : files) {
    stale.erase(f.path);
    if (!fs::exists(dir / f.path, ec))
      differences.push_back("missing " + f.path);
    else if (!same_bytes(dir / f.path, f.bytes))
      differences.push_back("differs " + f.path);
  }
  for (const std::string& p : stale) differences.push_back("stale " + p);
  return differences;
}

}  // namespace tc
