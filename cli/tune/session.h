// The search itself: which function is served next, what is tried of it, and what is kept.
#pragma once
#include <chrono>
#include <functional>
#include <memory>
#include <set>

#include "cli/process.h"
#include "cli/tune/record.h"
#include "cli/tune/runner.h"
#include "cli/tune/search.h"
#include "cli/tune/tasks.h"

namespace tc {

struct TuneLimits {
  int64_t trials = 1000;       // of all tasks together
  double seconds = 0;          // of the session; 0: no limit
  int64_t early_stopping = 0;  // a task ends after so many trials without a gain; 0: never
  int repeat = 5;
  double timeout = 10;
  int threads = 1, jobs = 1;
};

/// A task with what is known of it.
struct TuneState {
  TuneTask task;
  PlanSearch search;
  PlanPoint best;
  double model_ns = 0;    // a call by the model's plan; 0: not measured yet
  double best_share = 1;  // of it, the best plan's
  int64_t trials = 0, since_gain = 0;
  std::string ended;        // why nothing more is tried; empty: it goes on
  std::string failed = {};  // why nothing can be tried: it has no reference, or the model's own plan fails
  TaskReference reference = {};
  std::string model_package = {}, best_package = {};

  double best_ns() const { return model_ns * best_share; }
  /// A trial took `ns`, which was `share` of the model's plan then. The least of what that says of the model's counts: whatever else the
  /// machine does only adds to it, and a call that seems to take long would get all the trials.
  void hear(double ns, double share);
  /// The floor as a share of the best time; 0: not known.
  double share_of_floor(int threads) const;
};

/// The plans of a task, under the options of the command line. `backend` has to stay.
PlanSpace plans_of(const CommandLine& c, const Backend& backend, const TuneTask& t);

class TuneSession {
 public:
  using Listener = std::function<void(const TuneSession&, const TuneState* now)>;

  /// `c` and `runner` have to stay; `known`: what the file of records has. `tell` hears of every change.
  TuneSession(const CommandLine& c, TuneTasks tasks, const TuneLimits& limits, TuneSetting setting,
              const RecordFile& known, RecordWriter& records, Runner& runner, Listener tell);

  /// Until the limits are reached, or nothing is left to try.
  void run();

  const std::vector<TuneState>& states() const { return states_; }
  const TuneLimits& limits() const { return limits_; }
  int64_t trials() const { return trials_; }
  double seconds() const;
  /// The time of a run as the sum of what was measured: by the model's plans, and by the best ones.
  double model_run_ns() const;
  double best_run_ns() const;

 private:
  void take_over(TuneState& s, const std::vector<TuneRecord>& known);
  TuneState* choose();
  bool is_over() const;
  bool begin(TuneState& s);
  void serve(TuneState& s);
  void confirm(TuneState& s, const PlanPoint& p, const std::string& package);
  std::string write(const TuneState& s, const PlanPoint& p);
  TuneTrial trial(const TuneState& s, const std::string& package, const std::string& against, int repeat) const;
  void record(const TuneState& s, const PlanPoint& p, const TuneResult& r, double share, bool confirmed);

  const CommandLine& c_;
  TuneLimits limits_;
  TuneSetting setting_;
  RecordWriter& records_;
  std::set<std::string> defined_;  // functions that the file of records defines
  Runner& runner_;
  Listener tell_;
  std::unique_ptr<const Backend> backend_;
  std::vector<TuneState> states_;
  int64_t run_bytes_ = 0, trials_ = 0, packages_ = 0;
  TemporaryDir folder_;
  std::chrono::steady_clock::time_point begun_ = std::chrono::steady_clock::now();
};

}  // namespace tc
