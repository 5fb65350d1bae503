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
#include <utility>

#include "support/error.h"
#include "support/interrupt.h"
#include "support/read_file.h"
#include "support/text.h"

namespace tc {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void fail(const std::string& what, const fs::path& path) {
  throw Error("TC0601", ExitCode::Io, what + " " + printable(path.string()) + ": " + std::strerror(errno));
}

void give_parts(const OutputFile& f, const TakesPart& take) {
  if (f.parts) return f.parts(take);
  take(0, f.bytes);
}

bool same_bytes(const fs::path& path, const std::string& bytes) {
  std::error_code ec;
  if (fs::is_symlink(path, ec) || fs::file_size(path, ec) != bytes.size() || ec) return false;
  return try_read_file(path) == bytes;
}

// A file that is written anywhere, by its name in messages.
class NewBytes {
 public:
  explicit NewBytes(const fs::path& path) : path_(path) {
    fd_ = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0666);
    if (fd_ < 0) fail("cannot create", path);
  }
  ~NewBytes() {
    if (fd_ >= 0) ::close(fd_);
  }
  NewBytes(const NewBytes&) = delete;
  NewBytes& operator=(const NewBytes&) = delete;

  void write(int64_t offset, std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t n = ::pwrite(fd_, bytes.data(), bytes.size(), off_t(offset));
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) fail("cannot write", path_);
      bytes.remove_prefix(size_t(n));
      offset += n;
    }
  }
  void close() {
    if (::close(std::exchange(fd_, -1)) != 0) fail("cannot write", path_);
  }

 private:
  fs::path path_;
  int fd_ = -1;
};

void write_temporary(const fs::path& path, const OutputFile& f) {
  NewBytes file(path);
  give_parts(f, [&file](int64_t offset, std::string_view bytes) { file.write(offset, bytes); });
  file.close();
}

// Whether a file has these bytes, which are asked for once.
bool has_parts(const fs::path& path, const OutputFile& f) {
  std::ifstream file(path, std::ios::binary);
  bool same = file.good();
  int64_t bytes = 0;
  std::string there;
  give_parts(f, [&](int64_t offset, std::string_view part) {
    bytes = std::max(bytes, offset + int64_t(part.size()));
    if (!same) return;
    there.resize(part.size());
    same = file.seekg(offset) && file.read(there.data(), std::streamsize(there.size())) && there == part;
  });
  std::error_code ec;
  return same && int64_t(fs::file_size(path, ec)) == bytes && !ec;
}

bool is_up_to_date(const fs::path& path, const OutputFile& f) {
  std::error_code ec;
  if (!f.parts) return same_bytes(path, f.bytes);
  return !fs::is_symlink(path, ec) && fs::is_regular_file(path, ec) && has_parts(path, f);
}

bool same_files(const fs::path& a, const fs::path& b) {
  std::error_code ec;
  if (fs::is_symlink(b, ec) || !fs::is_regular_file(b, ec) || fs::file_size(a, ec) != fs::file_size(b, ec) || ec)
    return false;
  std::ifstream left(a, std::ios::binary), right(b, std::ios::binary);
  std::string x(size_t(1) << 20, '\0'), y = x;
  while (left && right) {
    left.read(x.data(), std::streamsize(x.size()));
    right.read(y.data(), std::streamsize(y.size()));
    const auto n = size_t(left.gcount());
    if (right.gcount() != left.gcount() || std::memcmp(x.data(), y.data(), n) != 0) return false;
  }
  return left.eof() && right.eof();
}

// The "files" of a manifest; empty if there is none or it is not ours.
std::set<std::string> listed_files(const fs::path& manifest) {
  std::set<std::string> files;
  const std::optional<std::string> text = try_read_file(manifest);
  if (!text || text->size() > (size_t(64) << 20)) return files;
  const auto json = nlohmann::json::parse(*text, nullptr, false);
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

constexpr const char* kManifest = "manifest.json";
constexpr std::string_view kNew = ".tc-new";  // written, and not yet in its place
constexpr std::string_view kOld = ".tc-old";  // set aside while the others are exchanged

// Nothing builds without these: they leave first and come back last, so that whoever is interrupted leaves the old
// package, the new one, or none that builds.
bool is_keystone(const std::string& path) {
  const bool header = path.size() > 2 && path.ends_with(".h");
  return path.find('/') == std::string::npos && (header || path == "Makefile" || path == "CMakeLists.txt");
}

// What an interrupted run left.
void remove_leftovers(const fs::path& dir) {
  std::error_code ec;
  std::vector<fs::path> found;
  for (const char* folder : {".", "kernels", "cuda_on_cpu"}) {
    if (fs::is_symlink(dir / folder, ec)) continue;
    for (const auto& entry : fs::directory_iterator(dir / folder, ec)) {
      const std::string name = entry.path().filename().string();
      if (entry.is_regular_file(ec) && (name.ends_with(kNew) || name.ends_with(kOld))) found.push_back(entry.path());
    }
  }
  for (const fs::path& path : found) fs::remove(path, ec);
}

fs::path with(const fs::path& path, std::string_view ending) { return path.string() + std::string(ending); }

void move(const fs::path& from, const fs::path& to) {
  if (::rename(from.c_str(), to.c_str()) != 0) fail("cannot replace", to);
}

// What lies in the folder and is no part of a package yet; all of it goes again, unless it is kept.
class Staging {
 public:
  explicit Staging(fs::path dir) : dir_(std::move(dir)) { make_folder(dir_); }
  ~Staging() {
    std::error_code ec;
    if (kept_) return;
    for (const fs::path& path : files_) ::unlink(path.c_str());
    for (auto folder = folders_.rbegin(); folder != folders_.rend(); ++folder) fs::remove(*folder, ec);
  }
  Staging(const Staging&) = delete;
  Staging& operator=(const Staging&) = delete;

  /// Writes what changes beside its place.
  void write(const std::vector<const OutputFile*>& files, WriteReport& report) {
    std::error_code ec;
    std::set<std::string> paths;
    for (const OutputFile* f : files)
      check(paths.insert(f->path).second, "two files of a package are called " + f->path);
    for (const OutputFile* f : files) {
      stop_if_interrupted();
      const fs::path target = dir_ / f->path;
      if (!f->parts && same_bytes(target, f->bytes)) {
        report.unchanged.push_back(f->path);
        continue;
      }
      make_folder(target.parent_path());
      if (fs::is_symlink(target.parent_path(), ec) && target.parent_path() != dir_) {
        errno = ELOOP;
        fail("will not write through the link", target.parent_path());
      }
      files_.push_back(with(target, kNew));
      write_temporary(files_.back(), *f);
      // What comes in parts is made once: whether anything has changed is seen when it is there.
      if (f->parts && same_files(files_.back(), target)) {
        ::unlink(files_.back().c_str());
        files_.pop_back();
        report.unchanged.push_back(f->path);
        continue;
      }
      report.written.push_back(f->path);
    }
  }

  void keep() { kept_ = true; }

 private:
  // Where there can be none, the file that goes into it cannot be created.
  void make_folder(const fs::path& folder) {
    std::error_code ec;
    if (folder.empty() || fs::exists(folder, ec)) return;
    make_folder(folder.parent_path());
    if (fs::create_directory(folder, ec)) folders_.push_back(folder);
  }

  fs::path dir_;
  std::vector<fs::path> files_, folders_;
  bool kept_ = false;
};

// Puts what was written in its place and removes `stale`; the manifest and then the keystones go last.
void exchange(const fs::path& dir, const std::set<std::string>& stale, WriteReport& report) {
  std::error_code ec;
  std::vector<std::string> aside;
  for (const auto* names : {&report.unchanged, &report.written})
    for (const std::string& name : *names)
      if (is_keystone(name) && fs::exists(dir / name, ec)) aside.push_back(name);
  for (const std::string& name : stale)
    if (is_keystone(name) && fs::remove(dir / name, ec)) report.removed.push_back(name);
  for (const std::string& name : aside) move(dir / name, with(dir / name, kOld));
  std::vector<std::string> last;
  for (const std::string& name : report.written)
    if (is_keystone(name))
      last.push_back(name);
    else if (name != kManifest)
      move(with(dir / name, kNew), dir / name);
  for (const std::string& name : stale)
    if (!is_keystone(name) && fs::remove(dir / name, ec)) report.removed.push_back(name);
  // Until here the old manifest and the new one beside it list whatever may lie there.
  if (fs::exists(with(dir / kManifest, kNew), ec)) move(with(dir / kManifest, kNew), dir / kManifest);
  for (const std::string& name : report.unchanged)
    if (is_keystone(name)) move(with(dir / name, kOld), dir / name);  // with the time it had
  for (const std::string& name : last) move(with(dir / name, kNew), dir / name);
  for (const std::string& name : last) fs::remove(with(dir / name, kOld), ec);
}

}  // namespace

std::string bytes_of(const OutputFile& f) {
  if (!f.parts) return f.bytes;
  std::string bytes;
  f.parts([&bytes](int64_t offset, std::string_view part) {
    bytes.resize(std::max(bytes.size(), size_t(offset) + part.size()));
    part.copy(bytes.data() + offset, part.size());
  });
  return bytes;
}

WriteReport write_package(const std::string& dir_text, const std::vector<OutputFile>& files) {
  const fs::path dir(dir_text);
  std::error_code ec;
  Staging staging(dir);
  if (!fs::is_directory(dir, ec)) {
    errno = ENOTDIR;
    fail("cannot make the folder", dir);
  }
  std::set<std::string> stale = listed_files(dir / kManifest);
  stale.merge(listed_files(with(dir / kManifest, kNew)));
  remove_leftovers(dir);
  std::vector<const OutputFile*> order;
  for (const OutputFile& f : files) {
    stale.erase(f.path);
    order.push_back(&f);
  }
  std::stable_partition(order.begin(), order.end(), [](const OutputFile* f) { return f->path != kManifest; });
  WriteReport report;
  staging.write(order, report);
  std::erase_if(stale, [&](const std::string& name) { return !fs::exists(dir / name, ec); });
  // From here on nothing may end in the middle, and a signal has to wait.
  staging.keep();
  if (!report.written.empty() || !stale.empty()) exchange(dir, stale, report);
  return report;
}

std::vector<PackageDifference> compare_package(const std::string& dir_text, const std::vector<OutputFile>& files) {
  const fs::path dir(dir_text);
  std::set<std::string> stale = listed_files(dir / kManifest);
  std::vector<PackageDifference> differences;
  for (const OutputFile& f : files) {
    stale.erase(f.path);
    if (is_up_to_date(dir / f.path, f)) continue;
    const bool there = fs::is_regular_file(dir / f.path);
    const std::string old = f.parts || !there ? "" : try_read_file(dir / f.path).value_or("");
    differences.push_back({there ? "differs" : "missing", f.path, old, f.bytes, bool(f.parts)});
  }
  for (const std::string& p : stale) differences.push_back({"stale", p, try_read_file(dir / p).value_or(""), ""});
  return differences;
}

std::vector<OutputFile> read_package(const std::string& dir_text) {
  const fs::path dir(dir_text);
  std::vector<OutputFile> files;
  std::error_code ec;
  std::set<std::string> names = listed_files(dir / kManifest);
  names.insert(kManifest);
  for (const std::string& name : names) {
    if (!fs::is_regular_file(fs::symlink_status(dir / name, ec))) continue;
    if (std::optional<std::string> bytes = try_read_file(dir / name)) files.push_back({name, std::move(*bytes)});
  }
  return files;
}

}  // namespace tc
