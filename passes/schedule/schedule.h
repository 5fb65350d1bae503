// What a schedule is: the loops that compute a fused function, with what was decided for them. The templates of
// templates/cpu and templates/cuda make them; the rest of the compiler sees only this result.
#pragma once
#include <string>
#include <vector>

#include "ir/precision.h"
#include "ir/tensor_fn.h"

namespace tc {

/// How a kernel computes a fused function: the result of a template.
struct Scheduled {
  TensorFn prologue;  // stages that depend on constants only (packed weights): evaluated at compile time.
                      // prologue.inputs are among the function's constant operands, prologue.outputs become weights
  std::vector<std::string> prologue_layouts;  // descriptions per prologue output
  std::vector<Buffer> inputs;                 // operands that the body reads: fn.inputs[input_index[i]]
  std::vector<int> input_index;
  std::vector<Buffer> outputs;  // fn.outputs, in order
  // Buffers of rank 1 in the body that stand for the memory of an input, an output or a prologue output.
  struct View {
    Buffer flat, of;
  };
  std::vector<View> views;
  std::vector<Buffer> scratch;  // Workspace buffers, per chunk
  Stmt body;                    // printable Loop IR over inputs, prologue.outputs, outputs, scratch
  std::string description;      // "one row of 8 pixels by 16 channels in registers; r, s reduced outside"
  std::string family;           // template: "matmul", "rows", "elementwise", "naive"
  std::vector<std::string>
      steps;  // the lines of its plan, as schedules state them: "tile(rows = 6, columns = 32)", "split(i, 8) as i_o, i_i"
  std::string replaced;  // the operand whose memory the output takes over; "": none
  int64_t macs = -1;     // multiply-accumulates, where they are others than the definition's; -1: the same
  int row_axis = -1;  // of the output: rows are computed together, and one takes the time of several; -1: there is none
  /// A size that the caller chooses: an i64 scalar among the inputs, and its bounds.
  struct ChosenSize {
    Buffer buffer;
    int64_t least = 0, most = 0;
  };
  /// What nobody needs of an output: along `axis` the elements from `end` on, an expression over loads of sizes. Not the
  /// template's business; see passes/loop/trim_loops.h and trim_grids.h.
  struct Live {
    Buffer output;
    int axis = 0;
    Expr end;
    std::vector<ChosenSize> sizes;
    bool on_host = false;  // CUDA: the host knows the sizes
  };
  std::vector<Live> live = {};
};

class Planner;

struct ScheduleOptions {
  bool strict_fp = false;     // the order of the definition: one accumulator per sum, no Winograd
  bool winograd = true;       // transformed 3 x 3 convolutions: as exact as the direct sums, but other roundings
  bool fetch_ahead = true;    // CPU: weights come from memory, each once, so that loops ask for the next ones early
  int64_t panel_columns = 0;  // CPU: of packed weights that another function reads, too; 0: the model decides
  /// CPU: where the columns of packed panels are given, they may be too many for the registers, and are walked in strips.
  bool wide_panels = false;
  Precision precision = Precision::F32;  // CUDA: of the factors of sums of products
  /// Of the first output: a run may need only the first elements along these (Scheduled::Live). Loops over long ones stay apart
  /// from those around them, so that they can end early.
  std::vector<int> open_axes = {};
  Planner* planner = nullptr;  // hears what is decided, or says it; null: the model decides. Not owned
};

}  // namespace tc
