// Files that are read whole.
#pragma once
#include <filesystem>
#include <optional>
#include <string>

namespace tc {

/// The bytes of a file; null if it cannot be read, as a folder.
std::optional<std::string> try_read_file(const std::filesystem::path& path);

/// The same. Throws Error TC0601 (Io) with its name if it cannot be read.
std::string read_file(const std::filesystem::path& path);

}  // namespace tc
