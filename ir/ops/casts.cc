// Casts between element types. Loop IR's Cast is ONNX's; only the rounding modes of float8e8m0 need more.
#include "ir/ops/helpers.h"
#include "ir/ops/parts.h"

namespace tc {
namespace {

DType target_type(const OpBuilder& b) {
  const int64_t to = b.attr_int("to");
  if (to <= int64_t(DType::Undefined) || to > int64_t(DType::I2))
    b.unsupported("element type " + to_text(to) + " is not known");
  const auto t = static_cast<DType>(to);
  if (t == DType::String || is_complex(t))
    b.unsupported("casts to " + std::string(info(t).onnx_name) + " cannot be compiled");
  return t;
}

/// float8e8m0 holds powers of two from 2^-127 to 2^127 and one NaN. The power is chosen here, on the bits of the f32,
/// so that the cast itself has nothing left to round.
Expr to_e8m0(const OpBuilder& b, const Expr& value, bool saturate) {
  const std::string mode = b.attr_string("round_mode", "up");
  if (mode != "up" && mode != "down" && mode != "nearest") b.reject("attribute round_mode must be up, down or nearest");
  const Expr x = cast(DType::F32, value);
  const Expr bits = bitcast(DType::U32, x);
  const Expr exponent =
      apply(Op::BitAnd, {apply(Op::Shr, {bits, make_int(DType::U32, 23)}), make_int(DType::U32, 255)});
  const Expr mantissa = apply(Op::BitAnd, {bits, make_int(DType::U32, 0x7fffff)});
  // Below 2^-126 the mantissa has no leading one: 2^-127 itself is mantissa 0x400000, exponent 0.
  const Expr one = make_int(DType::U32, 1), none = make_int(DType::U32, 0), half = make_int(DType::U32, 0x400000);
  const Expr normal = ne(exponent, none);
  Expr carry;  // whether the next power is taken
  if (mode == "up")
    carry = mantissa > select(normal, none, half);
  else if (mode == "nearest")
    carry = mantissa >= select(normal, half, make_int(DType::U32, 0x600000));
  else
    carry = make_int(DType::Bool, 0);
  const Expr code = exponent + select(carry, one, none);
  const Expr nan = make_int(DType::U8, 255), largest = make_int(DType::U8, 254);
  const Expr in_range = select(code > make_int(DType::U32, 254), saturate ? largest : nan, cast(DType::U8, code));
  const Expr smallest = make_float(DType::F32, 0x1p-127);
  const Expr low = saturate ? make_int(DType::U8, 0) : nan;
  const Expr result = select(apply(Op::IsNan, {x}), nan, select(x < smallest, low, in_range));
  return bitcast(DType::F8E8M0, result);
}

void define_conversion(OpBuilder& b, DType t, const std::string& name) {
  const Tensor x = b.in(0);
  if (x.dtype() == t) return b.output(0, x);
  if (x.dtype() == DType::String) b.unsupported("casts from string cannot be compiled", 0);
  const bool saturate = b.attr_int("saturate", 1) != 0;
  b.output(0, b.compute(name, t, x.dims(), [&](const Exprs& i) {
    const Expr e = x(i);
    if (t == DType::F8E8M0) return to_e8m0(b, e, saturate);
    // Integers below a byte wrap also when a float does not fit, where Loop IR's cast would take the nearest.
    const bool wraps = is_int(t) && info(t).bits < 8 && is_float(x.dtype());
    return cast(t, wraps ? cast(DType::I32, e) : e, saturate);
  }));
}

void define_bit_cast(OpBuilder& b) {
  const Tensor x = b.in(0);
  const DType t = target_type(b);
  auto width = [](DType d) { return d == DType::Bool ? 8 : info(d).bits; };
  if (width(t) != width(x.dtype()))
    b.reject("BitCast needs types of one width, not " + std::string(info(x.dtype()).onnx_name) + " and " +
             std::string(info(t).onnx_name));
  if (x.dtype() == t) return b.output(0, x);
  b.output(0, b.compute("bit_cast", t, x.dims(), [&](const Exprs& i) { return bitcast(t, x(i)); }));
}

}  // namespace

OpFamily cast_ops() {
  return {
      {"Cast",
       28,
       {{"saturate", int64_t(1)}, {"round_mode", std::string("up")}, {"to", {}}},
       [](OpBuilder& b) { define_conversion(b, target_type(b), "cast"); }},
      {"CastLike",
       25,
       {{"saturate", int64_t(1)}, {"round_mode", std::string("up")}},
       [](OpBuilder& b) { define_conversion(b, b.in(1).dtype(), "cast"); },
       "x like"},
      {"BitCast", 26, {{"to", {}}}, define_bit_cast},
  };
}

}  // namespace tc
