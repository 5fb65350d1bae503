// Quantisation to integers and narrow floats, and back: per tensor, per axis or per block.
#include "ir/ops/families.h"
#include "ir/ops/granularity.h"
#include "ir/ops/numeric.h"
#include "ir/ops/parts.h"

namespace tc {
namespace {

/// value in `precision`, held in its compute type.
Expr in_precision(DType precision, const Expr& value) { return widen(cast(precision, value)); }

/// round(q) + zero, saturated to the integer type t; NaN becomes the lowest, as in ONNX Runtime. q is f32 or f64.
Expr to_integer(const Expr& q, const Expr& zero_point, DType t) {
  const DType wide = q->dtype;
  Expr y = apply(Op::Round, {q});
  if (zero_point) y = y + cast(wide, zero_point);
  const Expr low = make_const(wide, double(*as_const_int(lowest(t))));
  const Expr high = make_const(wide, double(*as_const_int(highest(t))));
  return cast(t, min(select(y > low, y, low), high));
}

void define_quantize(OpBuilder& op) {
  const Tensor x = op.in(0), scale = op.in(1);
  const Granularity g = read_granularity(op, 0, 1, 2);
  DType t = DType(op.attr_int("output_dtype", 0));
  if (op.has(2)) {
    if (t != DType::Undefined && t != op.in(2).dtype())
      op.reject("output_dtype differs from the type of the zero point", 2);
    t = op.in(2).dtype();
  }
  if (t == DType::Undefined) t = DType::U8;
  if (!is_int(t) && !is_narrow_float(t)) op.reject("output_dtype is no quantised type");
  DType precision = DType(op.attr_int("precision", 0));
  if (precision == DType::Undefined) precision = scale.dtype();
  // Powers of two and integers are scales, but nothing is divided in their type.
  if (!is_float(precision)) precision = DType::F64;
  if (precision == DType::F8E8M0) precision = is_float(x.dtype()) ? x.dtype() : DType::F32;
  const bool saturate = op.attr_int("saturate", 1) != 0;
  const bool shifted = op.has(2) && !is_zero_constant(op, 2);
  op.output(0, op.compute("quantize", t, x.dims(), [&](const Exprs& i) {
    // The quotient is rounded to the precision before it is rounded to an integer.
    Expr q = in_precision(precision, x(i)) / in_precision(precision, g.at(scale, i));
    q = in_precision(precision, q);
    const Expr zero_point = shifted ? g.at(op.in(2), i) : Expr();
    if (is_int(t)) return to_integer(q, zero_point, t);
    return cast(t, zero_point ? q + cast(q->dtype, zero_point) : q, saturate);
  }));
}

void define_dequantize(OpBuilder& op) {
  const Tensor x = op.in(0), scale = op.in(1);
  const Granularity g = read_granularity(op, 0, 1, 2);
  DType t = DType(op.attr_int("output_dtype", 0));
  if (t == DType::Undefined) t = scale.dtype();
  if (t != DType::F32 && t != DType::F16 && t != DType::BF16 && t != DType::F64)
    op.reject("the result must be a tensor of floats");
  const DType wide = compute_type(t), middle = is_int(x.dtype()) ? DType::I32 : wide;
  const bool shifted = op.has(2) && !is_zero_constant(op, 2);
  op.output(0, op.compute("dequantize", t, x.dims(), [&](const Exprs& i) {
    Expr v = cast(middle, x(i));
    if (shifted) v = v - cast(middle, g.at(op.in(2), i));
    return cast(t, cast(wide, v) * cast(wide, g.at(scale, i)));
  }));
}

void define_dynamic_quantize(OpBuilder& op) {
  const DynamicQuantization q = dynamic_quantization(op, op.in(0));
  op.output(0, q.y);
  op.output(1, q.scale);
  op.output(2, q.zero_point);
}

}  // namespace

Expr Granularity::at(const Tensor& p, const Exprs& i) const {
  if (has_one_element(p.dims())) return only_element(p);
  if (block == 0) return p({i[size_t(axis)]});
  Exprs index = i;
  index[size_t(axis)] = floor_div(index[size_t(axis)], Expr(block));
  return p(index);
}

Granularity read_granularity(OpBuilder& op, int quantized, int scale_input, int zero_input) {
  const Dims x = op.in(quantized).dims();
  Granularity g;
  g.block = op.attr_int("block_size", 0);
  const Dims scale = op.in(scale_input).dims();
  if (op.has(zero_input) && op.in(zero_input).dims() != scale &&
      (!has_one_element(op.in(zero_input).dims()) || !has_one_element(scale)))
    op.reject("the zero point must have the shape of the scale", zero_input);
  if (has_one_element(scale)) return g;
  g.axis = op.axis(op.attr_int("axis", 1), int(x.size()));
  if (g.block < 0) op.reject("block_size must not be negative");
  Dims expected = x;
  if (g.block == 0) {
    expected = {x[size_t(g.axis)]};
  } else {
    expected[size_t(g.axis)] = ceil_quotient(x[size_t(g.axis)], g.block);
  }
  if (scale != expected)
    op.reject("the scale has the shape " + to_text(to_shape(scale)) + " but must be a scalar or have the shape " +
                  to_text(to_shape(expected)),
              scale_input);
  return g;
}

QuantizedRange quantized_range(OpBuilder& op, const Tensor& high, const Tensor& low) {
  const DType f = DType::F32;
  // Both limits start at zero, which the range always holds.
  auto limit = [&](const std::string& name, Op join, const Tensor& x) {
    return op.reduce(
        name, join, f, {}, x.dims(), [&](const Exprs&, const Exprs& r) { return x(r); }, {}, zero(f));
  };
  const Tensor largest = limit("max", Op::Max, high), least = limit("min", Op::Min, low);
  const Expr top = make_const(f, 255);
  const Tensor scale = op.compute("scale", f, {}, [&](const Exprs&) {
    const Expr range = largest({}) - least({});
    return select(eq(range, zero(f)), make_const(f, 1), range / top);
  });
  const Tensor zero_point = op.compute("zero_point", DType::U8, {}, [&](const Exprs&) {
    return to_integer(min(max(zero(f) - least({}) / scale({}), zero(f)), top), {}, DType::U8);
  });
  return {scale, zero_point};
}

DynamicQuantization dynamic_quantization(OpBuilder& op, const Tensor& x) {
  if (x.dtype() != DType::F32) op.reject("only float32 is quantised by its own range", 0);
  const auto [scale, zero_point] = quantized_range(op, x, x);
  const Tensor y = op.compute("quantize", DType::U8, x.dims(),
                              [&](const Exprs& i) { return to_integer(x(i) / scale({}), zero_point({}), DType::U8); });
  return {y, scale, zero_point};
}

OpFamily quantization_ops() {
  const AttrSpec axis = int_attr("axis", 1), block = int_attr("block_size", 0), type = int_attr("output_dtype", 0);
  return {
      {"QuantizeLinear",
       28,
       {axis, block, type, int_attr("saturate", 1), int_attr("precision", 0)},
       define_quantize,
       "x scale zero",
       "quantize"},
      {"DequantizeLinear", 28, {axis, block, type}, define_dequantize, "x scale zero", "dequantize"},
      {"DynamicQuantizeLinear", 11, {}, define_dynamic_quantize, "x", "dynamic_quantize"},
  };
}

}  // namespace tc
