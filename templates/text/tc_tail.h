/* SPDX-License-Identifier: 0BSD -- support text of tc-emit; do not edit */
/* Loads and stores of the first n lanes (n <= 0: none; n >= TC_VL: all). No other memory is touched. With a constant n
 * these become one masked move where the processor has them, a few scalar moves elsewhere. */
#ifndef TC_TAIL_H
#define TC_TAIL_H
#include "tc_simd.h"
#if TC_VL == 16 && defined(__AVX512F__) || TC_VL == 8 && defined(__AVX__)
#  include <immintrin.h>
#endif

#if TC_VL == 16 && defined(__AVX512F__)

TC_INLINE __mmask16 tc_first(int n) { return (__mmask16)(n <= 0 ? 0u : n >= 16 ? 0xffffu : (1u << n) - 1u); }
TC_INLINE tc_vf tc_load_n_or(const float *p, int n, float fill) { return (tc_vf)_mm512_mask_loadu_ps((__m512)tc_set(fill), tc_first(n), p); }
TC_INLINE void  tc_store_n(float *p, tc_vf v, int n) { if (n > 0) _mm512_mask_storeu_ps(p, tc_first(n), (__m512)v); }

#elif TC_VL == 8 && defined(__AVX__)

TC_INLINE tc_vm tc_first(int n)
{
  const tc_vf lane = {0, 1, 2, 3, 4, 5, 6, 7};
  return tc_lt(lane, tc_set((float)n));
}
TC_INLINE tc_vf tc_load_n_or(const float *p, int n, float fill)
{
  if (n >= 8) return tc_load(p);
  return tc_sel(tc_first(n), (tc_vf)_mm256_maskload_ps(p, (__m256i)tc_first(n)), tc_set(fill));
}
/* In parts of 4, 2 and 1: a masked store is slow on many processors. */
TC_INLINE void tc_store_n(float *p, tc_vf v, int n)
{
  tc_v4f q[2];
  memcpy(q, &v, sizeof v);
  if (n >= 8) {
    tc_store(p, v);
    return;
  }
  if (n <= 0) return;
  if (n & 4) {
    memcpy(p, &q[0], 16);
    p += 4;
    q[0] = q[1];
  }
  if (n & 2) {
    memcpy(p, &q[0], 8);
    p += 2;
    q[0] = tc_swap_halves(q[0]);
  }
  if (n & 1) *p = q[0][0];
}

#else

TC_INLINE tc_vf tc_load_n_or(const float *p, int n, float fill)
{
  tc_vf v = tc_set(fill);
  TC_UNROLL for (int l = 0; l < TC_VL; l++)
    if (l < n) v = tc_put(v, l, p[l]);
  return v;
}
TC_INLINE void tc_store_n(float *p, tc_vf v, int n)
{
  TC_UNROLL for (int l = 0; l < TC_VL; l++)
    if (l < n) p[l] = tc_get(v, l);
}

#endif

/* The first n lanes of a, the others of b. */
TC_INLINE tc_vf tc_sel_n(int n, tc_vf a, tc_vf b)
{
  if (n <= 0) return b;
#if TC_VL == 16 && defined(__AVX512F__)
  return (tc_vf)_mm512_mask_mov_ps((__m512)b, tc_first(n), (__m512)a);
#elif TC_VL == 8 && defined(__AVX__)
  return tc_sel(tc_first(n), a, b);
#else
  TC_UNROLL for (int l = 0; l < TC_VL; l++)
    if (l < n) b = tc_put(b, l, tc_get(a, l));
  return b;
#endif
}

TC_INLINE tc_vf tc_load_n(const float *p, int n) { return tc_load_n_or(p, n, 0.0f); }

#endif
