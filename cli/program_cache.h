// Programs that `run` has built, kept by what they were built from.
#pragma once
#include <cstdint>
#include <functional>
#include <string>

namespace tc {

/// A folder of executable files, named by their keys; old ones go when they are more than `max_bytes` together. Any number of
/// processes may use it: a file appears whole or not at all, and what was used in the last minute stays.
class ProgramCache {
 public:
  /// `folder` is made when it is needed.
  ProgramCache(std::string folder, uint64_t max_bytes) : folder_(std::move(folder)), max_bytes_(max_bytes) {}

  /// The program of `key`. If there is none yet, build(DIR) makes one below the empty folder DIR and gives its path. Throws
  /// Error TC0601 where the cache cannot be written, and what build() throws.
  std::string get(const std::string& key, const std::function<std::string(const std::string& dir)>& build) const;

 private:
  void drop_old_ones() const;

  std::string folder_;
  uint64_t max_bytes_;
};

/// $XDG_CACHE_HOME/tc-emit/programs, else ~/.cache/tc-emit/programs; "" without a home.
std::string program_cache_folder();

}  // namespace tc
