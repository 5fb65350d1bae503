// Statistics that several normalisations share.
#pragma once
#include <string>
#include <vector>

#include "ir/ops/op.h"

namespace tc {

/// Mean and variance (of the whole population) over the reduced axes; `element` reads x as type t.
struct Moments {
  Tensor mean, variance;
};
Moments moments(OpBuilder& op, DType t, const Dims& shape, const Dims& reduced, const OpBuilder::ReducePoint& element,
                const std::vector<std::string>& names);
/// 1 / sqrt(variance + epsilon)
Expr reciprocal_root(const Expr& variance, float epsilon);

}  // namespace tc
