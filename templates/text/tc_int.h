/* SPDX-License-Identifier: 0BSD -- support text of tc-emit; do not edit */
/* Vectors of integers, and sums of products of bytes. A tc_vi has TC_VL lanes of int32_t; tensors of bytes are widened as
 * they are read and lose their upper bits as they are written. Every function gives the same bits for every TC_VL and
 * every processor; the processor's own instructions stand beside a body in plain C.
 *
 *   tc_load_u8, tc_load_i8, tc_load_i32       lanes from memory; with _n, the first n of them, the others being 0
 *   tc_load_bool, tc_store_bool               a mask from memory, and to memory; with _n, of the first n lanes
 *   tc_store_u8, tc_store_i8, tc_store_i32    the low bits of the lanes; with _n, of the first n lanes
 *   tc_store_riffled_N_u8, _i8                p[i + N * l] = t[i], lane l, as tc_store_u8 does: N vectors, 2 to 4
 *   tc_iadd, tc_isub, tc_imul                 modulo 2^32
 *   tc_float, tc_int                          to float, rounded to nearest; from float, toward zero (INT32_MIN if out of range)
 *   tc_int_nearest                            from float, to the nearest, ties to even
 *   tc_dot4                                   sum + a[0] * b[0] + ... + a[3] * b[3], lane by lane
 *   tc_madd                                   sum + a * b of bytes a and numbers b of 16 bits */
#ifndef TC_INT_H
#define TC_INT_H
#include "tc_simd.h"
#if TC_VL == 16 && defined(__AVX512BW__) && defined(__AVX512VL__)
#  define TC_INT_AVX512
#elif TC_VL == 8 && defined(__AVX2__)
#  define TC_INT_AVX2
#elif TC_VL == 4 && defined(__SSE2__)
#  define TC_INT_SSE2
#elif TC_VL == 4 && defined(__aarch64__) && !defined(__AARCH64EB__)
#  define TC_INT_NEON
#endif
#if defined(TC_INT_AVX512) || defined(TC_INT_AVX2) || defined(TC_INT_SSE2)
#  include <immintrin.h>
#elif defined(TC_INT_NEON)
#  include <arm_neon.h>
#endif

#if TC_VL > 1

typedef int32_t tc_vi_unaligned __attribute__((vector_size(4 * TC_VL), aligned(4), may_alias));

TC_INLINE tc_vi   tc_iset(int32_t x) { const tc_vi zero = {0}; return x + zero; }
TC_INLINE tc_vi   tc_load_i32(const int32_t *p) { return *(const tc_vi_unaligned *)p; }
TC_INLINE void    tc_store_i32(int32_t *p, tc_vi v) { *(tc_vi_unaligned *)p = v; }
TC_INLINE int32_t tc_iget(tc_vi v, int lane) { return v[lane]; }
TC_INLINE tc_vi   tc_iput(tc_vi v, int lane, int32_t x) { v[lane] = x; return v; }
TC_INLINE tc_vm   tc_ilt(tc_vi a, tc_vi b) { return a < b; }
TC_INLINE tc_vm   tc_ile(tc_vi a, tc_vi b) { return a <= b; }
TC_INLINE tc_vm   tc_ieq(tc_vi a, tc_vi b) { return a == b; }
TC_INLINE tc_vm   tc_ine(tc_vi a, tc_vi b) { return a != b; }
TC_INLINE tc_vf   tc_float(tc_vi v) { return __builtin_convertvector(v, tc_vf); }
TC_INLINE tc_vi   tc_int(tc_vf v)
{
#  if defined(TC_INT_AVX512) || defined(TC_INT_AVX2) || defined(TC_INT_SSE2)
  return __builtin_convertvector(v, tc_vi);
#  else
  const tc_vm in_range = tc_and(tc_ge(v, tc_set(-2147483648.0f)), tc_lt(v, tc_set(2147483648.0f)));
  return (__builtin_convertvector(tc_sel(in_range, v, tc_zero()), tc_vi) & in_range) | (~in_range & INT32_MIN);
#  endif
}
TC_INLINE tc_vi   tc_int_nearest(tc_vf v)
{
#  if defined(TC_INT_AVX512)
  return (tc_vi)_mm512_maskz_cvtps_epi32((__mmask16)0xffff, (__m512)v);
#  elif defined(TC_INT_AVX2)
  return (tc_vi)_mm256_cvtps_epi32((__m256)v);
#  elif defined(TC_INT_SSE2)
  return (tc_vi)_mm_cvtps_epi32((__m128)v);
#  else
  return tc_int(tc_round(v));
#  endif
}

#else

TC_INLINE tc_vi   tc_iset(int32_t x) { return x; }
TC_INLINE tc_vi   tc_load_i32(const int32_t *p) { return *p; }
TC_INLINE void    tc_store_i32(int32_t *p, tc_vi v) { *p = v; }
TC_INLINE int32_t tc_iget(tc_vi v, int lane) { (void)lane; return v; }
TC_INLINE tc_vi   tc_iput(tc_vi v, int lane, int32_t x) { (void)v; (void)lane; return x; }
TC_INLINE tc_vm   tc_ilt(tc_vi a, tc_vi b) { return -(a < b); }
TC_INLINE tc_vm   tc_ile(tc_vi a, tc_vi b) { return -(a <= b); }
TC_INLINE tc_vm   tc_ieq(tc_vi a, tc_vi b) { return -(a == b); }
TC_INLINE tc_vm   tc_ine(tc_vi a, tc_vi b) { return -(a != b); }
TC_INLINE tc_vf   tc_float(tc_vi v) { return (float)v; }
TC_INLINE tc_vi   tc_int(tc_vf v) { return tc_abs(v) < 2147483648.0f ? (int32_t)v : INT32_MIN; }
TC_INLINE tc_vi   tc_int_nearest(tc_vf v) { return tc_int(tc_round(v)); }

#endif

TC_INLINE tc_vi tc_iadd(tc_vi a, tc_vi b) { return (tc_vi)((tc_vu)a + (tc_vu)b); }
TC_INLINE tc_vi tc_isub(tc_vi a, tc_vi b) { return (tc_vi)((tc_vu)a - (tc_vu)b); }
TC_INLINE tc_vi tc_imul(tc_vi a, tc_vi b) { return (tc_vi)((tc_vu)a * (tc_vu)b); }
TC_INLINE tc_vi tc_isel(tc_vm m, tc_vi a, tc_vi b) { return (a & m) | (b & ~m); }
TC_INLINE tc_vi tc_imax(tc_vi a, tc_vi b) { return tc_isel(tc_ilt(a, b), b, a); }
TC_INLINE tc_vi tc_imin(tc_vi a, tc_vi b) { return tc_isel(tc_ilt(b, a), b, a); }

/* --- bytes */
#if defined(TC_INT_AVX512)

TC_INLINE tc_vi tc_load_u8(const uint8_t *p) { return (tc_vi)_mm512_maskz_cvtepu8_epi32((__mmask16)0xffff, _mm_loadu_si128((const __m128i *)(const void *)p)); }
TC_INLINE tc_vi tc_load_i8(const int8_t *p) { return (tc_vi)_mm512_maskz_cvtepi8_epi32((__mmask16)0xffff, _mm_loadu_si128((const __m128i *)(const void *)p)); }
TC_INLINE void  tc_store_u8(uint8_t *p, tc_vi v) { _mm_storeu_si128((__m128i *)(void *)p, _mm512_maskz_cvtepi32_epi8((__mmask16)0xffff, (__m512i)v)); }

#elif defined(TC_INT_AVX2)

TC_INLINE tc_vi tc_load_u8(const uint8_t *p) { return (tc_vi)_mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)(const void *)p)); }
TC_INLINE tc_vi tc_load_i8(const int8_t *p) { return (tc_vi)_mm256_cvtepi8_epi32(_mm_loadl_epi64((const __m128i *)(const void *)p)); }
TC_INLINE void  tc_store_u8(uint8_t *p, tc_vi v)
{
  const __m256i low = _mm256_and_si256((__m256i)v, _mm256_set1_epi32(255));
  const __m128i pairs = _mm_packs_epi32(_mm256_castsi256_si128(low), _mm256_extracti128_si256(low, 1));
  _mm_storel_epi64((__m128i *)(void *)p, _mm_packus_epi16(pairs, pairs));
}

#elif defined(TC_INT_SSE2)

TC_INLINE __m128i tc_bytes4(const void *p) { int32_t x; memcpy(&x, p, 4); return _mm_cvtsi32_si128(x); }
TC_INLINE tc_vi tc_load_u8(const uint8_t *p)
{
  const __m128i zero = _mm_setzero_si128();
  return (tc_vi)_mm_unpacklo_epi16(_mm_unpacklo_epi8(tc_bytes4(p), zero), zero);
}
TC_INLINE tc_vi tc_load_i8(const int8_t *p)
{
  const __m128i twice = _mm_unpacklo_epi8(tc_bytes4(p), tc_bytes4(p));
  return (tc_vi)_mm_srai_epi32(_mm_unpacklo_epi16(twice, twice), 24);
}
TC_INLINE void tc_store_u8(uint8_t *p, tc_vi v)
{
  const __m128i low = _mm_and_si128((__m128i)v, _mm_set1_epi32(255)), pairs = _mm_packs_epi32(low, low);
  const int32_t x = _mm_cvtsi128_si32(_mm_packus_epi16(pairs, pairs));
  memcpy(p, &x, 4);
}

#else

TC_INLINE tc_vi tc_load_u8(const uint8_t *p)
{
  tc_vi v = tc_iset(0);
  TC_UNROLL for (int l = 0; l < TC_VL; l++) v = tc_iput(v, l, p[l]);
  return v;
}
TC_INLINE tc_vi tc_load_i8(const int8_t *p)
{
  tc_vi v = tc_iset(0);
  TC_UNROLL for (int l = 0; l < TC_VL; l++) v = tc_iput(v, l, p[l]);
  return v;
}
TC_INLINE void tc_store_u8(uint8_t *p, tc_vi v)
{
  TC_UNROLL for (int l = 0; l < TC_VL; l++) p[l] = (uint8_t)(tc_iget(v, l) & 255);
}

#endif

TC_INLINE void tc_store_i8(int8_t *p, tc_vi v) { tc_store_u8((uint8_t *)p, v); }

/* sum[l] + a[l] * b[l]; b: numbers of 16 bits. Where the processor multiplies pairs of 16 bits and adds them up, the upper one of
 * every pair is 0 in one factor. */
#if defined(TC_INT_AVX512) && defined(__AVX512VNNI__)
TC_INLINE tc_vi tc_madd_pairs(tc_vi sum, tc_vi a, tc_vi b) { return (tc_vi)_mm512_dpwssd_epi32((__m512i)sum, (__m512i)a, (__m512i)b); }
#elif defined(TC_INT_AVX512)
TC_INLINE tc_vi tc_madd_pairs(tc_vi sum, tc_vi a, tc_vi b) { return tc_iadd(sum, (tc_vi)_mm512_madd_epi16((__m512i)a, (__m512i)b)); }
#elif defined(TC_INT_AVX2) && defined(__AVX512VNNI__) && defined(__AVX512VL__)
TC_INLINE tc_vi tc_madd_pairs(tc_vi sum, tc_vi a, tc_vi b) { return (tc_vi)_mm256_dpwssd_epi32((__m256i)sum, (__m256i)a, (__m256i)b); }
#elif defined(TC_INT_AVX2) && defined(__AVXVNNI__)
TC_INLINE tc_vi tc_madd_pairs(tc_vi sum, tc_vi a, tc_vi b) { return (tc_vi)_mm256_dpwssd_avx_epi32((__m256i)sum, (__m256i)a, (__m256i)b); }
#elif defined(TC_INT_AVX2)
TC_INLINE tc_vi tc_madd_pairs(tc_vi sum, tc_vi a, tc_vi b) { return tc_iadd(sum, (tc_vi)_mm256_madd_epi16((__m256i)a, (__m256i)b)); }
#elif defined(TC_INT_SSE2)
TC_INLINE tc_vi tc_madd_pairs(tc_vi sum, tc_vi a, tc_vi b) { return tc_iadd(sum, (tc_vi)_mm_madd_epi16((__m128i)a, (__m128i)b)); }
#else
TC_INLINE tc_vi tc_madd_pairs(tc_vi sum, tc_vi a, tc_vi b) { return tc_iadd(sum, tc_imul(a, b)); }
#endif
#if defined(TC_INT_AVX512) || defined(TC_INT_AVX2) || defined(TC_INT_SSE2)
TC_INLINE tc_vi tc_madd_i8(tc_vi sum, const int8_t *a, tc_vi b) { return tc_madd_pairs(sum, tc_load_i8(a), b & tc_iset(0xffff)); }
#else
TC_INLINE tc_vi tc_madd_i8(tc_vi sum, const int8_t *a, tc_vi b) { return tc_madd_pairs(sum, tc_load_i8(a), b); }
#endif
TC_INLINE tc_vi tc_madd_u8(tc_vi sum, const uint8_t *a, tc_vi b) { return tc_madd_pairs(sum, tc_load_u8(a), b); }

/* --- the first n lanes (n <= 0: none; n >= TC_VL: all) */
#if defined(TC_INT_AVX512)

TC_INLINE __mmask16 tc_first_lanes(int n) { return (__mmask16)(n <= 0 ? 0u : n >= 16 ? 0xffffu : (1u << n) - 1u); }
TC_INLINE tc_vi tc_load_u8_n(const uint8_t *p, int n) { return (tc_vi)_mm512_maskz_cvtepu8_epi32((__mmask16)0xffff, _mm_maskz_loadu_epi8(tc_first_lanes(n), p)); }
TC_INLINE tc_vi tc_load_i8_n(const int8_t *p, int n) { return (tc_vi)_mm512_maskz_cvtepi8_epi32((__mmask16)0xffff, _mm_maskz_loadu_epi8(tc_first_lanes(n), p)); }
TC_INLINE tc_vi tc_load_i32_n(const int32_t *p, int n) { return (tc_vi)_mm512_maskz_loadu_epi32(tc_first_lanes(n), p); }
TC_INLINE void  tc_store_u8_n(uint8_t *p, tc_vi v, int n) { _mm_mask_storeu_epi8(p, tc_first_lanes(n), _mm512_maskz_cvtepi32_epi8((__mmask16)0xffff, (__m512i)v)); }
TC_INLINE void  tc_store_i8_n(int8_t *p, tc_vi v, int n) { tc_store_u8_n((uint8_t *)p, v, n); }
TC_INLINE void  tc_store_i32_n(int32_t *p, tc_vi v, int n) { _mm512_mask_storeu_epi32(p, tc_first_lanes(n), (__m512i)v); }

#else

#  define TC_FIRST_LANES(type, name)                                                 \
  TC_INLINE tc_vi tc_load_##name##_n(const type *p, int n)                         \
  {                                                                                \
    tc_vi v = tc_iset(0);                                                          \
    TC_UNROLL for (int l = 0; l < TC_VL; l++)                                      \
      if (l < n) v = tc_iput(v, l, (int32_t)p[l]);                                 \
    return v;                                                                      \
  }                                                                                \
  TC_INLINE void tc_store_##name##_n(type *p, tc_vi v, int n)                      \
  {                                                                                \
    TC_UNROLL for (int l = 0; l < TC_VL; l++)                                      \
      if (l < n) p[l] = (type)tc_iget(v, l);                                       \
  }
TC_FIRST_LANES(uint8_t, u8)
TC_FIRST_LANES(int8_t, i8)
TC_FIRST_LANES(int32_t, i32)
#  undef TC_FIRST_LANES

#endif

/* A bool is a byte, 0 or 1. */
#if defined(TC_INT_AVX512)

TC_INLINE __mmask16 tc_mask_bits(tc_vm m) { return _mm512_test_epi32_mask((__m512i)m, (__m512i)m); }
TC_INLINE tc_vm tc_mask_of_bits(__mmask16 k) { return (tc_vm)_mm512_maskz_set1_epi32(k, -1); }
TC_INLINE tc_vm tc_load_bool(const uint8_t *p)
{
  const __m128i v = _mm_loadu_si128((const __m128i *)(const void *)p);
  return tc_mask_of_bits(_mm_test_epi8_mask(v, v));
}
TC_INLINE tc_vm tc_load_bool_n(const uint8_t *p, int n)
{
  const __m128i v = _mm_maskz_loadu_epi8(tc_first_lanes(n), p);
  return tc_mask_of_bits(_mm_test_epi8_mask(v, v));
}
TC_INLINE void tc_store_bool(uint8_t *p, tc_vm m) { _mm_storeu_si128((__m128i *)(void *)p, _mm_maskz_mov_epi8(tc_mask_bits(m), _mm_set1_epi8(1))); }
TC_INLINE void tc_store_bool_n(uint8_t *p, tc_vm m, int n) { _mm_mask_storeu_epi8(p, tc_first_lanes(n), _mm_maskz_mov_epi8(tc_mask_bits(m), _mm_set1_epi8(1))); }

#else

TC_INLINE tc_vm tc_load_bool(const uint8_t *p) { return tc_ine(tc_load_u8(p), tc_iset(0)); }
TC_INLINE tc_vm tc_load_bool_n(const uint8_t *p, int n) { return tc_ine(tc_load_u8_n(p, n), tc_iset(0)); }
TC_INLINE void  tc_store_bool(uint8_t *p, tc_vm m) { tc_store_u8(p, m & 1); }
TC_INLINE void  tc_store_bool_n(uint8_t *p, tc_vm m, int n) { tc_store_u8_n(p, m & 1, n); }

#endif

/* --- bytes of several vectors, riffled. Lane l of `quads` has those of lane l. */
#if defined(TC_INT_AVX512)

TC_INLINE void tc_store_triples(uint8_t *p, tc_vi quads)
{
  const __m512i in_lanes = _mm512_maskz_broadcast_i32x4((__mmask16)0xffff, _mm_setr_epi8(0, 1, 2, 4, 5, 6, 8, 9, 10, 12, 13, 14, -1, -1, -1, -1));
  const __m512i twelves = _mm512_setr_epi32(0, 1, 2, 4, 5, 6, 8, 9, 10, 12, 13, 14, 3, 7, 11, 15);
  _mm512_mask_storeu_epi32(p, 0x0fff, _mm512_maskz_permutexvar_epi32(0x0fff, twelves, _mm512_maskz_shuffle_epi8(~(__mmask64)0, (__m512i)quads, in_lanes)));
}
TC_INLINE void tc_store_pairs(uint8_t *p, tc_vi quads) { _mm256_storeu_si256((__m256i *)(void *)p, _mm512_maskz_cvtepi32_epi16((__mmask16)0xffff, (__m512i)quads)); }

#else

TC_INLINE void tc_store_triples(uint8_t *p, tc_vi quads)
{
#  if defined(TC_INT_AVX2)
  const __m256i in_lanes = _mm256_broadcastsi128_si256(_mm_setr_epi8(0, 1, 2, 4, 5, 6, 8, 9, 10, 12, 13, 14, -1, -1, -1, -1));
  const __m256i packed = _mm256_permutevar8x32_epi32(_mm256_shuffle_epi8((__m256i)quads, in_lanes), _mm256_setr_epi32(0, 1, 2, 4, 5, 6, 3, 7));
  _mm_storeu_si128((__m128i *)(void *)p, _mm256_castsi256_si128(packed));
  _mm_storel_epi64((__m128i *)(void *)(p + 16), _mm256_extracti128_si256(packed, 1));
#  else
  TC_UNROLL for (int l = 0; l < TC_VL; l++) {
    const int32_t q = tc_iget(quads, l);
    p[3 * l] = (uint8_t)(q & 255);
    p[3 * l + 1] = (uint8_t)(q >> 8 & 255);
    p[3 * l + 2] = (uint8_t)(q >> 16 & 255);
  }
#  endif
}
TC_INLINE void tc_store_pairs(uint8_t *p, tc_vi quads)
{
  TC_UNROLL for (int l = 0; l < TC_VL; l++) {
    const int32_t q = tc_iget(quads, l);
    p[2 * l] = (uint8_t)(q & 255);
    p[2 * l + 1] = (uint8_t)(q >> 8 & 255);
  }
}

#endif

TC_INLINE tc_vi tc_byte_of_quad(tc_vi v, int byte) { return (tc_vi)((tc_vu)(v & 255) << 8 * byte); }
TC_INLINE void tc_store_riffled_2_u8(uint8_t *p, const tc_vi *t) { tc_store_pairs(p, tc_byte_of_quad(t[0], 0) | tc_byte_of_quad(t[1], 1)); }
TC_INLINE void tc_store_riffled_3_u8(uint8_t *p, const tc_vi *t)
{
  tc_store_triples(p, tc_byte_of_quad(t[0], 0) | tc_byte_of_quad(t[1], 1) | tc_byte_of_quad(t[2], 2));
}
TC_INLINE void tc_store_riffled_4_u8(uint8_t *p, const tc_vi *t)
{
#if defined(TC_INT_AVX512) || defined(TC_INT_AVX2) || defined(TC_INT_SSE2) || defined(TC_INT_NEON)
  const tc_vi quads = tc_byte_of_quad(t[0], 0) | tc_byte_of_quad(t[1], 1) | tc_byte_of_quad(t[2], 2) | tc_byte_of_quad(t[3], 3);
  memcpy(p, &quads, sizeof quads);
#else
  TC_UNROLL for (int l = 0; l < TC_VL; l++)
    for (int i = 0; i < 4; i++) p[4 * l + i] = (uint8_t)(tc_iget(t[i], l) & 255);
#endif
}
TC_INLINE void tc_store_riffled_2_i8(int8_t *p, const tc_vi *t) { tc_store_riffled_2_u8((uint8_t *)p, t); }
TC_INLINE void tc_store_riffled_3_i8(int8_t *p, const tc_vi *t) { tc_store_riffled_3_u8((uint8_t *)p, t); }
TC_INLINE void tc_store_riffled_4_i8(int8_t *p, const tc_vi *t) { tc_store_riffled_4_u8((uint8_t *)p, t); }

#if TC_VL > 1

/* --- four bytes as the bits of an int32_t */
TC_INLINE int32_t tc_quad(const void *p) { int32_t x; memcpy(&x, p, 4); return x; }
TC_INLINE int32_t tc_quad_n(const void *p, int n) { int32_t x = 0; memcpy(&x, p, (size_t)n); return x; }

/* sum[l] + a[0] * b[4 * l] + a[1] * b[4 * l + 1] + a[2] * b[4 * l + 2] + a[3] * b[4 * l + 3], exactly; a: the bits of four
 * uint8_t. No product or pair of products saturates on the way. */
#if defined(TC_INT_AVX512)

TC_INLINE tc_vi tc_dot_quad(tc_vi sum, int32_t a, const int8_t *b)
{
  const __m512i x = _mm512_set1_epi32(a), y = _mm512_loadu_si512((const void *)b);
#  if defined(__AVX512VNNI__)
  return (tc_vi)_mm512_dpbusd_epi32((__m512i)sum, x, y);
#  else
  const __m512i low = _mm512_set1_epi16(255);
  const __m512i even = _mm512_madd_epi16(_mm512_and_si512(x, low), _mm512_srai_epi16(_mm512_slli_epi16(y, 8), 8));
  const __m512i odd = _mm512_madd_epi16(_mm512_srli_epi16(x, 8), _mm512_srai_epi16(y, 8));
  return (tc_vi)_mm512_add_epi32((__m512i)sum, _mm512_add_epi32(even, odd));
#  endif
}

#elif defined(TC_INT_AVX2)

TC_INLINE tc_vi tc_dot_quad(tc_vi sum, int32_t a, const int8_t *b)
{
  const __m256i x = _mm256_set1_epi32(a), y = _mm256_loadu_si256((const __m256i *)(const void *)b);
#  if defined(__AVX512VNNI__) && defined(__AVX512VL__)
  return (tc_vi)_mm256_dpbusd_epi32((__m256i)sum, x, y);
#  elif defined(__AVXVNNI__)
  return (tc_vi)_mm256_dpbusd_avx_epi32((__m256i)sum, x, y);
#  else
  const __m256i low = _mm256_set1_epi16(255);
  const __m256i even = _mm256_madd_epi16(_mm256_and_si256(x, low), _mm256_srai_epi16(_mm256_slli_epi16(y, 8), 8));
  const __m256i odd = _mm256_madd_epi16(_mm256_srli_epi16(x, 8), _mm256_srai_epi16(y, 8));
  return (tc_vi)_mm256_add_epi32((__m256i)sum, _mm256_add_epi32(even, odd));
#  endif
}

#elif defined(TC_INT_SSE2)

TC_INLINE tc_vi tc_dot_quad(tc_vi sum, int32_t a, const int8_t *b)
{
  const __m128i x = _mm_set1_epi32(a), y = _mm_loadu_si128((const __m128i *)(const void *)b), low = _mm_set1_epi16(255);
  const __m128i even = _mm_madd_epi16(_mm_and_si128(x, low), _mm_srai_epi16(_mm_slli_epi16(y, 8), 8));
  const __m128i odd = _mm_madd_epi16(_mm_srli_epi16(x, 8), _mm_srai_epi16(y, 8));
  return (tc_vi)_mm_add_epi32((__m128i)sum, _mm_add_epi32(even, odd));
}

#elif defined(TC_INT_NEON)

TC_INLINE tc_vi tc_dot_quad(tc_vi sum, int32_t a, const int8_t *b)
{
  const int8x16_t x = vreinterpretq_s8_s32(vdupq_n_s32(a)), y = vld1q_s8(b);
#  if defined(__ARM_FEATURE_MATMUL_INT8)
  return (tc_vi)vusdotq_s32((int32x4_t)sum, vreinterpretq_u8_s8(x), y);
#  elif defined(__ARM_FEATURE_DOTPROD)
  /* a = low seven bits + 128 * top bit */
  const int8x16_t low = vandq_s8(x, vdupq_n_s8(127)), top = vreinterpretq_s8_u8(vshrq_n_u8(vreinterpretq_u8_s8(x), 7));
  const int32x4_t rest = vdotq_s32((int32x4_t)sum, low, y);
  return (tc_vi)vaddq_s32(rest, vshlq_n_s32(vdotq_s32(vdupq_n_s32(0), top, y), 7));
#  else
  const int16x8_t wide = vreinterpretq_s16_u16(vmovl_u8(vget_low_u8(vreinterpretq_u8_s8(x))));
  const int16x8_t lower = vmulq_s16(wide, vmovl_s8(vget_low_s8(y))), upper = vmulq_s16(wide, vmovl_s8(vget_high_s8(y)));
  return (tc_vi)vaddq_s32((int32x4_t)sum, vpaddq_s32(vpaddlq_s16(lower), vpaddlq_s16(upper)));
#  endif
}

#else

TC_INLINE tc_vi tc_dot_quad(tc_vi sum, int32_t a, const int8_t *b)
{
  uint8_t x[4];
  memcpy(x, &a, 4);
  TC_UNROLL for (int l = 0; l < TC_VL; l++)
    sum = tc_iput(sum, l, (int32_t)((uint32_t)tc_iget(sum, l) + (uint32_t)(x[0] * b[4 * l] + x[1] * b[4 * l + 1] + x[2] * b[4 * l + 2] + x[3] * b[4 * l + 3])));
  return sum;
}

#endif

#endif

/* The same with a in memory: four uint8_t, or n < 4 of them. b has 4 * TC_VL elements in either case; of each four, those
 * behind the first n do not matter.
 * Of int8_t, a[j] + 128 is what is multiplied: whoever calls takes 128 * (b[0] + b[1] + ...) away from the sum. */
#if TC_VL > 1

TC_INLINE int32_t tc_without_sign(int32_t quad, int n)
{
  uint32_t top = 0; /* bits of the n bytes: those that are absent stay 0, whatever stands in b */
  memset(&top, 0x80, (size_t)n);
  return (int32_t)((uint32_t)quad ^ top);
}
TC_INLINE tc_vi tc_dot4_u8(tc_vi sum, const uint8_t *a, const int8_t *b) { return tc_dot_quad(sum, tc_quad(a), b); }
TC_INLINE tc_vi tc_dot4_i8(tc_vi sum, const int8_t *a, const int8_t *b) { return tc_dot_quad(sum, tc_without_sign(tc_quad(a), 4), b); }
TC_INLINE tc_vi tc_dot4_u8_n(tc_vi sum, const uint8_t *a, const int8_t *b, int n) { return tc_dot_quad(sum, tc_quad_n(a, n), b); }
TC_INLINE tc_vi tc_dot4_i8_n(tc_vi sum, const int8_t *a, const int8_t *b, int n) { return tc_dot_quad(sum, tc_without_sign(tc_quad_n(a, n), n), b); }

#else

TC_INLINE tc_vi tc_dot4_u8(tc_vi sum, const uint8_t *a, const int8_t *b)
{
  return tc_iadd(sum, a[0] * b[0] + a[1] * b[1] + a[2] * b[2] + a[3] * b[3]);
}
TC_INLINE tc_vi tc_dot4_i8(tc_vi sum, const int8_t *a, const int8_t *b)
{
  return tc_iadd(sum, (a[0] + 128) * b[0] + (a[1] + 128) * b[1] + (a[2] + 128) * b[2] + (a[3] + 128) * b[3]);
}
TC_INLINE tc_vi tc_dot4_u8_n(tc_vi sum, const uint8_t *a, const int8_t *b, int n)
{
  for (int q = 0; q < n; q++) sum = tc_iadd(sum, a[q] * b[q]);
  return sum;
}
TC_INLINE tc_vi tc_dot4_i8_n(tc_vi sum, const int8_t *a, const int8_t *b, int n)
{
  for (int q = 0; q < n; q++) sum = tc_iadd(sum, (a[q] + 128) * b[q]);
  return sum;
}

#endif

#endif
