// verify, bench and run: from the command line to a program that runs here.
#pragma once
#include <string>
#include <vector>

#include "cli/driver.h"
#include "cli/options.h"
#include "cli/process.h"

namespace tc {

struct Built {
  Compilation compilation;
  std::string program;  // its path
};

/// Compiles the model; problems go to `problems`, then the result means nothing.
Compilation compile_for_here(const CommandLine& c, Diagnostics& problems);

/// Writes the package into `dir` and builds its program, or with `profile` the one that has --profile; gives its path. C: with
/// make; CUDA: with CMake, for the GPU if there is one, else through the emulation that the package carries. Throws Error
/// TC0705 where a tool is missing, TC0701 where it fails.
std::string build_package(const CommandLine& c, const Program& p, const std::string& dir, bool profile = false);

/// Runs a program, with stderr, as the phase that is shown meanwhile.
ProcessResult run_phase(const CommandLine& c, const std::string& phase, const std::vector<std::string>& argv);

/// Both.
Built build_model(const CommandLine& c, const std::string& dir, Diagnostics& problems);

/// What a program has said, line by line, for notes: the last lines of it.
std::vector<std::string> printable_lines(const std::string& said);

/// Throws Error TC0705: no `what` on this machine, and how to have it.
[[noreturn]] void tool_missing(const std::string& what, const std::string& way_out);

/// Throws Error TC0701: `what` could not be started, or failed, with what it said.
[[noreturn]] void tool_failed(const std::string& what, const ProcessResult& r);

/// Whether a program for CUDA will run on a GPU of this machine.
bool has_gpu();

}  // namespace tc
