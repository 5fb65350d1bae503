// The functions of a network that `tc-emit tune` looks for schedules of.
#pragma once
#include <string>
#include <vector>

#include "cli/options.h"
#include "ir/tensor_fn.h"

namespace tc {

/// One distinct function. Equal functions of a network are one task.
struct TuneTask {
  std::string function, signature;  // function_hash(); of the kernel's name what does not depend on its loops
  TensorFn fn;
  std::vector<Constant> constants;  // one per fn.inputs; null: known only when the network runs
  double calls = 0;                 // of a run
  double floor_ns = 0;              // of a call, one thread; 0: not known
  int64_t macs = 0;
  std::vector<bool> constant_input() const;
};

struct TuneTasks {
  std::vector<TuneTask> list;  // in the order of first call
  int64_t run_bytes = 0;       // what a run of the network touches: arena and weights
};

/// Compiles the model of the command line and lists its functions. Problems go to `problems`, then the result is empty.
TuneTasks tasks_of(const CommandLine& c, Diagnostics& problems);

/// Does a word of --tasks name the function: begins its signature or its hash so?
bool is_named(std::string_view word, const std::string& signature, const std::string& function);

/// Those that the words of --tasks name: signatures, hashes, or the beginnings of either, separated by commas. Throws Error TC0001 for a
/// word that names none.
std::vector<TuneTask> named_tasks(std::vector<TuneTask> all, const std::string& words);

}  // namespace tc
