/* SPDX-License-Identifier: 0BSD -- support text of tc-emit; do not edit */
/* Numbers of few bits, several in a word of 32 bits. Every function gives the same bits for every TC_VL and every
 * processor.
 *
 *   tc_unpack_2, tc_unpack_4, tc_unpack_8            number j of each word, the lowest bits being number 0, with its sign, as float
 *   tc_lookup_4                                      the element of a table of 16 at number j of each word, without its sign
 *   tc_dot_words_4, tc_dot_words_8                   sum + the numbers of some words without sign times bytes with one, exactly */
#ifndef TC_BITS_H
#define TC_BITS_H
#include "tc_int.h"

/* To the upper end of the word, and back with the sign. */
TC_INLINE tc_vf tc_unpack_2(tc_vi words, int j) { return tc_float((tc_vi)((tc_vu)words << (30 - 2 * j)) >> 30); }
TC_INLINE tc_vf tc_unpack_4(tc_vi words, int j) { return tc_float((tc_vi)((tc_vu)words << (28 - 4 * j)) >> 28); }
TC_INLINE tc_vf tc_unpack_8(tc_vi words, int j) { return tc_float((tc_vi)((tc_vu)words << (24 - 8 * j)) >> 24); }

#if defined(TC_INT_AVX512)

/* Of an index the instruction takes the lowest four bits. */
TC_INLINE tc_vf tc_lookup_4(tc_vi words, int j, const float *table)
{
  return (tc_vf)_mm512_permutexvar_ps((__m512i)((tc_vu)words >> (4 * j)), _mm512_loadu_ps(table));
}

#elif defined(TC_INT_AVX2)

/* The lowest three bits choose from each half of the table, the fourth, moved to the top, between them. */
TC_INLINE tc_vf tc_lookup_4(tc_vi words, int j, const float *table)
{
  const __m256i index = (__m256i)((tc_vu)words >> (4 * j)), top = (__m256i)((tc_vu)words << (28 - 4 * j));
  const __m256 low = _mm256_permutevar8x32_ps(_mm256_loadu_ps(table), index);
  const __m256 high = _mm256_permutevar8x32_ps(_mm256_loadu_ps(table + 8), index);
  return (tc_vf)_mm256_blendv_ps(low, high, _mm256_castsi256_ps(top));
}

#elif defined(TC_INT_NEON)

/* The four bytes of element i are bytes 4 * i to 4 * i + 3 of the table. */
TC_INLINE tc_vf tc_lookup_4(tc_vi words, int j, const float *table)
{
  const tc_vi index = (tc_vi)((tc_vu)words >> (4 * j)) & tc_iset(15);
  const uint8x16x4_t bytes = {{vreinterpretq_u8_f32(vld1q_f32(table)), vreinterpretq_u8_f32(vld1q_f32(table + 4)), vreinterpretq_u8_f32(vld1q_f32(table + 8)), vreinterpretq_u8_f32(vld1q_f32(table + 12))}};
  return (tc_vf)vqtbl4q_u8(bytes, (uint8x16_t)(tc_imul(index, tc_iset(0x04040404)) + tc_iset(0x03020100)));
}

#else

TC_INLINE tc_vf tc_lookup_4(tc_vi words, int j, const float *table)
{
  tc_vf v = tc_zero();
  TC_UNROLL for (int l = 0; l < TC_VL; l++) v = tc_put(v, l, table[(uint32_t)tc_iget(words, l) >> (4 * j) & 15]);
  return v;
}

#endif

/* sum + bytes[0] * quad[0] + ... + bytes[3] * quad[3] in every lane: bytes without sign, those of `quad` with one. */
#if defined(TC_INT_AVX512)

TC_INLINE tc_vi tc_dot_bytes(tc_vi sum, tc_vi bytes, int32_t quad)
{
  const __m512i x = (__m512i)bytes, y = _mm512_set1_epi32(quad);
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

TC_INLINE tc_vi tc_dot_bytes(tc_vi sum, tc_vi bytes, int32_t quad)
{
  const __m256i x = (__m256i)bytes, y = _mm256_set1_epi32(quad);
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

TC_INLINE tc_vi tc_dot_bytes(tc_vi sum, tc_vi bytes, int32_t quad)
{
  const __m128i x = (__m128i)bytes, y = _mm_set1_epi32(quad), low = _mm_set1_epi16(255);
  const __m128i even = _mm_madd_epi16(_mm_and_si128(x, low), _mm_srai_epi16(_mm_slli_epi16(y, 8), 8));
  const __m128i odd = _mm_madd_epi16(_mm_srli_epi16(x, 8), _mm_srai_epi16(y, 8));
  return (tc_vi)_mm_add_epi32((__m128i)sum, _mm_add_epi32(even, odd));
}

#elif defined(TC_INT_NEON)

TC_INLINE tc_vi tc_dot_bytes(tc_vi sum, tc_vi bytes, int32_t quad)
{
  const uint8x16_t x = (uint8x16_t)bytes;
  const int8x16_t y = vreinterpretq_s8_s32(vdupq_n_s32(quad));
#  if defined(__ARM_FEATURE_MATMUL_INT8)
  return (tc_vi)vusdotq_s32((int32x4_t)sum, x, y);
#  else
  const int16x8_t factor = vmovl_s8(vget_low_s8(y));
  const int16x8_t low = vreinterpretq_s16_u16(vmovl_u8(vget_low_u8(x))), high = vreinterpretq_s16_u16(vmovl_u8(vget_high_u8(x)));
  const int16x8_t lower = vmulq_s16(low, factor), upper = vmulq_s16(high, factor);
  return (tc_vi)vaddq_s32((int32x4_t)sum, vpaddq_s32(vpaddlq_s16(lower), vpaddlq_s16(upper)));
#  endif
}

#else

TC_INLINE tc_vi tc_dot_bytes(tc_vi sum, tc_vi bytes, int32_t quad)
{
  TC_UNROLL for (int i = 0; i < 4; i++) {
    const tc_vi number = (tc_vi)((tc_vu)bytes >> (8 * i)) & tc_iset(255);
    sum = tc_iadd(sum, tc_imul(number, tc_iset((int32_t)((uint32_t)quad << (24 - 8 * i)) >> 24)));
  }
  return sum;
}

#endif

/* Four of a with the bits of an int32_t: a[0] the lowest. */
TC_INLINE int32_t tc_bytes_of(const int8_t *a)
{
  return (int32_t)((uint32_t)(uint8_t)a[0] | (uint32_t)(uint8_t)a[1] << 8 | (uint32_t)(uint8_t)a[2] << 16 | (uint32_t)(uint8_t)a[3] << 24);
}

/* Numbers 0 to 3 of four bits of each word as bytes, and numbers 4 to 7. */
TC_INLINE tc_vi tc_low_halves(tc_vi words) { return words & tc_iset(0x0f0f0f0f); }
TC_INLINE tc_vi tc_high_halves(tc_vi words) { return (tc_vi)((tc_vu)words >> 4) & tc_iset(0x0f0f0f0f); }

/* sum + the numbers of `count` words, `stride` apart, times a; at most 32 of them. */
TC_INLINE tc_vi tc_dot_words_8(tc_vi sum, const int32_t *words, int stride, const int8_t *a, int count)
{
  TC_UNROLL for (int w = 0; w < count; w++) sum = tc_dot_bytes(sum, tc_load_i32(words + w * stride), tc_bytes_of(a + 4 * w));
  return sum;
}

/* Without an instruction that adds four products, sums of pairs stay in 16 bits for all 32: 2 * 15 * 128 * 8 < 2^15. */
#if defined(TC_INT_AVX512) && !defined(__AVX512VNNI__)

TC_INLINE __m512i tc_pairs(__m512i sums, tc_vi bytes, int32_t quad) { return _mm512_add_epi16(sums, _mm512_maddubs_epi16((__m512i)bytes, _mm512_set1_epi32(quad))); }
TC_INLINE tc_vi tc_dot_words_4(tc_vi sum, const int32_t *words, int stride, const int8_t *a, int count)
{
  __m512i pairs = _mm512_setzero_si512();
  TC_UNROLL for (int w = 0; w < count; w++) {
    const tc_vi word = tc_load_i32(words + w * stride);
    pairs = tc_pairs(pairs, tc_low_halves(word), tc_bytes_of(a + 8 * w));
    pairs = tc_pairs(pairs, tc_high_halves(word), tc_bytes_of(a + 8 * w + 4));
  }
  return (tc_vi)_mm512_add_epi32((__m512i)sum, _mm512_madd_epi16(pairs, _mm512_set1_epi16(1)));
}

#elif defined(TC_INT_AVX2) && !(defined(__AVX512VNNI__) && defined(__AVX512VL__)) && !defined(__AVXVNNI__)

TC_INLINE __m256i tc_pairs(__m256i sums, tc_vi bytes, int32_t quad) { return _mm256_add_epi16(sums, _mm256_maddubs_epi16((__m256i)bytes, _mm256_set1_epi32(quad))); }
TC_INLINE tc_vi tc_dot_words_4(tc_vi sum, const int32_t *words, int stride, const int8_t *a, int count)
{
  __m256i pairs = _mm256_setzero_si256();
  TC_UNROLL for (int w = 0; w < count; w++) {
    const tc_vi word = tc_load_i32(words + w * stride);
    pairs = tc_pairs(pairs, tc_low_halves(word), tc_bytes_of(a + 8 * w));
    pairs = tc_pairs(pairs, tc_high_halves(word), tc_bytes_of(a + 8 * w + 4));
  }
  return (tc_vi)_mm256_add_epi32((__m256i)sum, _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)));
}

#else

TC_INLINE tc_vi tc_dot_words_4(tc_vi sum, const int32_t *words, int stride, const int8_t *a, int count)
{
  TC_UNROLL for (int w = 0; w < count; w++) {
    const tc_vi word = tc_load_i32(words + w * stride);
    sum = tc_dot_bytes(sum, tc_low_halves(word), tc_bytes_of(a + 8 * w));
    sum = tc_dot_bytes(sum, tc_high_halves(word), tc_bytes_of(a + 8 * w + 4));
  }
  return sum;
}

#endif

#endif
