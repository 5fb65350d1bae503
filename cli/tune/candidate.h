// A package of one kernel, with a program that checks and times it.
#pragma once
#include <string>
#include <vector>

#include "cli/options.h"
#include "cli/tune/tasks.h"

namespace tc {

/// The package of a task's function by a plan; its symbols begin with "candidate". Options of the network that concern kernels are
/// taken from `c`. Throws Error where the plan cannot be.
Program candidate_program(const CommandLine& c, const TuneTask& task, const std::vector<PlanLine>& plan);

/// Writes it below `dir`; `make candidate` there builds a program that takes the options of every package, and --measure SECONDS,
/// --evict BYTES: see measure.c. `timed`: false for a program as every package has it.
void write_candidate(const CommandLine& c, const Program& p, const std::string& dir, bool timed);

/// Inputs, and what the function is to compute of them, as files below a folder.
struct TaskReference {
  std::string folder;
  std::string rtol, atol;  // of --expect
};

/// Makes them: by the interpreter where that is cheap, else by the plain loops, compiled (`dir`: an empty folder for them). `seconds`: the plain loops
/// may run so long, and be built. Throws Error TC0704 where they fail.
TaskReference make_reference(const CommandLine& c, const TuneTask& task, const std::string& dir, double seconds);

}  // namespace tc
