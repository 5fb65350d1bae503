// The way of a model through the compiler: one function, one screen.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "importer/import.h"
#include "ir/program.h"
#include "passes/pass.h"
#include "templates/target.h"

namespace tc {

struct Compilation {
  Graph graph;  // after the passes
  Program program;
};

/// What compile() and the commands tell while they work.
struct Listener {
  /// A phase ("import", "passes", "kernels", "weights"), and what of it is being done ("fuse_ops", "12/57"); "" when it is over,
  /// before anything is printed. May throw Interrupted.
  std::function<void(const std::string& phase, const std::string& part)> progress = {};
  void tell(const std::string& phase, const std::string& part = "") const {
    if (progress) progress(phase, part);
  }
  /// What --print-ir-after and --time-passes say, as soon as it is said, whatever comes next.
  std::function<void(const std::string& text)> log = {};
};

struct CompileRequest {
  std::string model;  // path
  std::string name;   // C identifier; empty: from the path
  ImportOptions import;
  Target target;
  Options options;
  Listener listener = {};
  /// Shown the graph as it is imported (null), and after each pass that ran.
  std::function<void(const PassInfo*, const Graph&)> watch = {};
  std::shared_ptr<const Graph> graph = {};  // instead of the model, which names what it was read from
  /// Shown the graph after import ("") and behind every pass, see PassContext.
  std::function<void(const std::string& pass, const Graph&)> passed = {};
  std::shared_ptr<const StatedSchedules> schedules = {};                     // of the user's; null: none
  std::function<void(const ScheduledFunction&)> scheduled = {};              // told what is decided on each function
  std::function<void(const std::string& function, int kernel)> called = {};  // told of each call, see PassContext
  bool external_weights = false;                                             // --weights external
  bool int8_activations = false;                                             // --activations int8
  bool package = true;  // false: ends after options.stop_after, or after import if that is empty
};

/// Imports, optimises, fuses, schedules, plans. Problems of the model go to `problems`; then the result is empty.
Compilation compile(const CompileRequest& r, Diagnostics& problems);

/// "resnet50" from "models/ResNet-50.onnx": the file's name made an identifier.
std::string default_name(const std::string& path);

}  // namespace tc
