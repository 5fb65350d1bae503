/* SPDX-License-Identifier: 0BSD -- support text of tc-emit; do not edit */
/* Rows that become columns, a tile at a time.
 *
 *   tc_load_transposed(t, p, stride)        t[i], lane l = p[l * stride + i]: TC_VL rows of TC_VL floats
 *   tc_load_unriffled_N(t, p)               t[i], lane l = p[i + N * l]: N vectors, 2 or 3
 *   tc_store_riffled_N(p, t)                p[i + N * l] = t[i], lane l: N vectors, 2 to 4
 *   tc_store_sums_N(p, t)                   p[i] = tc_hsum(t[i]): N vectors, 4, 8 or 16
 *   tc_transpose_SIZE(to, ts, from, fs)     to[c * ts + r] = from[r * fs + c]: 16 / SIZE rows of as many elements of SIZE
 *                                           bytes, 1, 2, 4 or 8; strides count elements */
#ifndef TC_TRANSPOSE_H
#define TC_TRANSPOSE_H
#include "tc_simd.h"

#if TC_VL > 1

/* Two rows of n lanes riffled, lane by lane from each: the first half of that, and the second. */
#  define TC_LOW_2   0, 2
#  define TC_HIGH_2  1, 3
#  define TC_LOW_4   0, 4, 1, 5
#  define TC_HIGH_4  2, 6, 3, 7
#  define TC_LOW_8   0, 8, 1, 9, 2, 10, 3, 11
#  define TC_HIGH_8  4, 12, 5, 13, 6, 14, 7, 15
#  define TC_LOW_16  0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23
#  define TC_HIGH_16 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31
#  if defined(__clang__)
#    define TC_RIFFLE(to, lanes, a, b, ...) to = __builtin_shufflevector(a, b, __VA_ARGS__);
#  else
#    define TC_RIFFLE(to, lanes, a, b, ...) { const lanes picked = {__VA_ARGS__}; to = __builtin_shuffle(a, b, picked); }
#  endif

#  define TC_RIFFLE_N(low, high, lanes, a, b, n) TC_RIFFLE(low, lanes, a, b, TC_LOW_##n) TC_RIFFLE(high, lanes, a, b, TC_HIGH_##n)
#  define TC_RIFFLE_BOTH(low, high, lanes, a, b, n) TC_RIFFLE_N(low, high, lanes, a, b, n)  /* n may be TC_VL */

/* After log2(n) rounds, in which row i meets row i + n / 2, n rows of n lanes are their own columns. `lanes`: an integer
 * vector of the same form. */
#  define TC_RIFFLE_ROWS(vector, lanes, t, n)                                   \
    TC_UNROLL for (int round = 1; round < n; round *= 2) {                      \
      vector u[n];                                                              \
      TC_UNROLL for (int i = 0; i < n / 2; i++) {                               \
        TC_RIFFLE_BOTH(u[2 * i], u[2 * i + 1], lanes, (t)[i], (t)[i + n / 2], n) \
      }                                                                         \
      TC_UNROLL for (int i = 0; i < n; i++) (t)[i] = u[i];                      \
    }

TC_INLINE void tc_load_transposed(tc_vf *t, const float *p, ptrdiff_t stride)
{
  TC_UNROLL for (int l = 0; l < TC_VL; l++) t[l] = tc_load(p + l * stride);
  TC_RIFFLE_ROWS(tc_vf, tc_vi, t, TC_VL)
}

/* Of n vectors, TC_VL at most: in each round vector i meets vector i + n / 2, and has the lanes of both in turn, half as many of
 * each; lanes are added in the order of tc_hsum. */
TC_INLINE void tc_store_sums(float *p, const tc_vf *t, int n)
{
  tc_vf u[TC_VL];
  tc_v4f q[TC_VL / 4];
  TC_UNROLL for (int i = 0; i < n; i++) u[i] = t[i];
  TC_UNROLL for (int m = n / 2; m > 0; m /= 2)
    TC_UNROLL for (int i = 0; i < m; i++) {
      tc_vf low, high;
      TC_RIFFLE_BOTH(low, high, tc_vi, u[i], u[i + m], TC_VL)
      u[i] = low + high;
    }
  memcpy(q, u, sizeof q);
  TC_UNROLL for (int w = TC_VL / 8; 4 * w >= n; w /= 2)
    TC_UNROLL for (int i = 0; i < w; i++) q[i] += q[i + w];
  memcpy(p, q, (size_t)n * sizeof *p);
}
#  define TC_STORE_SUMS(name, n)                                                                    \
    TC_INLINE void name(float *p, const tc_vf *t)                                                   \
    {                                                                                               \
      TC_UNROLL for (int i = 0; i < n; i += TC_VL) tc_store_sums(p + i, t + i, n < TC_VL ? n : TC_VL); \
    }
TC_STORE_SUMS(tc_store_sums_4, 4)
TC_STORE_SUMS(tc_store_sums_8, 8)
TC_STORE_SUMS(tc_store_sums_16, 16)

TC_INLINE void tc_store_riffled_2(float *p, const tc_vf *t)
{
  tc_vf a, b;
  TC_RIFFLE_BOTH(a, b, tc_vi, t[0], t[1], TC_VL)
  tc_store(p, a);
  tc_store(p + TC_VL, b);
}
TC_INLINE void tc_store_riffled_4(float *p, const tc_vf *t)
{
  tc_vf even[2], odd[2];
  TC_RIFFLE_BOTH(even[0], even[1], tc_vi, t[0], t[2], TC_VL)
  TC_RIFFLE_BOTH(odd[0], odd[1], tc_vi, t[1], t[3], TC_VL)
  for (int i = 0; i < 2; i++) {
    const tc_vf pair[2] = {even[i], odd[i]};
    tc_store_riffled_2(p + 2 * i * TC_VL, pair);
  }
}

#  if defined(__clang__)
TC_INLINE void tc_load_unriffled_2(tc_vf *t, const float *p)
{
  for (int i = 0; i < 2; i++) t[i] = tc_load_stride(p + i, 2);
}
TC_INLINE void tc_load_unriffled_3(tc_vf *t, const float *p)
{
  for (int i = 0; i < 3; i++) t[i] = tc_load_stride(p + i, 3);
}
TC_INLINE void tc_store_riffled_3(float *p, const tc_vf *t)
{
  for (int i = 0; i < 3; i++) tc_store_stride(p + i, 3, t[i]);
}
#  else
#    if TC_VL == 16
#      define TC_LANE_NUMBERS {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}
#    elif TC_VL == 8
#      define TC_LANE_NUMBERS {0, 1, 2, 3, 4, 5, 6, 7}
#    else
#      define TC_LANE_NUMBERS {0, 1, 2, 3}
#    endif
TC_INLINE void tc_load_unriffled_2(tc_vf *t, const float *p)
{
  const tc_vi lane = TC_LANE_NUMBERS;
  TC_UNROLL for (int i = 0; i < 2; i++) t[i] = __builtin_shuffle(tc_load(p), tc_load(p + TC_VL), lane * 2 + i);
}
/* Of three vectors: lanes of the first two, then those of the third where they are wanted. */
TC_INLINE void tc_load_unriffled_3(tc_vf *t, const float *p)
{
  const tc_vi lane = TC_LANE_NUMBERS;
  TC_UNROLL for (int i = 0; i < 3; i++) {
    const tc_vi from = lane * 3 + i, in_two = from < 2 * TC_VL;
    const tc_vf two = __builtin_shuffle(tc_load(p), tc_load(p + TC_VL), from);
    t[i] = __builtin_shuffle(two, tc_load(p + 2 * TC_VL), (lane & in_two) | ((from - TC_VL) & ~in_two));
  }
}
TC_INLINE void tc_store_riffled_3(float *p, const tc_vf *t)
{
  const tc_vi lane = TC_LANE_NUMBERS;
  TC_UNROLL for (int i = 0; i < 3; i++) {
    const tc_vi from = (lane + i * TC_VL) / 3, row = lane + i * TC_VL - from * 3, third = row == 2;
    const tc_vf two = __builtin_shuffle(t[0], t[1], from + row * TC_VL);
    tc_store(p + i * TC_VL, __builtin_shuffle(two, t[2], (lane & ~third) | ((from + TC_VL) & third)));
  }
}
#  endif

#  define TC_TRANSPOSE(size, element, n)                                                                               \
    typedef element tc_row_##size __attribute__((vector_size(16)));                                                    \
    TC_INLINE void tc_transpose_##size(void *to, ptrdiff_t to_stride, const void *from, ptrdiff_t from_stride)         \
    {                                                                                                                  \
      tc_row_##size t[n];                                                                                              \
      TC_UNROLL for (int r = 0; r < (n); r++) memcpy(&t[r], (const char *)from + r * from_stride * (size), 16);        \
      TC_RIFFLE_ROWS(tc_row_##size, tc_row_##size, t, n)                                                                   \
      TC_UNROLL for (int c = 0; c < (n); c++) memcpy((char *)to + c * to_stride * (size), &t[c], 16);                  \
    }

#else

TC_INLINE void tc_load_transposed(tc_vf *t, const float *p, ptrdiff_t stride) { (void)stride; *t = *p; }
TC_INLINE void tc_store_riffled_2(float *p, const tc_vf *t) { memcpy(p, t, 2 * sizeof *p); }
TC_INLINE void tc_store_riffled_3(float *p, const tc_vf *t) { memcpy(p, t, 3 * sizeof *p); }
TC_INLINE void tc_store_riffled_4(float *p, const tc_vf *t) { memcpy(p, t, 4 * sizeof *p); }
TC_INLINE void tc_load_unriffled_2(tc_vf *t, const float *p) { memcpy(t, p, 2 * sizeof *p); }
TC_INLINE void tc_store_sums_4(float *p, const tc_vf *t) { memcpy(p, t, 4 * sizeof *p); }
TC_INLINE void tc_store_sums_8(float *p, const tc_vf *t) { memcpy(p, t, 8 * sizeof *p); }
TC_INLINE void tc_store_sums_16(float *p, const tc_vf *t) { memcpy(p, t, 16 * sizeof *p); }
TC_INLINE void tc_load_unriffled_3(tc_vf *t, const float *p) { memcpy(t, p, 3 * sizeof *p); }

#  define TC_TRANSPOSE(size, element, n)                                                                               \
    TC_INLINE void tc_transpose_##size(void *to, ptrdiff_t to_stride, const void *from, ptrdiff_t from_stride)         \
    {                                                                                                                  \
      for (int c = 0; c < (n); c++)                                                                                    \
        for (int r = 0; r < (n); r++)                                                                                  \
          memcpy((char *)to + (c * to_stride + r) * (size), (const char *)from + (r * from_stride + c) * (size), size); \
    }

#endif

TC_TRANSPOSE(1, uint8_t, 16)
TC_TRANSPOSE(2, uint16_t, 8)
TC_TRANSPOSE(4, uint32_t, 4)
TC_TRANSPOSE(8, uint64_t, 2)

#endif
