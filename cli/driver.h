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
  std::string log;  // what --print-ir-after and --time-passes say
};

struct CompileRequest {
  std::string model;  // path
  std::string name;   // C identifier; empty: from the path
  ImportOptions import;
  Target target;
  Options options;
  std::function<void(const std::string&)> progress = {};  // told what is being done, "" at the end
  /// Shown the graph as it is imported (null), and after each pass that ran.
  std::function<void(const PassInfo*, const Graph&)> watch = {};
  std::shared_ptr<const Graph> graph = {};  // instead of the model, which names what it was read from
  /// Shown the graph after import ("") and behind every pass, see PassContext.
  std::function<void(const std::string& pass, const Graph&)> passed = {};
  bool package = true;  // false: ends after options.stop_after, or after import if that is empty
};

/// Imports, optimises, fuses, schedules, plans. Problems of the model go to `problems`; then the result is empty.
Compilation compile(const CompileRequest& r, Diagnostics& problems);

/// "resnet50" from "models/ResNet-50.onnx": the file's name made an identifier.
std::string default_name(const std::string& path);

}  // namespace tc
