// How scales and zero points are spread over a quantised tensor: one for all of it, for each slice of an axis, or for each block.
#pragma once
#include "ir/ops/helpers.h"

namespace tc {

struct Granularity {
  int axis = 0;
  int64_t block = 0;  // > 0: one value for so many elements along the axis

  /// That of element i, of the scales or zero points p.
  Expr at(const Tensor& p, const Exprs& i) const;
};

/// Reads axis and block_size and checks the shape of the scale (and the zero point) against operand `quantized`.
Granularity read_granularity(OpBuilder& op, int quantized, int scale, int zero_point);

}  // namespace tc
