/* SPDX-License-Identifier: 0BSD -- support text of tc-emit; do not edit */
/* Scalar operations that C leaves undefined or has no word for, as tc_OP_TYPE, and conversions, as tc_TO_from_FROM.
 * TYPE is i2 i4 i8 i16 i32 i64 u2 u4 u8 u16 u32 u64 f32 f64.
 *
 * Integers wrap around. x / 0 and x mod 0 are 0. A shift by less than 0 or by the width or more gives 0. A negative power
 * is the whole part of the quotient: 0, but for the bases 1 and -1. */
#ifndef TC_SCALAR_H
#define TC_SCALAR_H
#if !defined(__CUDACC_RTC__)  /* NVRTC has no system headers: tc_cuda.h, included before, names the types */
#  include <math.h>
#  include <stdint.h>
#  include <string.h>
#endif

#if defined(__CUDACC__)
#  define TC_SCALAR static __host__ __device__ inline
#elif defined(__GNUC__) || defined(__clang__)
#  define TC_SCALAR static inline __attribute__((unused))
#else
#  define TC_SCALAR static inline
#endif

/* Both kinds of integers: N is the type's short name, T the type, U unsigned and at least 32 bits wide. */
#define TC_INTEGER(N, T, U, BITS)                                                                                \
  TC_SCALAR T tc_add_##N(T a, T b) { return (T)((U)a + (U)b); }                                                  \
  TC_SCALAR T tc_sub_##N(T a, T b) { return (T)((U)a - (U)b); }                                                  \
  TC_SCALAR T tc_mul_##N(T a, T b) { return (T)((U)a * (U)b); }                                                  \
  TC_SCALAR T tc_neg_##N(T a) { return (T)((U)0 - (U)a); }                                                       \
  TC_SCALAR T tc_min_##N(T a, T b) { return b < a ? b : a; }                                                     \
  TC_SCALAR T tc_max_##N(T a, T b) { return a < b ? b : a; }                                                     \
  TC_SCALAR T tc_bit_not_##N(T a) { return (T)~(U)a; }                                                           \
  TC_SCALAR T tc_shl_##N(T a, T by) { return (uint64_t)by < BITS ? (T)((U)a << by) : (T)0; }                     \
  TC_SCALAR T tc_shr_##N(T a, T by) { return (uint64_t)by < BITS ? (T)(a >> by) : (T)0; }                        \
  /* by squaring; the exponent is not negative */                                                                \
  TC_SCALAR T tc_power_##N(T base, T exponent)                                                                   \
  {                                                                                                              \
    U result = 1, square = (U)base;                                                                              \
    for (U rest = (U)exponent; rest != 0; rest >>= 1) {                                                          \
      if (rest & 1) result *= square;                                                                            \
      square *= square;                                                                                          \
    }                                                                                                            \
    return (T)result;                                                                                            \
  }

#define TC_SIGNED(N, T, U, BITS)                                                                                 \
  TC_INTEGER(N, T, U, BITS)                                                                                      \
  TC_SCALAR T tc_abs_##N(T a) { return a < 0 ? tc_neg_##N(a) : a; }                                              \
  TC_SCALAR T tc_sign_##N(T a) { return (T)((a > 0) - (a < 0)); }                                                \
  TC_SCALAR T tc_div_##N(T a, T b) { return b == 0 ? (T)0 : b == -1 ? tc_neg_##N(a) : (T)(a / b); }              \
  TC_SCALAR T tc_mod_##N(T a, T b) { return b == 0 || b == -1 ? (T)0 : (T)(a % b); }                             \
  TC_SCALAR T tc_floor_mod_##N(T a, T b)                                                                         \
  {                                                                                                              \
    const T r = tc_mod_##N(a, b);                                                                                \
    return r != 0 && (r < 0) != (b < 0) ? (T)(r + b) : r;                                                        \
  }                                                                                                              \
  TC_SCALAR T tc_floor_div_##N(T a, T b)                                                                         \
  {                                                                                                              \
    const T r = tc_mod_##N(a, b);                                                                                \
    return (T)(tc_div_##N(a, b) - (r != 0 && (r < 0) != (b < 0)));                                               \
  }                                                                                                              \
  TC_SCALAR T tc_pow_##N(T base, T exponent)                                                                     \
  {                                                                                                              \
    if (exponent >= 0) return tc_power_##N(base, exponent);                                                      \
    return base == 1 ? (T)1 : base == -1 ? (T)(exponent % 2 == 0 ? 1 : -1) : (T)0;                               \
  }

#define TC_UNSIGNED(N, T, U, BITS)                                                                               \
  TC_INTEGER(N, T, U, BITS)                                                                                      \
  TC_SCALAR T tc_abs_##N(T a) { return a; }                                                                      \
  TC_SCALAR T tc_sign_##N(T a) { return a != 0; }                                                                \
  TC_SCALAR T tc_div_##N(T a, T b) { return b == 0 ? (T)0 : (T)(a / b); }                                        \
  TC_SCALAR T tc_mod_##N(T a, T b) { return b == 0 ? (T)0 : (T)(a % b); }                                        \
  TC_SCALAR T tc_floor_mod_##N(T a, T b) { return tc_mod_##N(a, b); }                                            \
  TC_SCALAR T tc_floor_div_##N(T a, T b) { return tc_div_##N(a, b); }                                            \
  TC_SCALAR T tc_pow_##N(T base, T exponent) { return tc_power_##N(base, exponent); }

TC_SIGNED(i8, int8_t, uint32_t, 8)
TC_SIGNED(i16, int16_t, uint32_t, 16)
TC_SIGNED(i32, int32_t, uint32_t, 32)
TC_SIGNED(i64, int64_t, uint64_t, 64)
TC_UNSIGNED(u8, uint8_t, uint32_t, 8)
TC_UNSIGNED(u16, uint16_t, uint32_t, 16)
TC_UNSIGNED(u32, uint32_t, uint32_t, 32)
TC_UNSIGNED(u64, uint64_t, uint64_t, 64)

/* Types of four and two bits, one element a byte: the low bits of an integer, and the same operations. */
TC_SCALAR int8_t  tc_i4_wrap(int64_t a) { return (int8_t)((int)((uint64_t)(a + 8) & 15) - 8); }
TC_SCALAR uint8_t tc_u4_wrap(int64_t a) { return (uint8_t)(a & 15); }
TC_SCALAR int8_t  tc_i2_wrap(int64_t a) { return (int8_t)((int)((uint64_t)(a + 2) & 3) - 2); }
TC_SCALAR uint8_t tc_u2_wrap(int64_t a) { return (uint8_t)(a & 3); }

#define TC_PART_UNARY(OP, N, T, WHOLE)  TC_SCALAR T tc_##OP##_##N(T a) { return tc_##N##_wrap(tc_##OP##_##WHOLE(a)); }
#define TC_PART_BINARY(OP, N, T, WHOLE) TC_SCALAR T tc_##OP##_##N(T a, T b) { return tc_##N##_wrap(tc_##OP##_##WHOLE(a, b)); }
#define TC_PART_OF_BYTE(N, T, WHOLE, BITS)                                                                       \
  TC_PART_UNARY(neg, N, T, WHOLE) TC_PART_UNARY(abs, N, T, WHOLE) TC_PART_UNARY(sign, N, T, WHOLE)               \
  TC_PART_UNARY(bit_not, N, T, WHOLE) TC_PART_BINARY(add, N, T, WHOLE) TC_PART_BINARY(sub, N, T, WHOLE)          \
  TC_PART_BINARY(mul, N, T, WHOLE) TC_PART_BINARY(div, N, T, WHOLE) TC_PART_BINARY(mod, N, T, WHOLE)             \
  TC_PART_BINARY(floor_div, N, T, WHOLE) TC_PART_BINARY(floor_mod, N, T, WHOLE) TC_PART_BINARY(min, N, T, WHOLE) \
  TC_PART_BINARY(max, N, T, WHOLE) TC_PART_BINARY(pow, N, T, WHOLE)                                              \
  TC_SCALAR T tc_shl_##N(T a, T by) { return (uint64_t)by < BITS ? tc_##N##_wrap(tc_shl_##WHOLE(a, by)) : (T)0; } \
  TC_SCALAR T tc_shr_##N(T a, T by) { return (uint64_t)by < BITS ? tc_##N##_wrap(tc_shr_##WHOLE(a, by)) : (T)0; }

TC_PART_OF_BYTE(i4, int8_t, i8, 4)
TC_PART_OF_BYTE(u4, uint8_t, u8, 4)
TC_PART_OF_BYTE(i2, int8_t, i8, 2)
TC_PART_OF_BYTE(u2, uint8_t, u8, 2)

/* The bits of a value as another type of the same size. */
#define TC_BITS(FROM, F, TO, T)                                                                                  \
  TC_SCALAR T tc_bits_##FROM##_##TO(F x) { T y; memcpy(&y, &x, sizeof y); return y; }
TC_BITS(f32, float, u32, uint32_t)
TC_BITS(u32, uint32_t, f32, float)
TC_BITS(f64, double, u64, uint64_t)
TC_BITS(u64, uint64_t, f64, double)

/* Max and min give NaN if either is NaN, as in NumPy; sign keeps NaN and gives 0 for both zeros. */
#define TC_FLOAT(N, T, S)                                                                                        \
  TC_SCALAR T tc_max_##N(T a, T b) { return b != b ? b : a < b ? b : a; }                                        \
  TC_SCALAR T tc_min_##N(T a, T b) { return b != b ? b : b < a ? b : a; }                                        \
  TC_SCALAR T tc_sign_##N(T a) { return a != a ? a : (T)((a > 0) - (a < 0)); }                                   \
  TC_SCALAR T tc_sigmoid_##N(T a) { return 1 / (1 + exp##S(-a)); }                                               \
  TC_SCALAR T tc_floor_div_##N(T a, T b) { return floor##S(a / b); }                                             \
  /* the remainder with the sign of the divisor, as Python's */                                                  \
  TC_SCALAR T tc_floor_mod_##N(T a, T b)                                                                         \
  {                                                                                                              \
    const T r = fmod##S(a, b);                                                                                   \
    if (r == 0) return copysign##S((T)0, b);                                                                       \
    return (r < 0) != (b < 0) ? r + b : r;                                                                       \
  }

TC_FLOAT(f32, float, f)
TC_FLOAT(f64, double, )

/* Floats to integers, toward zero. ONNX leaves values out of range open; here they give what x86-64 gives NumPy and ONNX
 * Runtime, on every machine: the smallest i32 (i64) for NaN and for what does not fit; narrower types take the low bits of
 * the i32, u32 those of the i64; u64 wraps from -2^63 to 2^64, and gives 2^63 beyond. */
#define TC_FROM_FLOAT(F, T, BELOW)                                                                                \
  TC_SCALAR int32_t  tc_i32_from_##F(T x) { return x > (T)BELOW && x < (T)2147483648.0 ? (int32_t)x : INT32_MIN; } \
  TC_SCALAR int64_t  tc_i64_from_##F(T x) { return x >= (T)-9223372036854775808.0 && x < (T)9223372036854775808.0 ? (int64_t)x : INT64_MIN; } \
  TC_SCALAR int8_t   tc_i8_from_##F(T x) { return (int8_t)tc_i32_from_##F(x); }                                  \
  TC_SCALAR int16_t  tc_i16_from_##F(T x) { return (int16_t)tc_i32_from_##F(x); }                                \
  TC_SCALAR uint8_t  tc_u8_from_##F(T x) { return (uint8_t)tc_i32_from_##F(x); }                                 \
  TC_SCALAR uint16_t tc_u16_from_##F(T x) { return (uint16_t)tc_i32_from_##F(x); }                               \
  TC_SCALAR uint32_t tc_u32_from_##F(T x) { return (uint32_t)tc_i64_from_##F(x); }                               \
  TC_SCALAR uint64_t tc_u64_from_##F(T x)                                                                        \
  {                                                                                                              \
    return x >= (T)9223372036854775808.0 && x < (T)18446744073709551616.0 ? (uint64_t)x : (uint64_t)tc_i64_from_##F(x); \
  }

TC_FROM_FLOAT(f32, float, -2147483904.0)  /* the first float below -2^31 */
TC_FROM_FLOAT(f64, double, -2147483649.0)

#endif
