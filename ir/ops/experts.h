// Experts that are chosen for rows.
#pragma once
#include "ir/ops/helpers.h"

namespace tc {

/// The expert of place i[1] of row i[0]. Experts are chosen by a TopK over them: no number is out of range, and one that were would
/// reach no further.
inline Expr chosen_expert(const Tensor& chosen, const Exprs& i, int64_t experts) {
  return min(max(cast(DType::I64, chosen({i[0], i[1]})), Expr(0)), Expr(experts - 1));
}

/// y[t, j, n] = sum[t, j, n] + bias[e, n], e = chosen[t, j], is the output; without the operand `bias`, the sum is.
inline void output_with_bias(OpBuilder& op, const Tensor& sum, int bias, const Tensor& chosen, int64_t experts) {
  const Dims d = sum.dims();
  if (!op.has(bias)) return op.output(0, sum);
  if (op.in(bias).dims() != Dims{experts, d[2]}) op.reject("the bias does not fit the weights", bias);
  op.output(0, op.compute("bias", DType::F32, d,
                          [&](const Exprs& i) {
                            return sum(i) + widen(op.in(bias)({chosen_expert(chosen, i, experts), i[2]}));
                          },
                          {"t", "j", "n"}));
}

}  // namespace tc
