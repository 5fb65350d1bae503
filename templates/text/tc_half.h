/* SPDX-License-Identifier: 0BSD -- support text of tc-emit; do not edit */
/* Halves in memory, floats in vectors: the lanes of a tc_vf from and to f16 and bf16.
 *
 *   tc_load_f16, tc_load_bf16       lanes from memory; with _n, the first n of them (n <= 0: none), the others being 0
 *   tc_store_f16, tc_store_bf16     rounded to nearest, ties to even; with _n, the first n lanes
 *   tc_round_f16, tc_round_bf16     as stored and loaded again
 *
 * By the processor's own conversions where it has some. What is not normal stays as it is; a NaN stays one. */
#ifndef TC_HALF_H
#define TC_HALF_H
#include "tc_simd.h"
#include "tc_types.h"
#if TC_VL == 16 && defined(__AVX512F__) || TC_VL == 8 && defined(__F16C__)
#  include <immintrin.h>
#elif TC_VL == 4 && defined(__aarch64__) && !defined(__AARCH64EB__)
#  define TC_HALF_NEON
#  include <arm_neon.h>
#endif

#if TC_VL > 1
typedef uint16_t tc_vh __attribute__((vector_size(2 * TC_VL)));
typedef uint16_t tc_vh_unaligned __attribute__((vector_size(2 * TC_VL), aligned(2), may_alias));
#endif

#if TC_VL == 16 && defined(__AVX512F__)

TC_INLINE tc_vf tc_load_f16(const uint16_t *p) { return (tc_vf)_mm512_maskz_cvtph_ps((__mmask16)-1, _mm256_loadu_si256((const __m256i *)(const void *)p)); }
TC_INLINE void  tc_store_f16(uint16_t *p, tc_vf v) { _mm256_storeu_si256((__m256i *)(void *)p, _mm512_maskz_cvtps_ph((__mmask16)-1, (__m512)v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC)); }

#elif TC_VL == 8 && defined(__F16C__)

TC_INLINE tc_vf tc_load_f16(const uint16_t *p) { return (tc_vf)_mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(const void *)p)); }
TC_INLINE void  tc_store_f16(uint16_t *p, tc_vf v) { _mm_storeu_si128((__m128i *)(void *)p, _mm256_cvtps_ph((__m256)v, _MM_FROUND_TO_NEAREST_INT)); }

#elif defined(TC_HALF_NEON)

TC_INLINE tc_vf tc_load_f16(const uint16_t *p) { return (tc_vf)vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(p))); }
TC_INLINE void  tc_store_f16(uint16_t *p, tc_vf v) { vst1_u16(p, vreinterpret_u16_f16(vcvt_f16_f32((float32x4_t)v))); }

#elif TC_VL > 1

TC_INLINE tc_vf tc_load_f16(const uint16_t *p)
{
  const tc_vu h = __builtin_convertvector(*(const tc_vh_unaligned *)p, tc_vu);
  const tc_vf magnitude = (tc_vf)((h & 0x7fff) << 13) * 5.192296858534828e33f;  /* 2^112 */
  const tc_vu infinite = (tc_vu)((tc_vi)(h & 0x7c00) == 0x7c00) & 0x7f800000;
  return (tc_vf)((tc_vu)magnitude | infinite | (h & 0x8000) << 16);
}
TC_INLINE void tc_store_f16(uint16_t *p, tc_vf v)
{
  const tc_vu sign = (tc_vu)v >> 16 & 0x8000, a = (tc_vu)v & 0x7fffffff;
  const tc_vu subnormal = (tc_vu)((tc_vf)a + 0.5f) - 0x3f000000, normal = (a - 0x38000000 + 0xfff + (a >> 13 & 1)) >> 13;
  const tc_vu is_small = (tc_vu)((tc_vi)a < 0x38800000), is_large = (tc_vu)((tc_vi)a >= 0x477ff000), is_nan = (tc_vu)((tc_vi)a > 0x7f800000);
  const tc_vu finite = (subnormal & is_small) | (normal & ~is_small);
  const tc_vu h = (finite & ~is_large) | (0x7c00 & is_large) | (0x200 & is_nan);
  *(tc_vh_unaligned *)p = __builtin_convertvector(h | sign, tc_vh);
}

#else

TC_INLINE tc_vf tc_load_f16(const uint16_t *p) { return tc_f32_from_f16(*p); }
TC_INLINE void  tc_store_f16(uint16_t *p, tc_vf v) { *p = tc_f16_from_f32(v); }

#endif

#if TC_VL > 1

TC_INLINE tc_vf tc_load_bf16(const uint16_t *p) { return (tc_vf)(__builtin_convertvector(*(const tc_vh_unaligned *)p, tc_vu) << 16); }
TC_INLINE void  tc_store_bf16(uint16_t *p, tc_vf v)
{
  const tc_vu b = (tc_vu)v, nan = (tc_vu)((tc_vi)(b & 0x7fffffff) > 0x7f800000);
  const tc_vu rounded = (b + 0x7fff + (b >> 16 & 1)) >> 16, quiet = (b >> 16 & 0x8000) | 0x7fc0;
  *(tc_vh_unaligned *)p = __builtin_convertvector((quiet & nan) | (rounded & ~nan), tc_vh);
}

#else

TC_INLINE tc_vf tc_load_bf16(const uint16_t *p) { return tc_f32_from_bf16(*p); }
TC_INLINE void  tc_store_bf16(uint16_t *p, tc_vf v) { *p = tc_bf16_from_f32(v); }

#endif

#define TC_HALVES(name)                                                              \
  TC_INLINE tc_vf tc_load_##name##_n(const uint16_t *p, int n)                       \
  {                                                                                  \
    uint16_t lanes[TC_VL] = {0};                                                     \
    if (n >= TC_VL) return tc_load_##name(p);                                        \
    TC_UNROLL for (int l = 0; l < TC_VL; l++)                                        \
      if (l < n) lanes[l] = p[l];                                                    \
    return tc_load_##name(lanes);                                                    \
  }                                                                                  \
  TC_INLINE void tc_store_##name##_n(uint16_t *p, tc_vf v, int n)                    \
  {                                                                                  \
    uint16_t lanes[TC_VL];                                                           \
    tc_store_##name(lanes, v);                                                       \
    TC_UNROLL for (int l = 0; l < TC_VL; l++)                                        \
      if (l < n) p[l] = lanes[l];                                                    \
  }                                                                                  \
  TC_INLINE tc_vf tc_round_##name(tc_vf v)                                           \
  {                                                                                  \
    uint16_t lanes[TC_VL];                                                           \
    tc_store_##name(lanes, v);                                                       \
    return tc_load_##name(lanes);                                                    \
  }
TC_HALVES(f16)
TC_HALVES(bf16)
#undef TC_HALVES

#endif
