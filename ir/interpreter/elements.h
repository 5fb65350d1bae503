// How an element lies in memory and in a register, type by type.
#pragma once
#include <bit>
#include <cstdint>

#include "ir/dtype.h"

namespace tc::interp {

inline float half_to_float(uint16_t h) {
  uint32_t sign = uint32_t(h & 0x8000) << 16, rest = h & 0x7fff;
  if (rest >= 0x7c00) return std::bit_cast<float>(sign | 0x7f800000 | (rest & 0x3ff) << 13);
  if (rest >= 0x400) return std::bit_cast<float>(sign | ((rest << 13) + 0x38000000));
  float tiny = float(rest) * 0x1p-24f;
  return sign ? -tiny : tiny;
}

inline uint16_t float_to_half(float f) {
  uint32_t u = std::bit_cast<uint32_t>(f);
  auto sign = uint16_t(u >> 16 & 0x8000);
  u &= 0x7fffffff;
  if (u > 0x7f800000) return sign | 0x7e00;
  if (u >= 0x477ff000) return sign | 0x7c00;  // 65520 and more rounds to infinity
  if (u < 0x38800000)                         // subnormal: one ulp of 0.5 is their unit
    return uint16_t(sign | (std::bit_cast<uint32_t>(std::bit_cast<float>(u) + 0.5f) - 0x3f000000));
  u += 0xfff + (u >> 13 & 1);  // to nearest, ties to even
  return uint16_t(sign | (u - 0x38000000) >> 13);
}

inline float bfloat_to_float(uint16_t h) { return std::bit_cast<float>(uint32_t(h) << 16); }

inline uint16_t float_to_bfloat(float f) {
  uint32_t u = std::bit_cast<uint32_t>(f);
  if (f != f) return uint16_t((u >> 16 & 0x8000) | 0x7fc0);
  return uint16_t((u + 0x7fff + (u >> 16 & 1)) >> 16);
}

/// Storage type S, register type R, reading and writing one element.
template <DType t>
struct Element;

template <class Storage, class Register>
struct PlainElement {
  using S = Storage;
  using R = Register;
  static R get(S v) { return R(v); }
  static S put(R v) { return S(v); }
};
template <>
struct Element<DType::F32> : PlainElement<float, float> {};
template <>
struct Element<DType::F64> : PlainElement<double, double> {};
template <>
struct Element<DType::I8> : PlainElement<int8_t, int64_t> {};
template <>
struct Element<DType::I4> : PlainElement<int8_t, int64_t> {};
template <>
struct Element<DType::I2> : PlainElement<int8_t, int64_t> {};
template <>
struct Element<DType::U8> : PlainElement<uint8_t, int64_t> {};
template <>
struct Element<DType::U4> : PlainElement<uint8_t, int64_t> {};
template <>
struct Element<DType::U2> : PlainElement<uint8_t, int64_t> {};
template <>
struct Element<DType::I16> : PlainElement<int16_t, int64_t> {};
template <>
struct Element<DType::U16> : PlainElement<uint16_t, int64_t> {};
template <>
struct Element<DType::I32> : PlainElement<int32_t, int64_t> {};
template <>
struct Element<DType::U32> : PlainElement<uint32_t, int64_t> {};
template <>
struct Element<DType::I64> : PlainElement<int64_t, int64_t> {};
template <>
struct Element<DType::U64> : PlainElement<uint64_t, uint64_t> {};
template <>
struct Element<DType::Bool> {
  using S = uint8_t;
  using R = int64_t;
  static R get(S v) { return v != 0; }
  static S put(R v) { return v != 0; }
};
template <>
struct Element<DType::F16> {
  using S = uint16_t;
  using R = float;
  static R get(S v) { return half_to_float(v); }
  static S put(R v) { return float_to_half(v); }
};
template <>
struct Element<DType::BF16> {
  using S = uint16_t;
  using R = float;
  static R get(S v) { return bfloat_to_float(v); }
  static S put(R v) { return float_to_bfloat(v); }
};
template <DType t>
struct SmallFloatElement {
  using S = uint8_t;
  using R = float;
  static R get(S v) { return float(narrow_float_to_double(t, v)); }
  static S put(R v) { return S(double_to_narrow_float(t, double(v))); }
};
template <>
struct Element<DType::F8E4M3FN> : SmallFloatElement<DType::F8E4M3FN> {};
template <>
struct Element<DType::F8E4M3FNUZ> : SmallFloatElement<DType::F8E4M3FNUZ> {};
template <>
struct Element<DType::F8E5M2> : SmallFloatElement<DType::F8E5M2> {};
template <>
struct Element<DType::F8E5M2FNUZ> : SmallFloatElement<DType::F8E5M2FNUZ> {};
template <>
struct Element<DType::F4E2M1> : SmallFloatElement<DType::F4E2M1> {};
template <>
struct Element<DType::F8E8M0> : SmallFloatElement<DType::F8E8M0> {};

/// A string is a handle of the run's StringPool (strings.h). Its element has the size that info() says.
struct StringElement {
  int64_t handle, unused;
};
template <>
struct Element<DType::String> {
  using S = StringElement;
  using R = int64_t;
  static R get(S v) { return v.handle; }
  static S put(R v) { return {v, 0}; }
};

template <DType... T, class F>
auto with_element_of(DType t, F f) {
  decltype(f.template operator()<Element<DType::F32>>()) result{};
  (void)((t == T && (result = f.template operator()<Element<T>>(), true)) || ...);
  return result;
}

/// f.template operator()<Element>() for the element of a type that is known when it runs; a value-initialised result
/// for a type without elements (complex numbers).
template <class F>
auto with_element(DType t, F f) {
  using enum DType;
  return with_element_of<F32, F64, F16, BF16, F8E4M3FN, F8E4M3FNUZ, F8E5M2, F8E5M2FNUZ, F4E2M1, F8E8M0, I8, U8, I16,
                         U16, I32, U32, I64, U64, Bool, I4, U4, I2, U2, String>(t, f);
}

}  // namespace tc::interp
