/* SPDX-License-Identifier: 0BSD -- support text of tc-emit; do not edit */
/* One vector type, tc_vf, of TC_VL floats. The same kernels compile with 16 lanes (AVX-512), 8 (AVX), 4 (SSE, NEON)
 * or, for any C99 compiler, with TC_VL=1, where tc_vf is float and this file is strict ISO C.
 *
 *   tc_vf  floats      + - * / with vectors and with scalars
 *   tc_vi  int32_t     the bits of a tc_vf, lane by lane
 *   tc_vm  a mask      all bits of a lane set, or none; from tc_lt and its like, for tc_sel
 *
 * Elementwise functions give the same result for every TC_VL, but for the contraction of a * b + c, which the compiler's
 * flags decide. Horizontal sums add in a fixed tree, which depends on TC_VL. */
#ifndef TC_SIMD_H
#define TC_SIMD_H
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#if defined(__has_builtin)
#  define TC_HAS(builtin) __has_builtin(builtin)
#else
#  define TC_HAS(builtin) 1  /* gcc before version 10 */
#endif

#ifndef TC_VL
#  if !defined(__GNUC__) && !defined(__clang__)
#    define TC_VL 1
#  elif defined(_WIN32) && !defined(__clang__) && !defined(TC_UNALIGNED_STACK)
#    define TC_VL 4  /* gcc for Windows aligns its stack for these only; the build files make it do with any stack */
#  elif defined(__AVX512F__)
#    define TC_VL 16
#  elif defined(__AVX__)
#    define TC_VL 8
#  else
#    define TC_VL 4
#  endif
#endif

#define TC_VECTORS(n) (((n) + TC_VL - 1) / TC_VL)  /* vectors that hold n floats */

#ifndef TC_RESTRICT
#  if defined(__GNUC__) || defined(_MSC_VER)
#    define TC_RESTRICT __restrict
#  elif defined(__cplusplus)
#    define TC_RESTRICT
#  else
#    define TC_RESTRICT restrict
#  endif
#endif

#if TC_VL == 1
#  define TC_UNROLL  /* a tile of single floats exceeds the registers: as loops it is smaller, and no slower */
#elif defined(__clang__)
#  define TC_UNROLL _Pragma("clang loop unroll(full)")
#elif defined(__GNUC__)
#  define TC_UNROLL _Pragma("GCC unroll 64")
#else
#  define TC_UNROLL
#endif

#if defined(__GNUC__) || defined(__clang__)
#  define TC_INLINE static inline __attribute__((always_inline, unused))
#  define TC_PREFETCH(p) __builtin_prefetch(p)
#  define TC_PREFETCH_L2(p) __builtin_prefetch(p, 0, 2)
#  define TC_PREFETCH_WRITE(p) __builtin_prefetch(p, 1)
#else
#  define TC_INLINE static inline
#  define TC_PREFETCH(p) ((void)(p))
#  define TC_PREFETCH_L2(p) ((void)(p))
#  define TC_PREFETCH_WRITE(p) ((void)(p))
#endif

/* In a loop whose iterations read the same elements: GCC would keep many of them from one to the next, and move them through memory. */
#if defined(__GNUC__) && !defined(__clang__)
#  define tc_hide_address(p) __asm__("" : "+r"(p))
#else
#  define tc_hide_address(p) ((void)0)
#endif

#if TC_VL > 1

typedef float    tc_vf __attribute__((vector_size(4 * TC_VL)));
typedef int32_t  tc_vi __attribute__((vector_size(4 * TC_VL)));
typedef uint32_t tc_vu __attribute__((vector_size(4 * TC_VL)));
typedef tc_vi    tc_vm;
typedef float    tc_vf_unaligned __attribute__((vector_size(4 * TC_VL), aligned(4), may_alias));

TC_INLINE tc_vf tc_load(const float *p) { return *(const tc_vf_unaligned *)p; }
TC_INLINE void  tc_store(float *p, tc_vf v) { *(tc_vf_unaligned *)p = v; }
TC_INLINE tc_vf tc_set(float x) { const tc_vf zero = {0}; return x - zero; }  /* x - 0 keeps -0.0 */
TC_INLINE tc_vm tc_mask(int condition) { const tc_vm zero = {0}; return zero - (condition != 0); }
TC_INLINE tc_vi tc_bits(tc_vf x) { return (tc_vi)x; }
TC_INLINE tc_vf tc_from_bits(tc_vi i) { return (tc_vf)i; }

TC_INLINE tc_vm tc_lt(tc_vf a, tc_vf b) { return a < b; }
TC_INLINE tc_vm tc_le(tc_vf a, tc_vf b) { return a <= b; }
TC_INLINE tc_vm tc_eq(tc_vf a, tc_vf b) { return a == b; }
TC_INLINE tc_vm tc_ne(tc_vf a, tc_vf b) { return a != b; }
TC_INLINE tc_vf tc_sel(tc_vm m, tc_vf a, tc_vf b) { return (tc_vf)(((tc_vi)a & m) | ((tc_vi)b & ~m)); }

/* One lane: for what must go lane by lane. */
TC_INLINE float tc_get(tc_vf v, int lane) { return v[lane]; }
TC_INLINE tc_vf tc_put(tc_vf v, int lane, float x) { v[lane] = x; return v; }

#else

typedef float    tc_vf;
typedef int32_t  tc_vi;
typedef uint32_t tc_vu;
typedef int32_t  tc_vm;

TC_INLINE tc_vf tc_load(const float *p) { return *p; }
TC_INLINE void  tc_store(float *p, tc_vf v) { *p = v; }
TC_INLINE tc_vf tc_set(float x) { return x; }
TC_INLINE tc_vm tc_mask(int condition) { return -(condition != 0); }
TC_INLINE tc_vi tc_bits(tc_vf x) { tc_vi i; memcpy(&i, &x, 4); return i; }
TC_INLINE tc_vf tc_from_bits(tc_vi i) { tc_vf x; memcpy(&x, &i, 4); return x; }

TC_INLINE tc_vm tc_lt(tc_vf a, tc_vf b) { return -(a < b); }
TC_INLINE tc_vm tc_le(tc_vf a, tc_vf b) { return -(a <= b); }
TC_INLINE tc_vm tc_eq(tc_vf a, tc_vf b) { return -(a == b); }
TC_INLINE tc_vm tc_ne(tc_vf a, tc_vf b) { return -(a != b); }
TC_INLINE tc_vf tc_sel(tc_vm m, tc_vf a, tc_vf b) { return m ? a : b; }

TC_INLINE float tc_get(tc_vf v, int lane) { (void)lane; return v; }
TC_INLINE tc_vf tc_put(tc_vf v, int lane, float x) { (void)v; (void)lane; return x; }

#endif

TC_INLINE tc_vf tc_zero(void) { return tc_set(0.0f); }

/* Comparisons are false where a or b is NaN, tc_ne is true. tc_sel(m, a, b): a where m is set, else b. */
TC_INLINE tc_vm tc_gt(tc_vf a, tc_vf b) { return tc_lt(b, a); }
TC_INLINE tc_vm tc_ge(tc_vf a, tc_vf b) { return tc_le(b, a); }
TC_INLINE tc_vm tc_isnan(tc_vf a) { return tc_ne(a, a); }
TC_INLINE tc_vm tc_and(tc_vm a, tc_vm b) { return a & b; }
TC_INLINE tc_vm tc_or(tc_vm a, tc_vm b) { return a | b; }
TC_INLINE tc_vm tc_xor(tc_vm a, tc_vm b) { return a ^ b; }
TC_INLINE tc_vm tc_not(tc_vm a) { return ~a; }

/* Max and min as in NumPy: NaN in x stays NaN; the bound is not NaN. */
#if TC_VL == 16 && defined(__AVX512F__) && defined(__clang__)
TC_INLINE tc_vf tc_max(tc_vf x, tc_vf bound) { return __builtin_ia32_maxps512(bound, x, 4); }  /* 4: no matter of rounding */
TC_INLINE tc_vf tc_min(tc_vf x, tc_vf bound) { return __builtin_ia32_minps512(bound, x, 4); }
#elif TC_VL == 16 && defined(__AVX512F__)
TC_INLINE tc_vf tc_max(tc_vf x, tc_vf bound) { return __builtin_ia32_maxps512_mask(bound, x, x, -1, 4); }
TC_INLINE tc_vf tc_min(tc_vf x, tc_vf bound) { return __builtin_ia32_minps512_mask(bound, x, x, -1, 4); }
#elif TC_VL == 8 && defined(__AVX__)
TC_INLINE tc_vf tc_max(tc_vf x, tc_vf bound) { return __builtin_ia32_maxps256(bound, x); }
TC_INLINE tc_vf tc_min(tc_vf x, tc_vf bound) { return __builtin_ia32_minps256(bound, x); }
#elif TC_VL == 4 && defined(__SSE__)
TC_INLINE tc_vf tc_max(tc_vf x, tc_vf bound) { return __builtin_ia32_maxps(bound, x); }
TC_INLINE tc_vf tc_min(tc_vf x, tc_vf bound) { return __builtin_ia32_minps(bound, x); }
#else
TC_INLINE tc_vf tc_max(tc_vf x, tc_vf bound) { return tc_sel(tc_lt(x, bound), bound, x); }
TC_INLINE tc_vf tc_min(tc_vf x, tc_vf bound) { return tc_sel(tc_lt(bound, x), bound, x); }
#endif
/* The same for any two values: NaN in either stays NaN. */
#if TC_VL == 16 && defined(__AVX512F__) && defined(__clang__)
TC_INLINE tc_vf tc_max2(tc_vf a, tc_vf b) { return __builtin_ia32_selectps_512(__builtin_ia32_cmpps512_mask(b, b, 7, 0xffff, 4), tc_max(a, b), b); }  /* 7: neither is NaN */
TC_INLINE tc_vf tc_min2(tc_vf a, tc_vf b) { return __builtin_ia32_selectps_512(__builtin_ia32_cmpps512_mask(b, b, 7, 0xffff, 4), tc_min(a, b), b); }
#elif TC_VL == 16 && defined(__AVX512F__)
TC_INLINE tc_vf tc_max2(tc_vf a, tc_vf b) { return __builtin_ia32_maxps512_mask(b, a, b, (int16_t)__builtin_ia32_cmpps512_mask(b, b, 7, 0xffff, 4), 4); }  /* 7: neither is NaN */
TC_INLINE tc_vf tc_min2(tc_vf a, tc_vf b) { return __builtin_ia32_minps512_mask(b, a, b, (int16_t)__builtin_ia32_cmpps512_mask(b, b, 7, 0xffff, 4), 4); }
#else
TC_INLINE tc_vf tc_max2(tc_vf a, tc_vf b) { return tc_sel(tc_isnan(b), b, tc_max(a, b)); }
TC_INLINE tc_vf tc_min2(tc_vf a, tc_vf b) { return tc_sel(tc_isnan(b), b, tc_min(a, b)); }
#endif

TC_INLINE tc_vf tc_neg(tc_vf x) { return -x; }
TC_INLINE tc_vf tc_abs(tc_vf x) { return tc_from_bits(tc_bits(x) & 0x7fffffff); }
TC_INLINE tc_vm tc_isinf(tc_vf x) { return tc_gt(tc_abs(x), tc_set(3.40282347e38f)); }
TC_INLINE tc_vf tc_copysign(tc_vf x, tc_vf s) { return tc_from_bits((tc_bits(x) & 0x7fffffff) | (tc_bits(s) & INT32_MIN)); }
/* -1, 0 or 1; NaN stays NaN */
TC_INLINE tc_vf tc_sign(tc_vf x) { return tc_sel(tc_eq(tc_abs(x), tc_zero()), tc_zero(), tc_sel(tc_isnan(x), x, tc_copysign(tc_set(1.0f), x))); }
TC_INLINE tc_vf tc_rcp(tc_vf x) { return 1.0f / x; }  /* correctly rounded */

/* x / d where |x / d| < 2^20, rounded correctly but for a few x of some d; where it is larger, NaN may come. The reciprocal of a
 * constant d is one, and the rest that its product leaves makes that good, for which multiplication and addition are fused. */
#if TC_VL == 16 && defined(__AVX512F__) && defined(__clang__)
#  define TC_FUSED(a, b, c) __builtin_ia32_vfmaddps512_mask(a, b, c, 0xffff, 4)
#elif TC_VL == 16 && defined(__AVX512F__)
#  define TC_FUSED(a, b, c) __builtin_ia32_vfmaddps512_mask(a, b, c, -1, 4)
#elif TC_VL == 8 && defined(__FMA__) && !defined(__clang__)
#  define TC_FUSED(a, b, c) __builtin_ia32_vfmaddps256(a, b, c)
#endif
TC_INLINE tc_vf tc_quotient(tc_vf x, tc_vf d)
{
#ifdef TC_FUSED
  const tc_vf inverse = 1.0f / d, quotient = x * inverse;
  return TC_FUSED(TC_FUSED(-quotient, d, x), inverse, quotient);
#else
  return x / d;
#endif
}

/* To an integer: tc_round to the nearest, ties to even. */
#if TC_VL == 16 && defined(__AVX512F__) && defined(__clang__)
#  define TC_TO_INTEGER(x, how) __builtin_ia32_rndscaleps_mask(x, how, x, 0xffff, 4)
#elif TC_VL == 16 && defined(__AVX512F__)
#  define TC_TO_INTEGER(x, how) __builtin_ia32_rndscaleps_mask(x, how, x, -1, 4)
#elif TC_VL == 8 && defined(__AVX__)
#  define TC_TO_INTEGER(x, how) __builtin_ia32_roundps256(x, how)
#elif TC_VL == 4 && defined(__SSE4_1__)
#  define TC_TO_INTEGER(x, how) __builtin_ia32_roundps(x, how)
#endif
#ifdef TC_TO_INTEGER  /* 8 to 11: to the nearest, down, up, toward zero, and no flag is raised */
TC_INLINE tc_vf tc_round(tc_vf x) { return TC_TO_INTEGER(x, 8); }
TC_INLINE tc_vf tc_floor(tc_vf x) { return TC_TO_INTEGER(x, 9); }
TC_INLINE tc_vf tc_ceil(tc_vf x) { return TC_TO_INTEGER(x, 10); }
TC_INLINE tc_vf tc_trunc(tc_vf x) { return TC_TO_INTEGER(x, 11); }
#else
TC_INLINE tc_vf tc_round(tc_vf x)
{ /* Adding 2^23 rounds away the fraction. From 2^23 on every float is an integer. */
  const tc_vf r = tc_copysign(tc_abs(x) + 8388608.0f - 8388608.0f, x);
  return tc_sel(tc_lt(tc_abs(x), tc_set(8388608.0f)), r, x);
}
TC_INLINE tc_vf tc_floor(tc_vf x) { const tc_vf r = tc_round(x); return tc_copysign(r - tc_sel(tc_lt(x, r), tc_set(1.0f), tc_zero()), x); }
TC_INLINE tc_vf tc_ceil(tc_vf x) { return -tc_floor(-x); }
TC_INLINE tc_vf tc_trunc(tc_vf x) { return tc_copysign(tc_floor(tc_abs(x)), x); }
#endif

/* Lanes that do not lie side by side: p[0], p[stride], ...; p[index[0]], p[index[1]], ... */
TC_INLINE tc_vf tc_load_stride(const float *p, ptrdiff_t stride)
{
  tc_vf v = tc_zero();
  TC_UNROLL for (int l = 0; l < TC_VL; l++) v = tc_put(v, l, p[l * stride]);
  return v;
}
/* p[0], p[2], ..., out of 2 * TC_VL floats that are all read */
#if TC_VL == 1
TC_INLINE tc_vf tc_load_even(const float *p) { return *p; }
#else
#  if TC_VL == 16
#    define TC_EVEN 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30
#  elif TC_VL == 8
#    define TC_EVEN 0, 2, 4, 6, 8, 10, 12, 14
#  else
#    define TC_EVEN 0, 2, 4, 6
#  endif
#  if defined(__clang__)
TC_INLINE tc_vf tc_load_even(const float *p) { return __builtin_shufflevector(tc_load(p), tc_load(p + TC_VL), TC_EVEN); }
#  else
TC_INLINE tc_vf tc_load_even(const float *p) { const tc_vi lanes = {TC_EVEN}; return __builtin_shuffle(tc_load(p), tc_load(p + TC_VL), lanes); }
#  endif
#endif
TC_INLINE void tc_store_stride(float *p, ptrdiff_t stride, tc_vf v)
{
  TC_UNROLL for (int l = 0; l < TC_VL; l++) p[l * stride] = tc_get(v, l);
}
TC_INLINE tc_vf tc_gather(const float *p, const int32_t *index)
{
  tc_vf v = tc_zero();
  TC_UNROLL for (int l = 0; l < TC_VL; l++) v = tc_put(v, l, p[index[l]]);
  return v;
}

/* Over the lanes, as a tree: lane l meets lane l + TC_VL / 2, then l + TC_VL / 4, ... Max and min give NaN if any lane is. */
#if TC_VL > 1

typedef float   tc_v4f __attribute__((vector_size(16)));
typedef int32_t tc_v4i __attribute__((vector_size(16)));

#  if defined(__clang__)
TC_INLINE tc_v4f tc_swap_halves(tc_v4f v) { return __builtin_shufflevector(v, v, 2, 3, 0, 1); }
TC_INLINE tc_v4f tc_swap_pairs(tc_v4f v) { return __builtin_shufflevector(v, v, 1, 0, 3, 2); }
#  else
TC_INLINE tc_v4f tc_swap_halves(tc_v4f v) { const tc_v4i lanes = {2, 3, 0, 1}; return __builtin_shuffle(v, lanes); }
TC_INLINE tc_v4f tc_swap_pairs(tc_v4f v) { const tc_v4i lanes = {1, 0, 3, 2}; return __builtin_shuffle(v, lanes); }
#  endif

TC_INLINE tc_v4f tc_sum4(tc_v4f a, tc_v4f b) { return a + b; }
TC_INLINE tc_v4f tc_prod4(tc_v4f a, tc_v4f b) { return a * b; }
TC_INLINE tc_v4f tc_max4(tc_v4f a, tc_v4f b) { const tc_v4i m = (b > a) | (b != b); return (tc_v4f)(((tc_v4i)b & m) | ((tc_v4i)a & ~m)); }
TC_INLINE tc_v4f tc_min4(tc_v4f a, tc_v4f b) { const tc_v4i m = (b < a) | (b != b); return (tc_v4f)(((tc_v4i)b & m) | ((tc_v4i)a & ~m)); }

#  define TC_HORIZONTAL(name, of_two)                                                        \
    TC_INLINE float name(tc_vf v)                                                            \
    {                                                                                        \
      tc_v4f q[TC_VL / 4];                                                                   \
      memcpy(q, &v, sizeof v);                                                               \
      TC_UNROLL for (int w = TC_VL / 8; w > 0; w /= 2)                                       \
        TC_UNROLL for (int i = 0; i < w; i++) q[i] = of_two(q[i], q[i + w]);                 \
      q[0] = of_two(q[0], tc_swap_halves(q[0]));                                             \
      q[0] = of_two(q[0], tc_swap_pairs(q[0]));                                              \
      return q[0][0];                                                                        \
    }
TC_HORIZONTAL(tc_hsum, tc_sum4)
TC_HORIZONTAL(tc_hprod, tc_prod4)
TC_HORIZONTAL(tc_hmax, tc_max4)
TC_HORIZONTAL(tc_hmin, tc_min4)

#else

TC_INLINE float tc_hsum(tc_vf v) { return v; }
TC_INLINE float tc_hprod(tc_vf v) { return v; }
TC_INLINE float tc_hmax(tc_vf v) { return v; }
TC_INLINE float tc_hmin(tc_vf v) { return v; }

#endif

TC_INLINE int tc_any(tc_vm m)
{
  int32_t t[TC_VL], any = 0;
  memcpy(t, &m, sizeof t);
  TC_UNROLL for (int l = 0; l < TC_VL; l++) any |= t[l];
  return any != 0;
}

#endif
