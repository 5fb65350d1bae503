// Runs Loop IR and TensorFns on the host: constant folding, weight packing, the oracle of tests. Integer results are
// exact; f32 arithmetic is IEEE single without contraction; functions are computed in double and rounded, so folded
// bytes are the same on every host. Nests are compiled to a flat program over batches of lanes.
#pragma once
#include "ir/tensor_fn.h"

namespace tc {

namespace interp {
class StringPool;
}

struct RunOptions {
  int vl = 4;                             // lanes of a scalable vector
  int64_t max_steps = INT64_MAX;          // scalar operations; more throws Error TC0502 (limit)
  interp::StringPool* strings = nullptr;  // where made strings are kept; evaluate() has its own
  bool check_races = false;               // GPU loops: accesses of one element without a barrier throw InternalError
};

/// Arguments bind buffers to memory in row-major order (strides of the BufferDef are honoured).
struct Binding {
  Buffer buffer;
  uint8_t* bytes;
};
/// Runs `s`; status receives 1 if an Index was out of range. Out-of-bounds accesses throw InternalError.
void run(const Stmt& s, const std::vector<Binding>& bindings, const RunOptions& o = {}, int* status = nullptr);

/// A function made ready once, to be evaluated on many sets of constants: many weights are packed the same way.
class Evaluator {
 public:
  explicit Evaluator(const TensorFn& fn, const RunOptions& o = {});
  /// The outputs for one constant per input of the function; an output that is an input is that constant. Throws Error
  /// TC0502 (too many steps) and TC0503 (an index out of range).
  std::vector<Constant> operator()(const std::vector<Constant>& inputs);

 private:
  struct Prepared;
  std::shared_ptr<Prepared> prepared_;
};

/// Evaluates fn on constants (one per fn.inputs).
std::vector<Constant> evaluate(const TensorFn& fn, const std::vector<Constant>& inputs, const RunOptions& o = {});

}  // namespace tc
