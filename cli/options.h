// The command line; option_table.h has the tables that it is read by.
#pragma once
#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "cli/driver.h"
#include "cli/progress.h"
#include "cli/tensor_files.h"
#include "emit_c/package.h"

namespace tc {

struct CommandLine {
  std::string command = "emit";
  bool command_given = false;
  CompileRequest request;
  std::string model, out;               // positional model, -o
  std::string other;                    // diff: the second positional
  bool stat = false, markdown = false;  // diff
  bool help = false, version = false;
  bool jit = false;                   // CUDA: kernels are compiled by NVRTC
  int64_t cuda_graphs = kCudaGraphs;  // CUDA: of how many choices of sizes an instance keeps the captured graphs
  bool single_file = false, check = false, list_outputs = false, quiet = false, json = false;
  bool json_diagnostics = false;  // messages as lines of JSON
  std::string depfile;            // emit: where the files that were read are listed
  std::string against;            // verify: onnxruntime | interpreter; empty: what is there
  uint64_t seed = 0;
  double seconds = 2;  // bench
  int threads = 0;
  bool native = false;                 // --cpu native was asked for
  bool any_cpu = true;                 // --cpu any: kernels that may be compiled for several processors
  std::vector<std::string> ops_files;  // --ops
  std::string reference;               // verify --reference
  bool per_node = false;               // verify
  // run
  std::vector<std::string> inputs;   // FILE.npz or DIR, or NAME=FILE for each
  std::string outputs, trace;        // outputs: FILE.npz or DIR
  std::string times;                 // report
  FillMode fill = FillMode::Random;  // of inputs without a file
  bool fill_given = false;
  int64_t print_top = 0, repeat = 0;
  bool profile = false;
  std::vector<std::pair<std::string, std::string>> given;  // every option and its value, "" of a switch
  bool was_given(std::string_view flag) const {
    return std::any_of(given.begin(), given.end(), [&](const auto& option) { return option.first == flag; });
  }
  std::string write_ir, after;             // --write-ir, --after
  std::string schedules, write_schedules;  // --schedules, --write-schedules
  std::vector<std::string> records;        // --records
  // tune
  std::string tasks, runner;                         // --tasks, --runner
  int64_t trials = 0, early_stopping = 0, jobs = 0;  // 0: the default
  double timeout = 0;
  bool prune = false, gains = false;  // records
  bool reads_ir() const { return model.ends_with(".tc"); }
  bool makes_package() const { return !out.empty() || check || list_outputs; }
  bool makes_program() const { return makes_package() || !write_schedules.empty(); }
  ProgressMode progress = ProgressMode::Auto;
  std::string keep;  // reduce: the command that says what is still wanted
};

/// Throws Error TC0001 (Usage), which names the option and what is wrong with it: unknown (with the nearest one that
/// exists), of other commands, without a value or with a bad one.
CommandLine parse_command_line(const std::vector<std::string>& args);

/// Throws the same for options that the target has no use for.
void refuse_idle_options(const CommandLine& c);

/// Help of a command; of the whole tool for "".
std::string help_text(std::string_view command);

/// Names of the subcommands in the order of help.
std::vector<std::string_view> command_names();

}  // namespace tc
