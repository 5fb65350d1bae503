// MatMul and its kin, and the rows of all contractions. The sum of products is a stage of its own; scaling, bias and
// rounding to a narrower type follow as elementwise stages, so that schedules see the same form everywhere.
#include "ir/ops/contraction.h"

#include "ir/ops/families.h"
#include "ir/ops/numeric.h"

namespace tc {
namespace {

Dims broadcast_batch(const OpBuilder& op, const Dims& a, const Dims& b) {
  Dims out(std::max(a.size(), b.size()));
  for (size_t k = 0; k < out.size(); k++) {
    const int64_t x = k + a.size() < out.size() ? 1 : a[k + a.size() - out.size()];
    const int64_t y = k + b.size() < out.size() ? 1 : b[k + b.size() - out.size()];
    if (x != y && x != 1 && y != 1)
      op.reject("the leading axes do not broadcast: " + to_text(x) + " against " + to_text(y));
    out[k] = x == 1 ? y : x;
  }
  return out;
}

/// The index of `t` whose trailing axes are (second_last, last) and whose leading axes broadcast against batch.
Exprs batched_index(const Tensor& t, const Exprs& batch, const Expr& second_last, const Expr& last) {
  const Dims d = t.dims();
  Exprs i;
  const size_t leading = d.size() - 2;
  for (size_t k = 0; k < leading; k++) i.push_back(d[k] == 1 ? Expr(0) : batch[batch.size() - leading + k]);
  i.push_back(second_last);
  i.push_back(last);
  return i;
}

/// A scale or zero point of one matrix operand: one value, one per row (column) or [batch..., rows, 1] ([..., 1,
/// columns]).
Expr matrix_parameter(OpBuilder& op, int input, const MatrixProduct& p, const Exprs& i, bool per_row) {
  const Tensor t = op.in(input);
  const Dims d = t.dims();
  if (has_one_element(d)) return only_element(t);
  const Expr position = per_row ? p.row_of(i) : p.column_of(i);
  const int64_t extent = per_row ? p.m : p.n;
  if (d.size() == 1) {
    if (d[0] != extent) op.reject("this input must hold one value or " + to_text(extent), input);
    return t({position});
  }
  const int64_t own = per_row ? d[d.size() - 2] : d.back();
  const int64_t other = per_row ? d.back() : d[d.size() - 2];
  if (other != 1 || (own != extent && own != 1) || d.size() > p.batch.size() + 2)
    op.reject("the shape of this input fits neither a whole tensor nor its rows or columns", input);
  const Expr at = own == 1 ? Expr(0) : position;
  return t(batched_index(t, p.batch_of(i), per_row ? at : Expr(0), per_row ? Expr(0) : at));
}

/// The i32 value of a quantised element, its zero point taken away (nothing is taken away if it is known to be zero).
Expr minus_zero_point(OpBuilder& op, const Expr& value, int zero_point, const MatrixProduct& p, const Exprs& i,
                      bool per_row) {
  const DType t = is_float(value->dtype) ? DType::F32 : DType::I32;
  if (!op.has(zero_point) || is_zero_constant(op, zero_point)) return cast(t, value);
  return cast(t, value) - cast(t, matrix_parameter(op, zero_point, p, i, per_row));
}

Tensor quantized_product(OpBuilder& op, const MatrixProduct& p, int a, int a_zero, int b, int b_zero) {
  const Tensor x = op.in(a), y = op.in(b);
  if (is_float(x.dtype()) != is_float(y.dtype())) op.unsupported("an integer matrix times a float8 matrix");
  const DType t = is_float(x.dtype()) ? DType::F32 : DType::I32;
  return op.reduce(
      "matmul_integer", Op::Add, t, p.dims(), {p.k},
      [&](const Exprs& i, const Exprs& r) {
        return minus_zero_point(op, left_element(p, x, i, r[0]), a_zero, p, i, true) *
               minus_zero_point(op, right_element(p, y, i, r[0]), b_zero, p, i, false);
      },
      p.names());
}

}  // namespace

Dims MatrixProduct::dims() const {
  Dims d = batch;
  if (!row_vector) d.push_back(m);
  if (!column_vector) d.push_back(n);
  return d;
}

std::vector<std::string> MatrixProduct::names() const {
  std::vector<std::string> v;
  for (size_t k = 0; k < batch.size(); k++) v.push_back(batch.size() == 1 ? "b" : "b" + to_text(int64_t(k)));
  if (!row_vector) v.push_back("m");
  if (!column_vector) v.push_back("n");
  v.push_back("k");
  return v;
}

MatrixProduct matrix_product(const OpBuilder& op, const Tensor& a, const Tensor& b, int operand_a, int operand_b) {
  const Dims x = a.dims(), y = b.dims();
  if (x.empty()) op.reject("a scalar cannot be multiplied as a matrix", operand_a);
  if (y.empty()) op.reject("a scalar cannot be multiplied as a matrix", operand_b);
  MatrixProduct p;
  p.row_vector = x.size() == 1;
  p.column_vector = y.size() == 1;
  p.k = x.back();
  p.m = p.row_vector ? 1 : x[x.size() - 2];
  p.n = p.column_vector ? 1 : y.back();
  const int64_t k = p.column_vector ? y[0] : y[y.size() - 2];
  if (k != p.k) op.reject("the inner sizes differ: " + to_text(p.k) + " against " + to_text(k), operand_b);
  p.batch = broadcast_batch(op, p.row_vector ? Dims() : Dims(x.begin(), x.end() - 2),
                            p.column_vector ? Dims() : Dims(y.begin(), y.end() - 2));
  return p;
}

Expr left_element(const MatrixProduct& p, const Tensor& a, const Exprs& i, const Expr& k) {
  return p.row_vector ? a({k}) : a(batched_index(a, p.batch_of(i), p.row_of(i), k));
}

Expr right_element(const MatrixProduct& p, const Tensor& b, const Exprs& i, const Expr& k) {
  return p.column_vector ? b({k}) : b(batched_index(b, p.batch_of(i), k, p.column_of(i)));
}

Expr requantize(const Expr& accumulator, const Expr& scale, const Expr& zero_point, DType t) {
  const Expr scaled = cast(DType::F32, accumulator) * scale;
  if (is_float(t)) return cast(t, zero_point ? scaled + cast(DType::F32, zero_point) : scaled);
  Expr y = apply(Op::Round, {scaled});
  if (zero_point) y = y + cast(DType::F32, zero_point);
  const Expr low = make_const(DType::F32, double(*as_const_int(lowest(t))));
  const Expr high = make_const(DType::F32, double(*as_const_int(highest(t))));
  return cast(t, min(max(y, low), high));
}

/// The products in the type that the factors are computed in. `count`: of how many terms; null: of all.
Tensor wide_product(OpBuilder& op, const Expr& count = {}) {
  const Tensor a = op.in(0), b = op.in(1);
  const MatrixProduct p = matrix_product(op, a, b, 0, 1);
  const DType t = compute_type(a.dtype());
  return op.reduce(
      "matmul", Op::Add, t, p.dims(), {p.k},
      [&](const Exprs& i, const Exprs& r) {
        const Expr term = widen(left_element(p, a, i, r[0])) * widen(right_element(p, b, i, r[0]));
        return count ? select(r[0] < count, term, zero(t)) : term;
      },
      p.names());
}

void define_matmul(OpBuilder& op) { op.output(0, convert(op, wide_product(op), op.in(0).dtype(), "cast")); }

/// MatMul of the first `count` columns of a and rows of b. What lies behind them may be anything.
void define_counted_matmul(OpBuilder& op) {
  op.output(0, convert(op, wide_product(op, op.in(2)({})), op.in(0).dtype(), "cast"));
}

/// A product times a number, rounded to halves once: what is between may be out of their range.
void define_scaled_matmul(OpBuilder& op) {
  const Tensor y = wide_product(op);
  const Expr scale = parameter(y.dtype(), op.attr_float("scale", 1));
  const Tensor scaled = op.compute("mul", y.dtype(), y.dims(), [&](const Exprs& i) { return y(i) * scale; });
  op.output(0, convert(op, scaled, op.in(0).dtype(), "cast"));
}

void define_gemm(OpBuilder& op) {
  const Tensor a = op.in(0), b = op.in(1);
  if (a.rank() != 2) op.reject("this input must be a matrix", 0);
  if (b.rank() != 2) op.reject("this input must be a matrix", 1);
  const bool ta = op.attr_int("transA") != 0, tb = op.attr_int("transB") != 0;
  const int64_t m = a.dim(ta ? 1 : 0), k = a.dim(ta ? 0 : 1), n = b.dim(tb ? 0 : 1);
  if (b.dim(tb ? 1 : 0) != k)
    op.reject("the inner sizes differ: " + to_text(k) + " against " + to_text(b.dim(tb ? 1 : 0)), 1);
  const float alpha = op.attr_float("alpha", 1), beta = op.attr_float("beta", 1);
  const DType t = compute_type(a.dtype());
  // Integer matrices scale in f64, as no integer product with a fraction is defined otherwise.
  auto scaled = [&](float factor, const Expr& x) {
    if (is_float(t)) return parameter(t, factor) * x;
    return cast(t, make_float(DType::F64, double(factor)) * cast(DType::F64, x));
  };
  Tensor y =
      op.reduce("dense", Op::Add, t, {m, n}, {k},
                [&](const Exprs& i, const Exprs& r) {
                  return widen(ta ? a({r[0], i[0]}) : a({i[0], r[0]})) * widen(tb ? b({i[1], r[0]}) : b({r[0], i[1]}));
                },
                {"m", "n", "k"});
  if (alpha != 1)
    y = op.compute("scaled", t, {m, n}, [&, y](const Exprs& i) { return scaled(alpha, y(i)); }, {"m", "n"});
  if (op.has(2) && beta != 0) {
    const Tensor c = op.in(2);
    const Dims d = c.dims();
    for (size_t k0 = 0; k0 < d.size(); k0++)
      if (d.size() > 2 || (d[d.size() - 1 - k0] != 1 && d[d.size() - 1 - k0] != (k0 == 0 ? n : m)))
        op.reject("C does not broadcast to the result", 2);
    y = op.compute("bias", t, {m, n},
                   [&, y](const Exprs& i) {
                     const Expr bias = widen(c.broadcast_at(i));
                     return y(i) + (beta == 1 ? bias : scaled(beta, bias));
                   },
                   {"m", "n"});
  }
  op.output(0, convert(op, y, a.dtype(), "cast"));
}

void define_matmul_integer(OpBuilder& op) {
  const MatrixProduct p = matrix_product(op, op.in(0), op.in(1), 0, 1);
  op.output(0, quantized_product(op, p, 0, 2, 1, 3));
}

void define_qlinear_matmul(OpBuilder& op) {
  const MatrixProduct p = matrix_product(op, op.in(0), op.in(3), 0, 3);
  const Tensor acc = quantized_product(op, p, 0, 2, 3, 5);
  const DType t = op.in(7).dtype();
  op.output(0, op.compute("requantize", t, p.dims(), [&](const Exprs& i) {
    auto f32 = [](const Expr& e) { return cast(DType::F32, e); };
    const Expr scale = f32(matrix_parameter(op, 1, p, i, true)) * f32(matrix_parameter(op, 4, p, i, false)) /
                       f32(matrix_parameter(op, 6, p, i, true));
    const Expr zero = is_zero_constant(op, 7) ? Expr() : matrix_parameter(op, 7, p, i, true);
    return requantize(acc(i), scale, zero, t);
  }));
}

OpFamily contraction_ops() {
  const std::vector<AttrSpec> conv = {int_attr("group", 1),       optional_attr("kernel_shape"),
                                      optional_attr("pads"),      optional_attr("strides"),
                                      optional_attr("dilations"), string_attr("auto_pad", "NOTSET")};
  std::vector<AttrSpec> laid_out = conv;
  laid_out.push_back(string_attr("data_layout", "NCHW"));
  std::vector<AttrSpec> transposed = laid_out;
  transposed.push_back(optional_attr("output_padding"));
  transposed.push_back(optional_attr("output_shape"));
  const std::vector<AttrSpec> deform = {int_attr("group", 1),          int_attr("offset_group", 1),
                                        optional_attr("kernel_shape"), optional_attr("pads"),
                                        optional_attr("strides"),      optional_attr("dilations")};
  return {
      {"MatMul", 13, {}, define_matmul, "a b"},
      {"counted_matmul", 1, {}, define_counted_matmul, "a b count", "matmul", "tc"},
      {"scaled_matmul", 1, {float_attr("scale", 1)}, define_scaled_matmul, "a b", "matmul", "tc"},
      {"Gemm",
       13,
       {float_attr("alpha", 1), float_attr("beta", 1), int_attr("transA", 0), int_attr("transB", 0)},
       define_gemm,
       "a b c",
       "dense"},
      {"MatMulInteger", 10, {}, define_matmul_integer, "a b a_zero b_zero"},
      {"QLinearMatMul", 21, {}, define_qlinear_matmul, "a a_scale a_zero b b_scale b_zero y_scale y_zero", "qmatmul"},
      {"Einsum", 28, {optional_attr("equation")}, define_einsum, "x"},
      {"Conv", 22, laid_out, define_conv, "x w b"},
      {"ConvInteger", 10, laid_out, define_conv_integer, "x w x_zero w_zero"},
      {"QLinearConv", 10, laid_out, define_qlinear_conv, "x x_scale x_zero w w_scale w_zero y_scale y_zero b", "qconv"},
      {"ConvTranspose", 22, transposed, define_conv_transpose, "x w b"},
      {"DeformConv", 22, deform, define_deform_conv, "x w offset b mask"},
  };
}

}  // namespace tc
