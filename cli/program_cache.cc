#include "cli/program_cache.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <vector>

#include "cli/process.h"
#include "support/error.h"
#include "support/text.h"

namespace tc {
namespace {

namespace fs = std::filesystem;

constexpr auto kInUse = std::chrono::minutes(1);     // so long a program that was asked for is not dropped
constexpr auto kAbandoned = std::chrono::hours(24);  // a folder that a build has left, if it was killed

constexpr const char* kBuilding = ".building-";

void touch(const fs::path& path) {
  std::error_code ec;
  fs::last_write_time(path, fs::file_time_type::clock::now(), ec);
}

/// A fresh folder in the cache's own file system, so that what is built there can be renamed into place.
TemporaryDir folder_for_build(const std::string& parent) {
  return {parent + "/" + kBuilding, Error(Diagnostic{"TC0601",
                                                     ExitCode::Io,
                                                     {},
                                                     "cannot write " + printable(parent),
                                                     {"programs are kept there; set XDG_CACHE_HOME to another folder"},
                                                     false})};
}

}  // namespace

std::string ProgramCache::get(const std::string& key,
                              const std::function<std::string(const std::string& dir)>& build) const {
  const fs::path kept = fs::path(folder_) / key;
  std::error_code ec;
  if (fs::is_regular_file(kept, ec)) {
    touch(kept);
    if (fs::exists(kept, ec)) return kept.string();  // nobody has dropped it in between
  }
  fs::create_directories(folder_, ec);
  const TemporaryDir fresh = folder_for_build(folder_);
  const std::string program = build(fresh.path());
  touch(program);
  fs::rename(program, kept, ec);
  if (ec) throw Error("TC0601", ExitCode::Io, "cannot write " + printable(kept.string()) + ": " + ec.message());
  drop_old_ones();
  return kept.string();
}

void ProgramCache::drop_old_ones() const {
  struct Entry {
    fs::file_time_type used;
    std::string name;
    uint64_t bytes;
  };
  std::vector<Entry> entries;
  std::error_code ec;
  const auto now = fs::file_time_type::clock::now();
  for (const fs::directory_entry& e : fs::directory_iterator(folder_, ec)) {
    std::error_code gone;  // others may be dropping the same
    const auto used = e.last_write_time(gone);
    const std::string name = e.path().filename().string();
    if (gone) continue;
    if (name.starts_with(kBuilding)) {
      if (now - used > kAbandoned) fs::remove_all(e.path(), gone);
    } else if (e.is_regular_file(gone)) {
      entries.push_back({used, name, e.file_size(gone)});
    }
  }
  std::sort(entries.begin(), entries.end(),
            [](const Entry& a, const Entry& b) { return a.used != b.used ? a.used > b.used : a.name < b.name; });
  uint64_t sum = 0;
  for (const Entry& e : entries) {
    sum += e.bytes;
    if (sum > max_bytes_ && now - e.used > kInUse) fs::remove(fs::path(folder_) / e.name, ec);
  }
}

std::string program_cache_folder() {
  const auto set = [](const char* name) {
    const char* v = std::getenv(name);
    return std::string(v && *v == '/' ? v : "");  // relative ones are invalid, says the specification
  };
  if (const std::string cache = set("XDG_CACHE_HOME"); !cache.empty()) return cache + "/tc-emit/programs";
  const std::string home = set("HOME");
  return home.empty() ? "" : home + "/.cache/tc-emit/programs";
}

}  // namespace tc
