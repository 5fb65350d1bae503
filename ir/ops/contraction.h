// The definitions behind contraction_ops(): sums of products.
#pragma once
#include "ir/ops/op.h"

namespace tc {

/// Conv with its bias, in the compute type.
Tensor conv(OpBuilder& op);

void define_matmul(OpBuilder& op);
void define_gemm(OpBuilder& op);
void define_matmul_integer(OpBuilder& op);
void define_qlinear_matmul(OpBuilder& op);
void define_einsum(OpBuilder& op);
void define_conv(OpBuilder& op);
void define_conv_integer(OpBuilder& op);
void define_qlinear_conv(OpBuilder& op);
/// Are weights known that times zero are no zero, infinities and NaN? False of null.
bool has_infinite_weights(const Constant& w);
void define_conv_transpose(OpBuilder& op);
void define_deform_conv(OpBuilder& op);

/// How two matrices of NumPy's matmul meet: 1-D operands are a row or a column, the leading axes broadcast.
struct MatrixProduct {
  Dims batch;  // broadcast leading axes
  int64_t m = 1, n = 1, k = 1;
  bool row_vector = false, column_vector = false;  // operand 0, operand 1 is 1-D
  Dims dims() const;
  /// Splits an index of the result.
  Exprs batch_of(const Exprs& i) const { return Exprs(i.begin(), i.begin() + std::ptrdiff_t(batch.size())); }
  Expr row_of(const Exprs& i) const { return row_vector ? Expr(0) : i[batch.size()]; }
  Expr column_of(const Exprs& i) const { return column_vector ? Expr(0) : i.back(); }
  std::vector<std::string> names() const;  // b.., m, n, k
};
MatrixProduct matrix_product(const OpBuilder& op, const Tensor& a, const Tensor& b, int operand_a, int operand_b);
/// Element (row, k) of a and (k, column) of b.
Expr left_element(const MatrixProduct& p, const Tensor& a, const Exprs& i, const Expr& k);
Expr right_element(const MatrixProduct& p, const Tensor& b, const Exprs& i, const Expr& k);

/// round(accumulator * scale) + zero_point, saturated to t. `accumulator` is i32 or f32, `scale` f32.
Expr requantize(const Expr& accumulator, const Expr& scale, const Expr& zero_point, DType t);

}  // namespace tc
