// A file that is either written whole or not at all.
#pragma once
#include <filesystem>
#include <functional>
#include <ostream>
#include <string>

namespace tc {

/// Throws Error TC0601 (Io) with the reason of the operating system.
[[noreturn]] void cannot_write(const std::filesystem::path& path);

/// Written beside its place first, then put there; gone if it is not. A device or a pipe, which nothing may replace, is
/// written to at once. Throws Error TC0601 (Io).
class NewFile {
 public:
  NewFile(const std::filesystem::path& path, const std::function<void(std::ostream&)>& fill);
  NewFile(const std::filesystem::path& path, const std::string& bytes);
  ~NewFile();
  NewFile(const NewFile&) = delete;
  NewFile& operator=(const NewFile&) = delete;
  void put_in_place() const;

 private:
  void remove() const;

  std::filesystem::path path_, written_;  // written_: empty for a device
};

}  // namespace tc
