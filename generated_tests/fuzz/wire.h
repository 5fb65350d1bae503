// Protobuf's encoding by hand, for models that no library would write; and a folder for them.
#pragma once
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

namespace tc::fuzz {

inline std::string varint(uint64_t value) {
  std::string out;
  for (; value > 127; value >>= 7) out += char(value | 128);
  return out + char(value);
}

inline std::string number(int field, uint64_t value) { return varint(uint64_t(field) << 3) + varint(value); }

/// A length-delimited field: message, string or bytes.
inline std::string bytes(int field, const std::string& payload) {
  return varint(uint64_t(field) << 3 | 2) + varint(payload.size()) + payload;
}

/// A float tensor [2] as an input or output.
inline std::string port(const std::string& name) {
  const std::string shape = bytes(1, number(1, 2));
  return bytes(1, name) + bytes(2, bytes(1, number(1, 1) + bytes(2, shape)));
}

/// A folder of this process, in memory where there is such a place; gone with it.
struct Folder {
  Folder() {
    namespace fs = std::filesystem;
    const fs::path base = fs::is_directory("/dev/shm") ? fs::path("/dev/shm") : fs::temp_directory_path();
    std::string name = base / "tc_fuzz_XXXXXX";
    path = ::mkdtemp(name.data());
  }
  ~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path, ignored);
  }
  std::string write(const std::string& name, const std::string& content) const {
    std::ofstream(path / name, std::ios::binary).write(content.data(), std::streamsize(content.size()));
    return path / name;
  }
  std::filesystem::path path;
};

}  // namespace tc::fuzz
