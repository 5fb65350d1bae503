#include "ir/dtype.h"

#include <cmath>
#include <limits>

namespace tc {
namespace {

constexpr DTypeInfo kInfo[] = {
    {"?", "undefined", "void", 0, 0, false, false, false},
    {"f32", "float", "float", 4, 32, true, false, false},
    {"u8", "uint8", "uint8_t", 1, 8, false, false, true},
    {"i8", "int8", "int8_t", 1, 8, false, true, false},
    {"u16", "uint16", "uint16_t", 2, 16, false, false, true},
    {"i16", "int16", "int16_t", 2, 16, false, true, false},
    {"i32", "int32", "int32_t", 4, 32, false, true, false},
    {"i64", "int64", "int64_t", 8, 64, false, true, false},
    {"str", "string", "tc_string", 16, 0, false, false, false},
    {"bool", "bool", "uint8_t", 1, 1, false, false, false},
    {"f16", "float16", "uint16_t", 2, 16, true, false, false},
    {"f64", "double", "double", 8, 64, true, false, false},
    {"u32", "uint32", "uint32_t", 4, 32, false, false, true},
    {"u64", "uint64", "uint64_t", 8, 64, false, false, true},
    {"c64", "complex64", "float", 8, 64, false, false, false},
    {"c128", "complex128", "double", 16, 128, false, false, false},
    {"bf16", "bfloat16", "uint16_t", 2, 16, true, false, false},
    {"f8e4m3fn", "float8e4m3fn", "uint8_t", 1, 8, true, false, false},
    {"f8e4m3fnuz", "float8e4m3fnuz", "uint8_t", 1, 8, true, false, false},
    {"f8e5m2", "float8e5m2", "uint8_t", 1, 8, true, false, false},
    {"f8e5m2fnuz", "float8e5m2fnuz", "uint8_t", 1, 8, true, false, false},
    {"u4", "uint4", "uint8_t", 1, 4, false, false, true},
    {"i4", "int4", "int8_t", 1, 4, false, true, false},
    {"f4e2m1", "float4e2m1", "uint8_t", 1, 4, true, false, false},
    {"f8e8m0", "float8e8m0", "uint8_t", 1, 8, true, false, false},
    {"u2", "uint2", "uint8_t", 1, 2, false, false, true},
    {"i2", "int2", "int8_t", 1, 2, false, true, false},
};

// A small binary float: 1 sign bit, `exponent` and `mantissa` bits, bias. What the all-ones exponent and the negative
// zero mean differs (IEEE, "fn": no infinity, "fnuz": no infinity, one NaN in the place of -0).
struct Format {
  int exponent, mantissa, bias;
  enum Special { Ieee, Fn, Fnuz, Finite } special;
};

Format format_of(DType t) {
  switch (t) {
    case DType::F16: return {5, 10, 15, Format::Ieee};
    case DType::BF16: return {8, 7, 127, Format::Ieee};
    case DType::F8E4M3FN: return {4, 3, 7, Format::Fn};
    case DType::F8E4M3FNUZ: return {4, 3, 8, Format::Fnuz};
    case DType::F8E5M2: return {5, 2, 15, Format::Ieee};
    case DType::F8E5M2FNUZ: return {5, 2, 16, Format::Fnuz};
    case DType::F4E2M1: return {2, 1, 1, Format::Finite};
    default: return {8, 0, 127, Format::Finite};  // F8E8M0 is handled apart
  }
}

double largest_finite(const Format& f) {
  const int top = (1 << f.exponent) - 1;
  if (f.special == Format::Ieee) return std::ldexp(2.0 - std::ldexp(1.0, -f.mantissa), top - 1 - f.bias);
  const double fraction =
      f.special == Format::Fn ? 2.0 - std::ldexp(2.0, -f.mantissa) : 2.0 - std::ldexp(1.0, -f.mantissa);
  return std::ldexp(fraction, top - f.bias);
}

uint16_t nan_bits(const Format& f) {
  const int top = (1 << f.exponent) - 1;
  switch (f.special) {
    case Format::Ieee: return uint16_t(top << f.mantissa | 1 << (f.mantissa - 1));
    case Format::Fn: return uint16_t(top << f.mantissa | ((1 << f.mantissa) - 1));
    case Format::Fnuz: return uint16_t(1 << (f.exponent + f.mantissa));
    case Format::Finite: return 0;
  }
  return 0;
}

uint16_t encode_e8m0(double v) {
  if (std::isnan(v) || v < 0) return 255;
  if (std::isinf(v)) return 254;
  if (v < std::ldexp(1.0, -127)) return 0;
  int e = 0;
  const double m = std::frexp(v, &e);  // v = m * 2^e, m in [0.5, 1)
  const int power = m > 0.75 || (m == 0.75 && (e & 1) != 0) ? e : e - 1;
  return uint16_t(power + 127 > 254 ? 254 : power + 127);
}

}  // namespace

const DTypeInfo& info(DType t) { return kInfo[int(t)]; }

double narrow_float_to_double(DType t, uint16_t bits) {
  if (t == DType::F8E8M0)
    return bits == 255 ? std::numeric_limits<double>::quiet_NaN() : std::ldexp(1.0, int(bits) - 127);
  const Format f = format_of(t);
  const int sign = bits >> (f.exponent + f.mantissa) & 1;
  const int e = bits >> f.mantissa & ((1 << f.exponent) - 1);
  const int m = bits & ((1 << f.mantissa) - 1);
  const int top = (1 << f.exponent) - 1;
  double v;
  if (f.special == Format::Ieee && e == top)
    v = m == 0 ? std::numeric_limits<double>::infinity() : std::numeric_limits<double>::quiet_NaN();
  else if (f.special == Format::Fn && e == top && m == (1 << f.mantissa) - 1)
    v = std::numeric_limits<double>::quiet_NaN();
  else if (f.special == Format::Fnuz && sign == 1 && e == 0 && m == 0)
    return std::numeric_limits<double>::quiet_NaN();
  else if (e == 0)
    v = std::ldexp(double(m), 1 - f.bias - f.mantissa);
  else
    v = std::ldexp(double(m + (1 << f.mantissa)), e - f.bias - f.mantissa);
  return sign != 0 ? -v : v;
}

uint16_t double_to_narrow_float(DType t, double v, bool saturate) {
  if (t == DType::F8E8M0) return encode_e8m0(v);
  const Format f = format_of(t);
  const auto sign = uint16_t(std::signbit(v) ? 1 << (f.exponent + f.mantissa) : 0);
  const bool is_f8 = info(t).bits == 8, is_wide = info(t).bits == 16;
  if (std::isnan(v)) return f.special == Format::Fnuz ? nan_bits(f) : uint16_t(sign | nan_bits(f));
  const double limit = largest_finite(f);
  const int top = (1 << f.exponent) - 1;
  const uint16_t largest = f.special == Format::Ieee ? uint16_t((top << f.mantissa) - 1)
                           : f.special == Format::Fn ? uint16_t((top << f.mantissa) + (1 << f.mantissa) - 2)
                                                     : uint16_t((top << f.mantissa) + (1 << f.mantissa) - 1);
  const uint16_t overflow = f.special == Format::Ieee   ? uint16_t(sign | top << f.mantissa)
                            : f.special == Format::Fnuz ? nan_bits(f)
                            : f.special == Format::Fn   ? uint16_t(sign | nan_bits(f))
                                                        : uint16_t(sign | largest);
  const double a = std::fabs(v);
  if (std::isinf(v)) return is_wide || (is_f8 && !saturate) ? overflow : uint16_t(sign | largest);
  int e = 0;
  std::frexp(a, &e);  // a in [2^(e-1), 2^e)
  const int exponent = a == 0 ? 1 - f.bias : std::max(e - 1, 1 - f.bias);
  const double unit = std::ldexp(1.0, exponent - f.mantissa);
  const double q = std::nearbyint(a / unit);  // exact: a power of two; ties to even
  if (q * unit > limit) return is_f8 && saturate ? uint16_t(sign | largest) : overflow;
  const auto n = static_cast<int64_t>(q);
  const auto magnitude = uint16_t(n < (1 << f.mantissa) ? n : n + (int64_t(exponent + f.bias - 1) << f.mantissa));
  if (magnitude == 0 && f.special == Format::Fnuz) return 0;
  return uint16_t(sign | magnitude);
}

}  // namespace tc
