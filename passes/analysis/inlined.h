// Formulas of several stages as one.
#pragma once
#include "ir/tensor_fn.h"

namespace tc {

/// `e` with what it reads of pointwise stages of one result computed in place, but that of `stops`.
Expr inlined(const TensorFn& fn, const Expr& e, const std::vector<Buffer>& stops = {});

}  // namespace tc
