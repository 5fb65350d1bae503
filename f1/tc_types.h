/* SPDX-License-Identifier: 0BSD -- support text of tc-emit; do not edit */
/* The narrow float types: stored as uint16_t (f16, bf16) or uint8_t (one element a byte), computed as float. Conversions
 * to them round to nearest, ties to even, as ONNX's Cast does; every value converts to float exactly. For the f8 types
 * `saturate` chooses what overflow and infinity give: the largest value, or infinity (NaN where there is none). */
#ifndef TC_TYPES_H
#define TC_TYPES_H
#if !defined(__CUDACC_RTC__) /* NVRTC has no system headers: tc_cuda.h, included before, names the types */
#include <stdint.h>
#include <string.h>
#endif

#if defined(__CUDACC__)
#define TC_TYPE static __host__ __device__ inline
#elif defined(__GNUC__) || defined(__clang__)
#define TC_TYPE static inline __attribute__((unused))
#else
#define TC_TYPE static inline
#endif

TC_TYPE uint32_t tc_float_bits(float x) {
  uint32_t b;
  memcpy(&b, &x, 4);
  return b;
}
TC_TYPE float tc_float_from_bits(uint32_t b) {
  float x;
  memcpy(&x, &b, 4);
  return x;
}

/* A double as a float that rounds on to any narrow type as the double itself would: toward zero, the last bit set if
 * anything was lost. */
TC_TYPE float tc_f32_to_odd(double x) {
  const float y = (float)x;
  uint32_t b = tc_float_bits(y);
  if ((double)y == x || y != y) return y;
  if (((double)y < 0 ? -(double)y : (double)y) > (x < 0 ? -x : x)) b--; /* from infinity, too: to the largest float */
  return tc_float_from_bits(b | 1u);
}

/* --- f16: 1 sign, 5 exponent, 10 mantissa bits */
TC_TYPE float tc_f32_from_f16(uint16_t h) {
#if defined(__CUDA_ARCH__)
  float x;
  asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(h));
  return x;
#else
  const float magnitude = tc_float_from_bits((uint32_t)(h & 0x7fff) << 13) * 5.192296858534828e33f; /* 2^112 */
  const uint32_t infinite = (h & 0x7c00) == 0x7c00 ? 0x7f800000u : 0u;
  return tc_float_from_bits(tc_float_bits(magnitude) | infinite | (uint32_t)(h & 0x8000) << 16);
#endif
}
TC_TYPE uint16_t tc_f16_from_f32(float x) {
  const uint32_t b = tc_float_bits(x), sign = b >> 16 & 0x8000u, a = b & 0x7fffffffu;
  if (a > 0x7f800000u) return (uint16_t)(sign | 0x7e00u);
#if defined(__CUDA_ARCH__)
  uint16_t h;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(h) : "f"(x));
  return h;
#else
  if (a >= 0x477ff000u) return (uint16_t)(sign | 0x7c00u); /* 65520 and above */
  if (a < 0x38800000u)
    return (uint16_t)(sign | (tc_float_bits(tc_float_from_bits(a) + 0.5f) - 0x3f000000u)); /* denormal */
  return (uint16_t)(sign | (a - 0x38000000u + 0xfffu + (a >> 13 & 1u)) >> 13);
#endif
}

/* --- bf16: the upper half of a float */
TC_TYPE float tc_f32_from_bf16(uint16_t h) { return tc_float_from_bits((uint32_t)h << 16); }
TC_TYPE uint16_t tc_bf16_from_f32(float x) {
  const uint32_t b = tc_float_bits(x);
  if ((b & 0x7fffffffu) > 0x7f800000u) return (uint16_t)((b >> 16 & 0x8000u) | 0x7fc0u);
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  uint16_t h;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(h) : "f"(x));
  return h;
#else
  return (uint16_t)((b + 0x7fffu + (b >> 16 & 1u)) >> 16);
#endif
}

/* --- small floats with m mantissa bits: |x| as their bits without the sign, as if the exponent had no end */
TC_TYPE uint32_t tc_small_float_bits(float x, int m, int bias) {
  const uint32_t a = tc_float_bits(x) & 0x7fffffffu, drop = (uint32_t)(23 - m), lowest = (uint32_t)(128 - bias) << 23;
  if (a < lowest) { /* denormal: a multiple of 2^(1 - bias - m) */
    const float scale = tc_float_from_bits((uint32_t)(126 + bias + m) << 23);
    return tc_float_bits(tc_float_from_bits(a) * scale + 8388608.0f) - 0x4b000000u;
  }
  return ((a + (1u << (drop - 1)) - 1u + (a >> drop & 1u)) >> drop) - ((uint32_t)(127 - bias) << m);
}
TC_TYPE float tc_small_float_value(uint32_t magnitude, int m, int bias) {
  if (magnitude >> m == 0) return (float)magnitude * tc_float_from_bits((uint32_t)(128 - bias - m) << 23);
  return tc_float_from_bits((magnitude << (23 - m)) + ((uint32_t)(127 - bias) << 23));
}

/* IEEE style: infinity is one above `largest`. "fn": no infinity, NaN with either sign. */
TC_TYPE uint8_t tc_f8_encode(float x, int m, int bias, uint32_t largest, uint32_t nan, uint32_t overflow,
                             int saturate) {
  const uint32_t sign = tc_float_bits(x) >> 24 & 0x80u, bits = tc_small_float_bits(x, m, bias);
  if (x != x) return (uint8_t)(sign | nan);
  return (uint8_t)(sign | (bits <= largest ? bits : saturate ? largest : overflow));
}
/* "fnuz": one zero, one NaN, which takes the place of -0, no infinity. */
TC_TYPE uint8_t tc_f8_encode_fnuz(float x, int m, int bias, int saturate) {
  const uint32_t sign = tc_float_bits(x) >> 24 & 0x80u, bits = tc_small_float_bits(x, m, bias);
  if (x != x || (bits > 0x7fu && !saturate)) return 0x80;
  return (uint8_t)(bits == 0 ? 0u : sign | (bits > 0x7fu ? 0x7fu : bits));
}
TC_TYPE float tc_f8_sign(uint32_t h, float magnitude) { return (h & 0x80u) != 0 ? -magnitude : magnitude; }
TC_TYPE float tc_nan(void) { return tc_float_from_bits(0x7fc00000u); }

TC_TYPE uint8_t tc_f8e4m3fn_from_f32(float x, int saturate) {
  return tc_f8_encode(x, 3, 7, 0x7e, 0x7f, 0x7f, saturate);
}
TC_TYPE uint8_t tc_f8e5m2_from_f32(float x, int saturate) { return tc_f8_encode(x, 2, 15, 0x7b, 0x7e, 0x7c, saturate); }
TC_TYPE uint8_t tc_f8e4m3fnuz_from_f32(float x, int saturate) { return tc_f8_encode_fnuz(x, 3, 8, saturate); }
TC_TYPE uint8_t tc_f8e5m2fnuz_from_f32(float x, int saturate) { return tc_f8_encode_fnuz(x, 2, 16, saturate); }

TC_TYPE float tc_f32_from_f8e4m3fn(uint8_t h) {
  return (h & 0x7f) == 0x7f ? tc_nan() : tc_f8_sign(h, tc_small_float_value(h & 0x7fu, 3, 7));
}
TC_TYPE float tc_f32_from_f8e5m2(uint8_t h) {
  if ((h & 0x7f) > 0x7c) return tc_nan();
  return tc_f8_sign(h, (h & 0x7f) == 0x7c ? tc_float_from_bits(0x7f800000u) : tc_small_float_value(h & 0x7fu, 2, 15));
}
TC_TYPE float tc_f32_from_f8e4m3fnuz(uint8_t h) {
  return h == 0x80 ? tc_nan() : tc_f8_sign(h, tc_small_float_value(h & 0x7fu, 3, 8));
}
TC_TYPE float tc_f32_from_f8e5m2fnuz(uint8_t h) {
  return h == 0x80 ? tc_nan() : tc_f8_sign(h, tc_small_float_value(h & 0x7fu, 2, 16));
}

/* --- f8e8m0: a power of two, 2^(bits - 127); 255 is NaN. To nearest, ties to the even exponent; negative values and NaN
 * give NaN, infinity and overflow the largest. */
TC_TYPE float tc_f32_from_f8e8m0(uint8_t h) {
  return tc_float_from_bits(h == 255 ? 0x7fc00000u : h == 0 ? 0x00400000u : (uint32_t)h << 23);
}
TC_TYPE uint8_t tc_f8e8m0_from_f32(float x) {
  const uint32_t a = tc_float_bits(x) & 0x7fffffffu, exponent = a >> 23, mantissa = a & 0x007fffffu;
  if (x != x || x < 0) return 255;
  if (exponent >= 254) return 254;
  if (exponent == 0) return mantissa > 0x00600000u; /* 2^-127 is a denormal float */
  return (uint8_t)(exponent + (mantissa > 0x00400000u || (mantissa == 0x00400000u && (exponent & 1u))));
}

/* --- f4e2m1: 0 0.5 1 1.5 2 3 4 6 and their negatives, in the low four bits. Overflow gives 6; NaN gives 0. */
TC_TYPE float tc_f32_from_f4e2m1(uint8_t h) {
  return (h & 8) != 0 ? -tc_small_float_value(h & 7u, 1, 1) : tc_small_float_value(h & 7u, 1, 1);
}
TC_TYPE uint8_t tc_f4e2m1_from_f32(float x) {
  const uint32_t sign = tc_float_bits(x) >> 28 & 8u, bits = x != x ? 0u : tc_small_float_bits(x, 1, 1);
  return (uint8_t)(sign | (bits > 7u ? 7u : bits));
}

#endif
