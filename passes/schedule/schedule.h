// Schedules: checked rewrites of loop nests. A Schedule starts from a TensorFn's stages and moves, splits and binds
// loops; each step is checked and refused with a reason (ScheduleError shows the loop). Loops are named by their axis,
// and split adds _o / _i, so names survive earlier steps.
#pragma once
#include <string>
#include <vector>

#include "ir/tensor_fn.h"

namespace tc {

class ScheduleError : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

/// How a kernel computes a fused function: the result of a template.
struct Scheduled {
  TensorFn prologue;  // stages that depend on constants only (packed weights): evaluated at compile time.
                      // prologue.inputs are among the function's constant operands, prologue.outputs become weights
  std::vector<Buffer> packed;                 // what the body reads: prologue.outputs[i] or a flat view of it
  std::vector<std::string> prologue_layouts;  // words per prologue output
  // Operands that the body reads. inputs[i] is fn.inputs[input_index[i]] itself or a flat view of it: a buffer of
  // rank 1 that stands for the same memory. So is outputs[k] for fn.outputs[k].
  std::vector<Buffer> inputs;
  std::vector<int> input_index;
  std::vector<Buffer> outputs;
  std::vector<Buffer> scratch;     // Workspace buffers, per chunk
  Stmt body;                       // printable Loop IR over inputs, prologue.outputs, outputs, scratch
  std::string words;               // "one row of 8 pixels by 16 channels in registers; r, s reduced outside"
  std::string family;              // template: "matmul", "conv2d", "rows", "elementwise", "naive"
  std::vector<std::string> steps;  // primitives applied
};

struct ScheduleOptions {
  bool strict_fp = false;  // the order of the definition: one accumulator per sum, no Winograd
};

}  // namespace tc
