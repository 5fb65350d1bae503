// A definition and what its names stand for -> stages.
#pragma once
#include "ir/language/evaluator.h"
#include "ir/tensor_fn.h"

namespace tc::language {

struct Elaborated {
  std::vector<Stage> stages;
  std::vector<Buffer> outputs;  // in the order of the definition
};

/// The stages of `d`; `names` holds its operands, sizes, types and attributes. Mistakes go to `problems`, one of each stage
/// and result; what comes with them is of no use. Every access of an op is inside of its tensor, or is a problem.
Elaborated elaborate(const Definition& d, Names names, Mode mode, Problems& problems);

}  // namespace tc::language
