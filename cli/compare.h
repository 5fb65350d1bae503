// What a model's program computes, beside what a reference does.
#pragma once
#include <string>
#include <vector>

#include "cli/options.h"

namespace tc {

struct AgainstReference {
  struct Output {
    ModelText name;
    std::string difference;  // "max abs 0  max rel 0  max ulp 0  PASS ..."
    bool differs = false;
  };
  std::string against;  // "ONNX Runtime"
  std::string text;     // what the program has printed: a line an output
  bool same = false;
  std::vector<Output> outputs;  // without counts
};

/// Emits, builds and runs the model on inputs from --seed, and compares with the reference that the command line asks for,
/// or with the best there is. Where the model has problems, they go to `problems`, and the result means nothing. Throws Error
/// TC0701 where a tool fails.
AgainstReference compare_with_reference(const CommandLine& c, Diagnostics& problems);

}  // namespace tc
