// Who builds and times candidates: this machine, or a command that speaks JSON lines.
#pragma once
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "cli/process.h"
#include "cli/tune/candidate.h"
#include "cli/tune/record.h"

namespace tc {

/// A package to be timed in turns with another one.
struct TuneTrial {
  std::string package, against;  // folders that write_candidate() has filled; against "": it is timed alone
  TaskReference reference;
  int threads = 1, repeat = 3;  // repeat: turns
  double timeout = 10;          // seconds, of building, and of each run
  double seconds = 0.1;         // of a turn
  int64_t evict_bytes = 0;
};

struct TuneResult {
  std::string state = "ok", reason;    // see TuneRecord
  std::vector<double> ns, against_ns;  // by turn: the median time of a call
  double time() const;                 // the median
  double share() const;                // the median of ns / against_ns, turn by turn; 1 if it was timed alone
};

class Runner {
 public:
  virtual ~Runner() = default;
  /// Corrects the processor and the compiler, where candidates are built and timed somewhere else.
  virtual void describe(TuneSetting& /*setting*/) {}
  /// Tells `done` what came of each trial, in any order. Throws Error TC0704 where the runner itself fails, TC0705 where there is no compiler.
  virtual void run(const std::vector<TuneTrial>& trials,
                   const std::function<void(size_t trial, const TuneResult&)>& done) = 0;
};

/// On this machine: `jobs` are built beside each other, then each is timed on its own.
std::unique_ptr<Runner> local_runner(int jobs);

/// A command of the shell. It reads a JSON object a line: first {"id": 0, "ask": "setting"}, to be answered with
///   {"id": 0, "processor": "...", "compiler": "..."}
/// then
///   {"id": 1, "package": DIR, "against": DIR or "", "io": DIR, "rtol": "1e-3", "atol": "1e-5", "threads": 1, "repeat": 3, "timeout": 10,
///    "seconds": 0.1, "evict_bytes": 1048576}
/// and answers each with a line, in any order:
///   {"id": 1, "ns": [..], "against_ns": [..]} or {"id": 1, "state": "wrong", "reason": "..."}
std::unique_ptr<Runner> command_runner(const std::string& command);

}  // namespace tc
