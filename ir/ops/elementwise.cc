// Elementwise operators: arithmetic, functions, comparisons, logic. Activations stand in activations.cc, casts in
// casts.cc. NaN: Max, Min, Clip and Relu propagate it, as NumPy does.
#include "ir/ops/families.h"
#include "ir/ops/helpers.h"
#include "ir/ops/parts.h"

namespace tc {
namespace {

/// A row of the op table applied as it is.
Define unary(Op op) {
  return elementwise([op](Expr x) { return apply(op, {x}); });
}
Define binary(Op op) {
  return elementwise([op](Expr a, Expr b) { return apply(op, {a, b}); });
}
Define comparison(Op op) {
  return predicate([op](Expr a, Expr b) { return apply(op, {a, b}); });
}

/// Of integers, too, which ONNX lets it take.
Expr erf(const Expr& x) {
  return is_float(x->dtype) ? apply(Op::Erf, {x}) : cast(x->dtype, apply(Op::Erf, {cast(DType::F64, x)}));
}

Expr sign(const Expr& x) {
  if (is_float(x->dtype) || is_signed_int(x->dtype)) return apply(Op::Sign, {x});
  return select(eq(x, num(x, 0)), num(x, 0), num(x, 1));
}

Expr absolute(const Expr& x) { return is_float(x->dtype) || is_signed_int(x->dtype) ? abs(x) : x; }

Expr negative(OpBuilder& b, const Expr& x) {
  if (!is_float(x->dtype) && !is_signed_int(x->dtype)) b.reject("Neg needs a signed type", 0);
  return -x;
}

/// Integers: shifts by a negative count or by the whole width leave what sign extension alone gives.
Expr shift(OpBuilder& b, const Expr& x, const Expr& count) {
  const std::string direction = b.attr_string("direction");
  if (direction != "LEFT" && direction != "RIGHT") b.reject("attribute direction must be LEFT or RIGHT");
  const bool left = direction == "LEFT", is_signed = is_signed_int(x->dtype);
  if (!is_int(x->dtype)) b.reject("BitShift needs integers", 0);
  const Expr bits = num(count, info(x->dtype).bits);
  const Expr gone = left || !is_signed ? num(x, 0) : select(x < num(x, 0), num(x, -1), num(x, 0));
  Expr fits = count < bits;
  if (is_signed) fits = count >= num(count, 0) && fits;
  return select(fits, apply(left ? Op::Shl : Op::Shr, {x, count}), gone);
}

/// fmod = 0: the sign of the divisor; fmod = 1: the sign of the dividend.
Expr modulo(OpBuilder& b, const Expr& x, const Expr& y) {
  return apply(b.attr_int("fmod") != 0 ? Op::Mod : Op::FloorMod, {x, y});
}

Expr reciprocal(OpBuilder& b, const Expr& x) {
  require_float(b, x->dtype);
  return num(x, 1) / x;
}

/// The result has the type of the base; integers with a float exponent go through f64, as NumPy's power does.
void define_pow(OpBuilder& b) {
  const Tensor x = b.in(0), y = b.in(1);
  const DType t = x.dtype(), c = compute_type(t);
  require_number(b, t, 0);
  require_number(b, y.dtype(), 1);
  b.output(0, b.compute("pow", t, broadcast_dims(b, {x, y}), [&](const Exprs& i) {
    const Expr base = x.broadcast_at(i), exponent = y.broadcast_at(i);
    if (is_int(t) && is_float(y.dtype()))
      return cast(t, apply(Op::Pow, {cast(DType::F64, base), cast(DType::F64, exponent)}));
    const DType e = is_int(t) ? DType::I64 : c;
    return cast(t, apply(Op::Pow, {is_int(t) ? cast(DType::I64, base) : cast(c, base), cast(e, exponent)}));
  }));
}

/// Max, Min, Sum, Mean of any number of broadcast operands.
Define variadic(Op op, bool mean = false) {
  return [op, mean](OpBuilder& b) {
    const std::vector<Tensor> list = operands(b);
    const DType t = list[0].dtype();
    require_number(b, t);
    for (const Tensor& x : list)
      if (x.dtype() != t) b.reject("the inputs have different types");
    if (list.size() == 1) return b.output(0, list[0]);
    b.output(0, b.compute(stage_label(b), t, broadcast_dims(b, list), [&](const Exprs& i) {
      const DType c = mean ? sum_type(t) : compute_type(t);
      Expr e = cast(c, list[0].broadcast_at(i));
      for (size_t k = 1; k < list.size(); k++) e = apply(op, {e, cast(c, list[k].broadcast_at(i))});
      return cast(t, mean ? e / num(e, double(list.size())) : e);
    }));
  };
}

/// min(max(x, lo), hi); a missing bound does not bound.
void define_clip(OpBuilder& b) {
  const Tensor x = b.in(0);
  require_number(b, x.dtype());
  auto bound = [&](int k) {
    const Tensor t = b.in(k);
    if (t.dtype() != x.dtype()) b.reject("a bound has another type than the input", k);
    if (!has_one_element(t.dims())) b.reject("a bound must be a scalar", k);
    return widen(load(t.buffer(), Exprs(size_t(t.rank()), Expr(0))));
  };
  if (!b.has(1) && !b.has(2)) return b.output(0, x);
  b.output(0, b.compute("clip", x.dtype(), x.dims(), [&](const Exprs& i) {
    Expr e = widen(x(i));
    if (b.has(1)) e = max(e, bound(1));
    if (b.has(2)) e = min(e, bound(2));
    return cast(x.dtype(), e);
  }));
}

void define_where(OpBuilder& b) {
  const Tensor c = b.in(0), x = b.in(1), y = b.in(2);
  if (c.dtype() != DType::Bool) b.reject("the condition must be bool", 0);
  if (x.dtype() != y.dtype()) b.reject("the inputs have different types", 2);
  b.output(0, b.compute("where", x.dtype(), broadcast_dims(b, {c, x, y}), [&](const Exprs& i) {
    return select(c.broadcast_at(i), x.broadcast_at(i), y.broadcast_at(i));
  }));
}

void define_is_inf(OpBuilder& b) {
  const Tensor x = b.in(0);
  const bool positive = b.attr_int("detect_positive") != 0, negative = b.attr_int("detect_negative") != 0;
  b.output(0, b.compute("isinf", DType::Bool, x.dims(), [&](const Exprs& i) {
    const Expr e = widen(x(i));
    if (positive && negative) return apply(Op::IsInf, {e});
    if (positive) return eq(e, highest(e->dtype));
    return negative ? eq(e, lowest(e->dtype)) : make_int(DType::Bool, 0);
  }));
}

}  // namespace

OpFamily elementwise_ops() {
  const OpFamily functions = {
      {"Abs", 13, {}, elementwise(absolute)},
      {"Acos", 22, {}, unary(Op::Acos)},
      {"Acosh", 22, {}, unary(Op::Acosh)},
      {"Asin", 22, {}, unary(Op::Asin)},
      {"Asinh", 22, {}, unary(Op::Asinh)},
      {"Atan", 22, {}, unary(Op::Atan)},
      {"Atanh", 22, {}, unary(Op::Atanh)},
      {"Ceil", 13, {}, unary(Op::Ceil)},
      {"Cos", 22, {}, unary(Op::Cos)},
      {"Cosh", 22, {}, unary(Op::Cosh)},
      {"Erf", 13, {}, elementwise(erf)},
      {"Exp", 13, {}, unary(Op::Exp)},
      {"Floor", 13, {}, unary(Op::Floor)},
      {"Log", 13, {}, unary(Op::Log)},
      {"Neg", 13, {}, elementwise(negative)},
      {"Reciprocal", 13, {}, elementwise(reciprocal)},
      {"Round", 22, {}, unary(Op::Round)},
      {"Sign", 13, {}, elementwise(sign)},
      {"Sin", 22, {}, unary(Op::Sin)},
      {"Sinh", 22, {}, unary(Op::Sinh)},
      {"Sqrt", 13, {}, unary(Op::Sqrt)},
      {"Tan", 22, {}, unary(Op::Tan)},
      {"IsNaN", 20, {}, predicate([](Expr x) { return apply(Op::IsNan, {x}); }), "x", "isnan"},
      {"IsInf", 20, {{"detect_negative", int64_t(1)}, {"detect_positive", int64_t(1)}}, define_is_inf, "x", "isinf"},
  };
  const OpFamily arithmetic = {
      marked(OpTrait::Commutes, {"Add", 14, {}, binary(Op::Add)}),
      {"Sub", 14, {}, binary(Op::Sub)},
      marked(OpTrait::Commutes, {"Mul", 14, {}, binary(Op::Mul)}),
      {"Div", 14, {}, binary(Op::Div)},
      {"Mod", 28, {{"fmod", int64_t(0)}}, elementwise(modulo)},
      {"Pow", 15, {}, define_pow, "base exponent"},
      {"BitShift", 28, {}, elementwise(shift), "x count"},
      marked(OpTrait::Commutes, {"BitwiseAnd", 18, {}, binary(Op::BitAnd)}),
      marked(OpTrait::Commutes, {"BitwiseOr", 18, {}, binary(Op::BitOr)}),
      marked(OpTrait::Commutes, {"BitwiseXor", 18, {}, binary(Op::BitXor)}),
  };
  const OpFamily comparisons = {
      marked(OpTrait::Commutes, {"Equal", 19, {}, comparison(Op::Eq)}),
      {"Greater", 13, {}, comparison(Op::Gt)},
      {"GreaterOrEqual", 16, {}, comparison(Op::Ge)},
      {"Less", 13, {}, comparison(Op::Lt)},
      {"LessOrEqual", 16, {}, comparison(Op::Le)},
      marked(OpTrait::Commutes, {"And", 7, {}, comparison(Op::And)}),
      marked(OpTrait::Commutes, {"Or", 7, {}, comparison(Op::Or)}),
      marked(OpTrait::Commutes, {"Xor", 7, {}, comparison(Op::Ne)}),
  };
  const OpFamily variadics = {
      {"Max", 13, {}, variadic(Op::Max)},
      {"Min", 13, {}, variadic(Op::Min)},
      {"Sum", 13, {}, variadic(Op::Add)},
      {"Mean", 13, {}, variadic(Op::Add, true)},
  };
  return joined({
      all_marked(OpTrait::SameSizes, functions),
      all_marked(OpTrait::Broadcasts, arithmetic),
      {marked(OpTrait::SameSizes, {"BitwiseNot", 18, {}, unary(Op::BitNot)})},
      all_marked(OpTrait::Broadcasts, comparisons),
      {marked(OpTrait::SameSizes, {"Not", 1, {}, unary(Op::Not)})},
      all_marked(OpTrait::Broadcasts, variadics),
      {marked(OpTrait::Activation, {"Clip", 13, {}, define_clip, "x lo hi"})},
      {marked(OpTrait::Broadcasts, {"Where", 16, {}, define_where, "condition x y"})},
      activation_ops(),
      cast_ops(),
      training_ops(),
  });
}

}  // namespace tc
