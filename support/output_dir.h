// Writing a package: everything is rendered first and written beside its place, and only what changes is replaced. While that
// happens headers and build files are set aside, so that whoever interrupts it finds the old package, the new one, or one
// that does not build. Files that an earlier manifest lists and this one does not are removed.
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace tc {

/// Takes bytes of a file, which begin at `offset`.
using TakesPart = std::function<void(int64_t offset, std::string_view bytes)>;

struct OutputFile {
  std::string path;  // relative, with '/', made of our own text only
  std::string bytes;
  /// In place of `bytes`: gives the bytes part by part, in any order, so that a large file is never in memory as a whole.
  std::function<void(const TakesPart&)> parts = {};
};

/// All bytes of a file.
std::string bytes_of(const OutputFile& file);

struct WriteReport {
  std::vector<std::string> written, unchanged, removed;
};

/// Writes `files` below `dir`. Throws Error TC06xx (Io) and leaves the old files
/// where a file cannot be written.
WriteReport write_package(const std::string& dir, const std::vector<OutputFile>& files);

/// A file that is not what it would be: "missing", "differs" or "stale".
struct PackageDifference {
  std::string what, path;
  std::string before, after;  // bytes in the folder, and those that would be written
  bool binary = false;        // then neither
};

/// How `dir` differs from `files`. Empty: up to date.
std::vector<PackageDifference> compare_package(const std::string& dir, const std::vector<OutputFile>& files);

/// The files of the package in `dir` that its manifest lists, the manifest among them; by name; those that are missing are left out, and links.
/// Empty if there is no manifest.
std::vector<OutputFile> read_package(const std::string& dir);

}  // namespace tc
