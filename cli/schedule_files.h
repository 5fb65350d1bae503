// --schedules FILE and --write-schedules FILE: what templates decide, as text (docs/schedules.md).
#pragma once
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "cli/options.h"

namespace tc {

/// Reads c.schedules into c.request.schedules. False if it holds mistakes, which are told to stderr, all of them. Throws Error
/// TC0601 (Io) where it cannot be read.
bool load_schedules(CommandLine& c);

/// Keeps what is decided on each function while a model is compiled, and writes it when all went well.
class ScheduleWriter {
 public:
  /// Watches `request`. Both have to stay.
  ScheduleWriter(const CommandLine& c, CompileRequest& request);
  /// Throws Error TC0601 (Io). What was written, in a line.
  std::string write() const;

 private:
  const CommandLine& c_;
  std::vector<std::string> texts_;
  std::set<std::pair<std::string, std::string>> met_;  // their signatures and hashes
};

}  // namespace tc
