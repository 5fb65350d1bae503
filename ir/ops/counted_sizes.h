// What a pass hands to operators of ai.onnx that ask for sizes which are known at run time, behind the operands that models give:
// numbers of elements, i64 scalars, and the axes that they belong to.
#pragma once
#include <string_view>

#include "ir/ops/op.h"

namespace tc {

/// The axes, ints; operands follow in their order. Where it is absent all sizes are those of the types.
constexpr std::string_view kCountedAxes = "tc_counted_axes";
/// Resize: for each axis as many elements as there are, then as many as there shall be.
constexpr int kResizeCounts = 4;
/// GridSample: for each axis of the image as many elements as there are.
constexpr int kGridSampleCounts = 2;
/// RoiAlign: the same.
constexpr int kRoiAlignCounts = 3;

/// Operand i, a number of elements, as one at least: what divides by it or ends at it stays defined.
inline Expr counted_size(OpBuilder& op, int i) {
  const Tensor count = op.in(i);
  if (count.dtype() != DType::I64 || count.rank() != 0) op.reject("this input must be one number of elements", i);
  return max(count({}), Expr(1));
}

}  // namespace tc
