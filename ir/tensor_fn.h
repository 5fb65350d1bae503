// TensorFn: the meaning of an operator or of a fused function, as stages of tensor expressions over Loop IR.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "ir/loop/ir.h"

namespace tc {

struct Axis {
  Var var;
  Dim extent;
};

/// How partial results of a reduction join: result = f(lhs, rhs), one component per value. Associative and commutative.
/// `op` is set for the plain ones (Add, Mul, Max, Min, And, Or), then the vectors are empty.
struct Combiner {
  std::optional<Op> op;
  std::vector<Var> lhs, rhs;
  Exprs result;
};

/// One step: defines its output buffers completely (except Nest, which may read-modify-write what it allocates).
struct Stage {
  enum class Kind {
    Compute,  // out[axes] = value
    Reduce,   // out[axes] = combine over raxes of value, starting from init
    Nest,     // `nest` is Loop IR that fills `outputs` (scatter, sort ...); reads and writes them by name
  } kind = Kind::Compute;
  std::string name;               // for kernel names and comments: "conv2d", "relu"
  std::vector<Axis> axes, raxes;  // data-parallel and reduction axes
  Exprs values;                   // one per output; reads Load{buffer, index} of inputs and earlier stages
  Combiner combiner;              // Reduce
  Exprs init;                     // Reduce: identity (or a value that joins first), one per output
  std::vector<Buffer> outputs;    // shape = extents of axes; several only for tuple reductions and Nest
  Stmt nest;                      // Nest
  /// Stages with the same scan id >= 0 advance together along axes[0], in list order: at step t each may read its own
  /// group's buffers at steps < t (and earlier stages' at t). CumSum, RNN, LSTM, GRU.
  int scan = -1;
};

struct TensorFn {
  std::vector<Buffer> inputs;      // one per operand that is read, in operand order
  std::vector<Stage> stages;       // topological
  std::vector<Buffer> outputs;     // each an output of a stage, or an input (identity)
  std::vector<int> operands = {};  // the node's operand behind each input; empty: 0, 1, 2, ...
};

/// "x: f32[1,3], y: ...\n conv2d[n, oc] = sum(ic) x[...] * ..." : one line a stage.
std::string to_text(const TensorFn& fn);
std::string to_text(const Stage& s);

/// Every invariant of the above; throws InternalError naming the stage.
void verify(const TensorFn& fn);

/// The stage that defines `b`, null for inputs.
const Stage* producer(const TensorFn& fn, const Buffer& b);

/// A copy with fresh buffers and variables (stages inserted twice must not share identities).
/// `inputs` replace fn.inputs one by one.
TensorFn instantiate(const TensorFn& fn, const std::vector<Buffer>& inputs);

/// The plain loops: every stage a nest in order, temporaries in Workspace. Free buffers: fn.inputs and fn.outputs.
Stmt lower_naive(const TensorFn& fn);

/// What a computation looks like to fusion and schedules; derived from the stages, never declared.
enum class Pattern { View, Elementwise, Broadcast, Injective, Reduction, Contraction, Opaque };
Pattern pattern_of(const TensorFn& fn);
/// Does element `index` of a tensor of the sizes `from`, over the axes of a result of as many elements, run through it in the order
/// of memory?
bool keeps_order(const Exprs& index, const Dims& from, const std::vector<Axis>& axes, const Dims& to);

}  // namespace tc
