// What each scalar operation means: the one definition that folding, the interpreter's batches and tests share.
//
// Floats: f32 arithmetic is IEEE single, functions are computed in double and rounded once. Narrow floats compute as
// f32. Integers wrap as their type does; division and remainder by zero give 0; shifts by the width or more (or a
// negative amount) give 0. A float becomes an integer by truncation; float_to_int says what NaN and overflow give.
#pragma once
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "ir/dtype.h"
#include "ir/loop/op.h"

namespace tc {

/// `v` reduced to the bits of integer type t and sign- or zero-extended. U64 values keep their 64 bits.
inline int64_t wrap_int(DType t, int64_t v) {
  switch (t) {
    case DType::Bool: return v != 0;
    case DType::I8: return int8_t(v);
    case DType::U8: return uint8_t(v);
    case DType::I16: return int16_t(v);
    case DType::U16: return uint16_t(v);
    case DType::I32: return int32_t(v);
    case DType::U32: return uint32_t(v);
    case DType::U4: return v & 15;
    case DType::I4: return ((v & 15) ^ 8) - 8;
    case DType::U2: return v & 3;
    case DType::I2: return ((v & 3) ^ 2) - 2;
    default: return v;
  }
}

/// Truncates toward zero into t; see above for what does not fit.
int64_t float_to_int(DType t, double v);

namespace scalar {

template <class T>
inline constexpr bool kFloat = std::is_floating_point_v<T>;

/// Functions that are computed in double, whatever the type.
template <Op op>
double in_double(double d) {
  if constexpr (op == Op::Exp)
    return std::exp(d);
  else if constexpr (op == Op::Expm1)
    return std::expm1(d);
  else if constexpr (op == Op::Log)
    return std::log(d);
  else if constexpr (op == Op::Log1p)
    return std::log1p(d);
  else if constexpr (op == Op::Sin)
    return std::sin(d);
  else if constexpr (op == Op::Cos)
    return std::cos(d);
  else if constexpr (op == Op::Tan)
    return std::tan(d);
  else if constexpr (op == Op::Asin)
    return std::asin(d);
  else if constexpr (op == Op::Acos)
    return std::acos(d);
  else if constexpr (op == Op::Atan)
    return std::atan(d);
  else if constexpr (op == Op::Sinh)
    return std::sinh(d);
  else if constexpr (op == Op::Cosh)
    return std::cosh(d);
  else if constexpr (op == Op::Tanh)
    return std::tanh(d);
  else if constexpr (op == Op::Asinh)
    return std::asinh(d);
  else if constexpr (op == Op::Acosh)
    return std::acosh(d);
  else if constexpr (op == Op::Atanh)
    return std::atanh(d);
  else if constexpr (op == Op::Erf)
    return std::erf(d);
  else if constexpr (op == Op::Sigmoid)
    return 1 / (1 + std::exp(-d));
  else
    return d;
}

/// One operand. T: float, double, int64_t or uint64_t (U64).
template <Op op, class T>
T unary(T a) {
  if constexpr (op == Op::Neg) {
    if constexpr (kFloat<T>)
      return -a;
    else
      return T(0 - uint64_t(a));
  } else if constexpr (op == Op::Abs) {
    if constexpr (kFloat<T>)
      return std::fabs(a);
    else if constexpr (std::is_signed_v<T>)
      return a < 0 ? T(0 - uint64_t(a)) : a;
    else
      return a;
  } else if constexpr (op == Op::Sign) {
    if constexpr (kFloat<T>)
      return a > 0 ? T(1) : a < 0 ? T(-1) : a == 0 ? T(0) : a;
    else if constexpr (std::is_signed_v<T>)
      return T((a > 0) - (a < 0));
    else
      return T(a > 0);
  } else if constexpr (!kFloat<T>) {
    if constexpr (op == Op::Not)
      return a == 0;
    else if constexpr (op == Op::BitNot)
      return ~a;
    else
      return a;  // rounding an integer
  } else if constexpr (op == Op::Ceil)
    return std::ceil(a);
  else if constexpr (op == Op::Floor)
    return std::floor(a);
  else if constexpr (op == Op::Round)
    return std::nearbyint(a);
  else if constexpr (op == Op::Trunc)
    return std::trunc(a);
  else if constexpr (op == Op::Sqrt)
    return std::sqrt(a);
  else
    return T(in_double<op>(double(a)));
}

/// x ^ n for integers, wrapping; a negative n rounds the true quotient toward zero (0 ^ -1 gives 0).
inline uint64_t int_pow(uint64_t x, int64_t n) {
  if (n < 0) return x == 1 ? 1 : x == ~uint64_t(0) ? (n % 2 ? x : 1) : 0;
  uint64_t r = 1;
  for (; n > 0; n /= 2, x *= x)
    if (n % 2) r *= x;
  return r;
}

/// Two operands of one type, arithmetic.
template <Op op, class T>
T binary(T a, T b) {
  using U = uint64_t;
  if constexpr (op == Op::Max)
    return a < b || b != b ? b : a;
  else if constexpr (op == Op::Min)
    return b < a || b != b ? b : a;
  else if constexpr (kFloat<T>) {
    if constexpr (op == Op::Add)
      return a + b;
    else if constexpr (op == Op::Sub)
      return a - b;
    else if constexpr (op == Op::Mul)
      return a * b;
    else if constexpr (op == Op::Div || op == Op::Quotient)
      return a / b;
    else if constexpr (op == Op::FloorDiv)
      return std::floor(a / b);
    else if constexpr (op == Op::Mod)
      return std::fmod(a, b);
    else if constexpr (op == Op::FloorMod) {
      T r = std::fmod(a, b);
      return r != 0 && (r < 0) != (b < 0) ? r + b : r == 0 ? std::copysign(r, b) : r;
    } else if constexpr (op == Op::Pow)
      return T(std::pow(double(a), double(b)));
    else if constexpr (op == Op::Atan2)
      return T(std::atan2(double(a), double(b)));
    else
      return a;
  } else {
    constexpr bool is_signed = std::is_signed_v<T>;
    if constexpr (op == Op::Add)
      return T(U(a) + U(b));
    else if constexpr (op == Op::Sub)
      return T(U(a) - U(b));
    else if constexpr (op == Op::Mul)
      return T(U(a) * U(b));
    else if constexpr (op == Op::Div || op == Op::FloorDiv || op == Op::Mod || op == Op::FloorMod) {
      constexpr bool quotient = op == Op::Div || op == Op::FloorDiv;
      if (b == 0) return 0;
      if constexpr (is_signed) {
        if (b == -1) return quotient ? T(0 - U(a)) : 0;
        bool adjust = (op == Op::FloorDiv || op == Op::FloorMod) && a % b != 0 && (a % b < 0) != (b < 0);
        return quotient ? a / b - adjust : a % b + (adjust ? b : 0);
      }
      return quotient ? a / b : a % b;
    } else if constexpr (op == Op::Pow)
      return T(int_pow(U(a), int64_t(b)));
    else if constexpr (op == Op::BitAnd)
      return a & b;
    else if constexpr (op == Op::BitOr)
      return a | b;
    else if constexpr (op == Op::BitXor)
      return a ^ b;
    else if constexpr (op == Op::And)
      return a != 0 && b != 0;
    else if constexpr (op == Op::Or)
      return a != 0 || b != 0;
    else
      return a;
  }
}

/// Shifts of a type of `bits` bits.
template <Op op, class T>
T shift(T a, int64_t by, int bits) {
  if (by < 0 || by >= bits) return 0;
  return op == Op::Shl ? T(uint64_t(a) << by) : T(a >> by);
}

template <Op op, class T>
bool compare(T a, T b) {
  if constexpr (op == Op::Eq)
    return a == b;
  else if constexpr (op == Op::Ne)
    return a != b;
  else if constexpr (op == Op::Lt)
    return a < b;
  else if constexpr (op == Op::Le)
    return a <= b;
  else if constexpr (op == Op::Gt)
    return a > b;
  else
    return a >= b;
}

}  // namespace scalar
}  // namespace tc
