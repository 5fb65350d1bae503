#include "ir/interpreter.h"
#include "ir/interpreter/scalar.h"

namespace tc {
namespace {

template <class T, Op... ops>
bool try_unary(Op op, T a, T& out) {
  return ((op == ops ? (out = scalar::unary<ops, T>(a), true) : false) || ...);
}
template <class T, Op... ops>
bool try_binary(Op op, T a, T b, T& out) {
  return ((op == ops ? (out = scalar::binary<ops, T>(a, b), true) : false) || ...);
}
template <class T, Op... ops>
bool try_compare(Op op, T a, T b, T& out) {
  return ((op == ops ? (out = T(scalar::compare<ops, T>(a, b)), true) : false) || ...);
}

// Every operation on numbers of class T. False: not one of them.
template <class T>
bool fold_as(Op op, T a, T b, T& out) {
  using enum Op;
  if (try_unary<T, Neg, Abs, Sign, Ceil, Floor, Round, Trunc>(op, a, out)) return true;
  if (try_binary<T, Add, Sub, Mul, Div, FloorDiv, Mod, FloorMod, Min, Max, Pow>(op, a, b, out)) return true;
  if (try_compare<T, Eq, Ne, Lt, Le, Gt, Ge>(op, a, b, out)) return true;
  if constexpr (scalar::kFloat<T>) {
    if (op == IsNan) return out = T(std::isnan(a)), true;
    if (op == IsInf) return out = T(std::isinf(a)), true;
    if (op == Atan2) return out = scalar::binary<Atan2, T>(a, b), true;
    if (try_unary<T, Sqrt, Exp, Expm1, Log, Log1p, Sin, Cos, Tan, Asin, Acos, Atan>(op, a, out)) return true;
    return try_unary<T, Sinh, Cosh, Tanh, Asinh, Acosh, Atanh, Erf, Sigmoid>(op, a, out);
  } else {
    if (try_unary<T, Not, BitNot>(op, a, out)) return true;
    return try_binary<T, BitAnd, BitOr, BitXor, And, Or>(op, a, b, out);
  }
}

}  // namespace

// What x86-64 gives NumPy and ONNX Runtime, and tc_scalar.h on every machine: the smallest i32 (i64) for what does not
// fit; narrower types take the low bits of the i32, u32 those of the i64; u64 wraps below zero.
int64_t float_to_int(DType t, double v) {
  if (t == DType::Bool) return v != 0;  // NaN is true
  const bool fits64 = v >= -9223372036854775808.0 && v < 9223372036854775808.0;
  const int64_t wide = fits64 ? int64_t(v) : INT64_MIN;
  if (t == DType::U64) return v >= 9223372036854775808.0 && v < 18446744073709551616.0 ? int64_t(uint64_t(v)) : wide;
  if (t == DType::I64 || t == DType::U32 || info(t).bits < 8) return wrap_int(t, wide);
  const int64_t narrow = v > -2147483649.0 && v < 2147483648.0 ? int64_t(v) : INT32_MIN;
  return wrap_int(t, narrow);
}

double fold_float(Op op, DType t, double a, double b) {
  if (t == DType::F64) {
    double r = 0;
    check(fold_as<double>(op, a, b, r), "no such operation on floats");
    return r;
  }
  float r = 0;
  check(fold_as<float>(op, float(a), float(b), r), "no such operation on floats");
  return double(r);
}

int64_t fold_int(Op op, DType t, int64_t a, int64_t b) {
  bool compares = info(op).compares;
  if (op == Op::Shl || op == Op::Shr) {
    int bits = info(t).bits;
    bool left = op == Op::Shl;
    if (t == DType::U64) {
      uint64_t x = uint64_t(a);
      return int64_t(left ? scalar::shift<Op::Shl>(x, b, bits) : scalar::shift<Op::Shr>(x, b, bits));
    }
    return wrap_int(t, left ? scalar::shift<Op::Shl>(a, b, bits) : scalar::shift<Op::Shr>(a, b, bits));
  }
  if (op == Op::Index) {
    int64_t i = a < 0 ? a + b : a;
    return i >= 0 && i < b ? i : 0;
  }
  if (t == DType::U64) {
    uint64_t r = 0;
    check(fold_as<uint64_t>(op, uint64_t(a), uint64_t(b), r), "no such operation on integers");
    return int64_t(r);
  }
  int64_t r = 0;
  check(fold_as<int64_t>(op, a, b, r), "no such operation on integers");
  return compares ? r : wrap_int(t, r);
}

}  // namespace tc
