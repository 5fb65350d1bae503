// The quantised operators of ONNX Runtime's quantiser (domain com.microsoft): dequantise, compute in f32, requantise.
// The three steps are stages, so that fusion sees the same graph as for a model with QuantizeLinear and
// DequantizeLinear.
#include <algorithm>

#include "ir/ops/contraction.h"
#include "ir/ops/numeric.h"
#include "ir/ops/parts.h"
#include "ir/ops/window.h"

namespace tc {
namespace {

constexpr DType kF32 = DType::F32;

Expr scalar(OpBuilder& op, int input) {
  const Tensor t = op.in(input);
  if (!has_one_element(t.dims())) op.unsupported("a scale or zero point with more than one value", input);
  return only_element(t);
}

/// (x - zero) * scale in f32, where the zero point may be absent.
Expr real_value(OpBuilder& op, const Expr& x, int scale, int zero_point) {
  require_number(op, x->dtype, scale - 1);
  Expr v = cast(DType::I32, x);
  if (op.has(zero_point) && !is_zero_constant(op, zero_point)) v = v - cast(DType::I32, scalar(op, zero_point));
  return cast(kF32, v) * scalar(op, scale);
}

Tensor dequantized(OpBuilder& op, int x, int scale, int zero_point) {
  const Tensor t = op.in(x);
  return op.compute("dequantize", kF32, t.dims(),
                    [&](const Exprs& i) { return real_value(op, t(i), scale, zero_point); });
}

/// round(v / scale) + zero point as type t.
Expr quantized_value(OpBuilder& op, const Expr& v, int scale, int zero_point, DType t) {
  const Expr zero = op.has(zero_point) && !is_zero_constant(op, zero_point) ? scalar(op, zero_point) : Expr();
  return requantize(v / scalar(op, scale), make_const(kF32, 1), zero, t);
}

DType quantized_type(OpBuilder& op, int zero_point, int otherwise) {
  return op.in(op.has(zero_point) ? zero_point : otherwise).dtype();
}

void output_quantized(OpBuilder& op, const Tensor& v, int scale, int zero_point, DType t) {
  op.output(0, op.compute("requantize", t, v.dims(),
                          [&](const Exprs& i) { return quantized_value(op, v(i), scale, zero_point, t); }));
}

Define binary(std::function<Expr(Expr, Expr)> f) {
  return [f](OpBuilder& op) {
    const Tensor a = op.in(0), b = op.in(3);
    const DType t = quantized_type(op, 7, 0);
    op.output(0, op.compute(stage_label(op), t, broadcast_dims(op, {a, b}), [&](const Exprs& i) {
      const Expr v = f(real_value(op, a.broadcast_at(i), 1, 2), real_value(op, b.broadcast_at(i), 4, 5));
      return quantized_value(op, v, 6, 7, t);
    }));
  };
}

Define unary(std::function<Expr(OpBuilder&, Expr)> f) {
  return [f](OpBuilder& op) {
    const Tensor x = op.in(0);
    const DType t = quantized_type(op, 4, 0);
    op.output(0, op.compute(stage_label(op), t, x.dims(), [&](const Exprs& i) {
      return quantized_value(op, f(op, real_value(op, x(i), 1, 2)), 3, 4, t);
    }));
  };
}

Define average(bool global) {
  return [global](OpBuilder& op) {
    const Layout layout{op.attr_int("channels_last", 0) != 0};
    output_quantized(op, average_pool(op, dequantized(op, 0, 1, 2), layout, global), 3, 4, quantized_type(op, 4, 0));
  };
}

void define_qsoftmax(OpBuilder& op) {
  const Tensor x = dequantized(op, 0, 1, 2);
  const int axis = op.axis(op.attr_int("axis", -1), x.rank());
  std::vector<int64_t> axes = {axis};
  if (op.attr_int("opset", 13) < 13)
    for (int k = axis + 1; k < x.rank(); k++) axes.push_back(k);
  const Reduction over = reduction_over(op, x.dims(), axes, false);
  const Tensor top = reduce_over(op, "max", Op::Max, kF32, over, [&](const Exprs& i) { return x(i); });
  const Tensor e =
      op.compute("exp", kF32, x.dims(), [&](const Exprs& i) { return exp(x(i) - top(over.result_at(i))); });
  const Tensor sum = reduce_over(op, "sum", Op::Add, kF32, over, [&](const Exprs& i) { return e(i); });
  const Tensor y = op.compute("softmax", kF32, x.dims(), [&](const Exprs& i) { return e(i) / sum(over.result_at(i)); });
  output_quantized(op, y, 3, 4, quantized_type(op, 4, 0));
}

/// Inputs: scale and zero point of the result, then (x, scale, zero point) for every part.
void define_qconcat(OpBuilder& op) {
  const int parts = (op.num_inputs() - 2) / 3;
  if (parts < 1 || op.num_inputs() != 2 + 3 * parts)
    op.reject("the inputs must be triples of a tensor, a scale and a zero point");
  const DType t = op.in(1).dtype();
  const int rank = op.in(2).rank(), axis = op.axis(op.attr_int("axis", 0), rank);
  Dims dims = op.in(2).dims();
  std::vector<int64_t> begin = {0};
  for (int k = 0; k < parts; k++) {
    const Tensor x = op.in(2 + 3 * k);
    Dims own = x.dims();
    if (x.rank() != rank) op.reject("the parts have different ranks", 2 + 3 * k);
    begin.push_back(begin.back() + own[size_t(axis)]);
    own[size_t(axis)] = dims[size_t(axis)];
    if (own != dims) op.reject("the parts differ outside of the axis", 2 + 3 * k);
  }
  dims[size_t(axis)] = begin.back();
  op.output(0, op.compute("qconcat", t, dims, [&](const Exprs& i) {
    Expr y;
    for (int k = parts; k-- > 0;) {
      const Expr at = i[size_t(axis)] - begin[size_t(k)];
      const Expr v = real_value(op, op.in(2 + 3 * k)(with_axis(i, axis, at)), 3 + 3 * k, 4 + 3 * k);
      const Expr q = quantized_value(op, v, 0, 1, t);
      y = y ? select(i[size_t(axis)] < begin[size_t(k) + 1], q, y) : q;
    }
    return y;
  }));
}

/// An i32 product of a quantised activation and weight matrix; zero points are scalars, those of b also per column.
Tensor integer_product(OpBuilder& op, const MatrixProduct& p,
                       const std::function<Expr(const Exprs&, const Expr&)>& left,
                       const std::function<Expr(const Exprs&, const Expr&)>& right) {
  return op.reduce(
      "matmul_integer", Op::Add, DType::I32, p.dims(), {p.k},
      [&](const Exprs& i, const Exprs& r) { return left(i, r[0]) * right(i, r[0]); }, p.names());
}

Expr per_column(OpBuilder& op, int input, const Expr& column, int64_t columns) {
  const Tensor t = op.in(input);
  if (has_one_element(t.dims())) return only_element(t);
  if (t.dims() != Dims{columns})
    op.unsupported("a scale or zero point that is neither scalar nor one per column", input);
  return t({column});
}

/// value - zero point in i32; the zero point, where it is given, belongs to the column.
Expr minus_zero_point(OpBuilder& op, const Expr& value, int zero_point, const Expr& column, int64_t columns) {
  require_number(op, value->dtype, -1);
  const Expr v = cast(DType::I32, value);
  if (!op.has(zero_point) || is_zero_constant(op, zero_point)) return v;
  return v - cast(DType::I32, per_column(op, zero_point, column, columns));
}

/// Inputs: a, its scale and zero point, b, its scale and zero point, c; scale and zero point of y, or none for floats.
void define_qgemm(OpBuilder& op) {
  const Tensor a = op.in(0), b = op.in(3);
  if (a.rank() != 2 || b.rank() != 2) op.reject("both operands must be matrices");
  const bool ta = op.attr_int("transA", 0) != 0, tb = op.attr_int("transB", 0) != 0;
  MatrixProduct p;
  p.m = a.dim(ta ? 1 : 0);
  p.k = a.dim(ta ? 0 : 1);
  p.n = b.dim(tb ? 0 : 1);
  if (b.dim(tb ? 1 : 0) != p.k) op.reject("the inner sizes differ", 3);
  Tensor acc = integer_product(
      op, p,
      [&](const Exprs& i, const Expr& k) {
        return minus_zero_point(op, ta ? a({k, i[0]}) : a({i[0], k}), 2, 0, 1);
      },
      [&](const Exprs& i, const Expr& k) {
        return minus_zero_point(op, tb ? b({i[1], k}) : b({k, i[1]}), 5, i[1], p.n);
      });
  if (op.has(6)) {
    const Tensor c = op.in(6);
    if (c.dtype() != DType::I32) op.reject("the bias must be of type int32", 6);
    require_broadcast(op, 6, p.dims());
    acc = op.compute("bias", DType::I32, p.dims(), [&, acc](const Exprs& i) { return acc(i) + c.broadcast_at(i); });
  }
  const Expr alpha = parameter(kF32, op.attr_float("alpha", 1));
  const Tensor y = op.compute("scaled", kF32, p.dims(), [&](const Exprs& i) {
    return cast(kF32, acc(i)) * (alpha * scalar(op, 1) * per_column(op, 4, i[1], p.n));
  });
  if (!op.has(7)) return op.output(0, y);
  output_quantized(op, y, 7, 8, quantized_type(op, 8, 0));
}

/// Inputs: a, b, a's scale, b's scale, a's zero point, b's zero point, bias.
void define_matmul_integer_to_float(OpBuilder& op) {
  const Tensor a = op.in(0), b = op.in(1);
  const MatrixProduct p = matrix_product(op, a, b, 0, 1);
  const Tensor acc = integer_product(
      op, p, [&](const Exprs& i, const Expr& k) { return minus_zero_point(op, left_element(p, a, i, k), 4, 0, 1); },
      [&](const Exprs& i, const Expr& k) {
        return minus_zero_point(op, right_element(p, b, i, k), 5, p.column_of(i), p.n);
      });
  if (op.has(6)) require_broadcast(op, 6, p.dims());
  op.output(0, op.compute("dequantize", kF32, p.dims(), [&](const Exprs& i) {
    const Expr v = cast(kF32, acc(i)) * (scalar(op, 2) * per_column(op, 3, p.column_of(i), p.n));
    return op.has(6) ? v + op.in(6).broadcast_at(i) : v;
  }));
}

/// Inputs: a (floats), b, b's scale, b's zero point, bias. a is quantised by its own range, as DynamicQuantizeLinear
/// does.
void define_dynamic_quantize_matmul(OpBuilder& op) {
  const Tensor a = op.in(0), b = op.in(1);
  const MatrixProduct p = matrix_product(op, a, b, 0, 1);
  const DynamicQuantization q = dynamic_quantization(op, a);
  const Tensor acc = integer_product(
      op, p,
      [&](const Exprs& i, const Expr& k) {
        return cast(DType::I32, left_element(p, q.y, i, k)) - cast(DType::I32, q.zero_point({}));
      },
      [&](const Exprs& i, const Expr& k) {
        return minus_zero_point(op, right_element(p, b, i, k), 3, p.column_of(i), p.n);
      });
  if (op.has(4)) require_broadcast(op, 4, p.dims());
  op.output(0, op.compute("dequantize", kF32, p.dims(), [&](const Exprs& i) {
    const Expr v = cast(kF32, acc(i)) * (q.scale({}) * per_column(op, 2, p.column_of(i), p.n));
    return op.has(4) ? v + op.in(4).broadcast_at(i) : v;
  }));
}

}  // namespace

OpFamily qlinear_ops() {
  const std::string_view ms = "com.microsoft", two = "a a_scale a_zero b b_scale b_zero y_scale y_zero",
                         one = "x x_scale x_zero y_scale y_zero";
  const AttrSpec last = int_attr("channels_last", 0);
  const std::vector<AttrSpec> pool = {last,
                                      optional_attr("kernel_shape"),
                                      optional_attr("pads"),
                                      optional_attr("strides"),
                                      string_attr("auto_pad", "NOTSET"),
                                      int_attr("ceil_mode", 0),
                                      int_attr("count_include_pad", 0)};
  auto leaky = [](OpBuilder& op, Expr x) {
    return select(x < zero(kF32), parameter(kF32, op.attr_float("alpha", 0.01f)) * x, x);
  };
  auto sigmoid = [](OpBuilder&, Expr x) { return apply(Op::Sigmoid, {x}); };
  return {
      {"QLinearAdd", 1, {}, binary([](Expr a, Expr b) { return a + b; }), two, "qadd", ms},
      {"QLinearMul", 1, {}, binary([](Expr a, Expr b) { return a * b; }), two, "qmul", ms},
      {"QLinearLeakyRelu", 1, {float_attr("alpha", 0.01f)}, unary(leaky), one, "qleaky_relu", ms},
      {"QLinearSigmoid", 1, {}, unary(sigmoid), one, "qsigmoid", ms},
      {"QLinearAveragePool", 1, pool, average(false), one, "qavg_pool", ms},
      {"QLinearGlobalAveragePool", 1, {last}, average(true), one, "qavg_pool", ms},
      {"QLinearSoftmax", 1, {int_attr("axis", -1), optional_attr("opset")}, define_qsoftmax, one, "qsoftmax", ms},
      {"QLinearConcat", 1, {optional_attr("axis")}, define_qconcat, "y_scale y_zero x", "qconcat", ms},
      {"QGemm",
       1,
       {int_attr("transA", 0), int_attr("transB", 0), float_attr("alpha", 1)},
       define_qgemm,
       "a a_scale a_zero b b_scale b_zero c y_scale y_zero",
       "qdense",
       ms},
      {"MatMulIntegerToFloat", 1, {}, define_matmul_integer_to_float, "a b a_scale b_scale a_zero b_zero bias", "", ms},
      {"DynamicQuantizeMatMul", 1, {}, define_dynamic_quantize_matmul, "a b b_scale b_zero bias", "", ms},
  };
}

}  // namespace tc
