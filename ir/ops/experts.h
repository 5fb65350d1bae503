// Experts that are chosen for rows.
#pragma once
#include "ir/ops/helpers.h"

namespace tc {

/// The expert of place i[1] of row i[0]. Experts are chosen by a TopK over them: no number is out of range, and one that were would
/// reach no further.
inline Expr chosen_expert(const Tensor& chosen, const Exprs& i, int64_t experts) {
  return min(max(cast(DType::I64, chosen({i[0], i[1]})), Expr(0)), Expr(experts - 1));
}

}  // namespace tc
