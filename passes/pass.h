// Graph passes: a pass has one name in file, function, flag, docs and test. The pipeline is a table (pipeline.h).
#pragma once
#include <chrono>
#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "ir/graph/graph.h"
#include "ir/language/schedule_text.h"
#include "ir/precision.h"
#include "passes/target_traits.h"
#include "support/error.h"

namespace tc {

class Backend;

struct Options {
  int opt_level = 2;
  bool strict_fp = false;                // --fp strict: no Winograd, no reassociation across a definition's order
  Precision precision = Precision::F32;  // --precision
  std::set<std::string> disabled;        // --disable-pass
  std::set<std::string> print_after;     // --print-ir-after; "all" stands for every pass
  std::string dump_dir;                  // --dump-ir
  std::string print_steps;               // --print-steps: the signature of a kernel, with '*'; empty: of none
  std::string begin_after;               // where a graph that was read goes on; empty: before the first pass
  std::string stop_after;                // --stop-after; both as pass_label() says it
  bool time_passes = false, verify_each = false;
  int64_t string_bytes = int64_t(1) << 16;      // --string-bytes: room for the strings that a run makes
  int64_t fold_limit_bytes = int64_t(1) << 20;  // a folded constant may be this large, or twice its inputs
};

/// What is decided on one function, while it is told.
struct ScheduledFunction {
  const FunctionPlan& plan;
  const TensorFn& fn;
  const std::vector<Constant>& constants;  // one per fn.inputs; null: known only when the model runs
};

struct PassContext {
  TargetTraits target;
  Options options;
  Diagnostics* diagnostics = nullptr;
  std::function<void(const std::string&)> progress = {};  // told what is being done; empty: nobody listens
  const Backend* backend = nullptr;                       // asked by read_few_bits and what comes behind it
  std::vector<const Backend*> others = {};  // of a list of processors all but the best, which is `backend`; not owned
  const StatedSchedules* schedules = nullptr;                    // of the user's; null: none. Not owned
  std::function<void(const ScheduledFunction&)> scheduled = {};  // told what is decided on each function
  /// Told of each call: the function_hash() of its function, and its kernel in Program::kernels.
  std::function<void(const std::string& function, int kernel)> called = {};
  std::function<void(const std::string&)> shown = {};  // what options.print_steps asks for, as text
  /// Shown the graph before the first pass ("") and behind every one (its label), also behind those that are left out.
  std::function<void(const std::string& pass, const Graph&)> passed = {};
};

struct PassInfo {
  std::string_view name;
  int opt_level;  // runs at this -O and above
  void (*run)(Graph&, PassContext&);
  std::string_view summary;  // one line for `tc-emit passes` and the docs
};

/// "fold_constant", "fold_constant#2": what tells the passes of a list apart.
std::string pass_label(const std::vector<PassInfo>& list, size_t position);

/// Runs a list: honours opt level, disabled passes, begin_after and stop_after; prints, times and verifies as asked. Output
/// goes to `log`. Between passes graphs are renumbered. Stops after a pass that added an error to cx.diagnostics. A defect (InternalError) is rethrown with the name of the pass;
/// a dump that cannot be written throws Error TC0601.
void run_passes(const std::vector<PassInfo>& list, Graph& g, PassContext& cx, std::string& log);

/// "fuse_ops                    12.345 ms     ": the first columns of --time-passes.
std::string pass_time(std::string_view pass, std::chrono::steady_clock::duration spent);

/// The pipeline's lists (pipeline.cc).
const std::vector<PassInfo>& graph_passes();

}  // namespace tc
