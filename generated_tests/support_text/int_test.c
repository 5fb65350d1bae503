/* SPDX-License-Identifier: Apache-2.0 */
/* Compares every function of tc_int.h, tc_bits.h and tc_tiles.h, and tc_round, tc_max and tc_min, with plain C, on random bytes with many at the ends of
 * their range: 255 * -128 four times is where 16 bits overflow. */
#include "templates/text/tc_bits.h"
#include "templates/text/tc_cpu.h"
#include "templates/text/tc_tiles.h"
#include <math.h>
#include <stdio.h>

static uint32_t seed = 1;
static int bad;

static uint32_t random_bits(void)
{
  seed = seed * 1664525u + 1013904223u;
  return seed >> 8;
}

static void expect(int holds, const char *what, int lane)
{
  if (!holds && bad++ < 10) printf("%s: lane %d differs\n", what, lane);
}

/* sum + (a[0] + shift) * b[0] + ..., modulo 2^32 */
static int32_t dot(int32_t sum, const int *a, int shift, const int8_t *b, int n)
{
  uint32_t s = (uint32_t)sum;
  for (int q = 0; q < n; q++) s += (uint32_t)((a[q] + shift) * b[q]);
  return (int32_t)s;
}

static void check_dot4(const int32_t *sum, const uint8_t *u, const int8_t *s, const int8_t *b)
{
  int32_t   y[16];
  int       wide_u[4], wide_s[4];
  const tc_vi start = tc_load_i32(sum);
  for (int q = 0; q < 4; q++) wide_u[q] = u[q];
  for (int q = 0; q < 4; q++) wide_s[q] = s[q];
  tc_store_i32(y, tc_dot4_u8(start, u, b));
  for (int l = 0; l < TC_VL; l++) expect(y[l] == dot(sum[l], wide_u, 0, b + 4 * l, 4), "tc_dot4_u8", l);
  tc_store_i32(y, tc_dot4_i8(start, s, b));
  for (int l = 0; l < TC_VL; l++) expect(y[l] == dot(sum[l], wide_s, 128, b + 4 * l, 4), "tc_dot4_i8", l);
  for (int n = 1; n < 4; n++) { /* what stands in b behind the first n does not matter */
    tc_store_i32(y, tc_dot4_u8_n(start, u, b, n));
    for (int l = 0; l < TC_VL; l++) expect(y[l] == dot(sum[l], wide_u, 0, b + 4 * l, n), "tc_dot4_u8_n", l);
    tc_store_i32(y, tc_dot4_i8_n(start, s, b, n));
    for (int l = 0; l < TC_VL; l++) expect(y[l] == dot(sum[l], wide_s, 128, b + 4 * l, n), "tc_dot4_i8_n", l);
  }
}

static void check_madd(const int32_t *sum, const uint8_t *u, const int8_t *s, const int32_t *w)
{
  int32_t y[16], factor[16];
  for (int l = 0; l < TC_VL; l++) factor[l] = (int16_t)(w[l] & 0xffff);
  const tc_vi start = tc_load_i32(sum), factors = tc_load_i32(factor);
  tc_store_i32(y, tc_madd_u8(start, u, factors));
  for (int l = 0; l < TC_VL; l++) expect(y[l] == (int32_t)((uint32_t)sum[l] + (uint32_t)(u[l] * factor[l])), "tc_madd_u8", l);
  tc_store_i32(y, tc_madd_i8(start, s, factors));
  for (int l = 0; l < TC_VL; l++) expect(y[l] == (int32_t)((uint32_t)sum[l] + (uint32_t)(s[l] * factor[l])), "tc_madd_i8", l);
}

/* What lies behind the last byte stays as it is. */
static void check_riffled(const int32_t *w)
{
  tc_vi   t[4];
  uint8_t y[4 * 16 + 8];
  for (int i = 0; i < 4; i++) t[i] = tc_imul(tc_load_i32(w), tc_iset(2 * i + 1));
  for (int n = 2; n <= 4; n++) {
    memset(y, 0xee, sizeof y);
    if (n == 2) tc_store_riffled_2_u8(y, t);
    if (n == 3) tc_store_riffled_3_u8(y, t);
    if (n == 4) tc_store_riffled_4_u8(y, t);
    for (int l = 0; l < TC_VL; l++)
      for (int i = 0; i < n; i++) expect(y[n * l + i] == (uint8_t)((uint32_t)w[l] * (uint32_t)(2 * i + 1)), "tc_store_riffled", l);
    for (int k = n * TC_VL; k < n * TC_VL + 8; k++) expect(y[k] == 0xee, "behind tc_store_riffled", k);
  }
  tc_store_riffled_3_i8((int8_t *)y, t);
  for (int l = 0; l < TC_VL; l++) expect(y[3 * l + 2] == (uint8_t)((uint32_t)w[l] * 5u), "tc_store_riffled_3_i8", l);
}

/* Rows of two tiles, which lie apart, times packed columns; as the matrix extensions do it where the flags have them. */
static void check_tiles(int upper, int lower, int columns, int runs, int depth, int step)
{
  enum { kRowStride = 200, kRunStride = 70, kBelow = 5000 };
  static uint8_t left[kBelow + 16 * kRowStride + 256];
  static int8_t  right[32 * 256];
  static int32_t sums[2][32 * 32 + 1];
  for (size_t i = 0; i < sizeof left; i++) left[i] = (uint8_t)(random_bits() % 3 ? random_bits() % 256 : 255);
  for (size_t i = 0; i < sizeof right; i++) right[i] = (int8_t)(random_bits() % 3 ? (int)(random_bits() % 256) - 128 : -128);
  const int rows = upper + lower;
  sums[0][rows * columns] = sums[1][rows * columns] = 12345;
  tc_tiles_begin(upper, lower, step);
  tc_multiply_tiles_u8(sums[0], columns, upper, lower, left, kRowStride, kBelow, right, runs, kRunStride, depth, step);
  tc_multiply_tiles_i8(sums[1], columns, upper, lower, (const int8_t *)left, kRowStride, kBelow, right, runs, kRunStride, depth, step);
  tc_tiles_end();
  for (int i = 0; i < rows; i++)
    for (int j = 0; j < columns; j++) {
      int64_t of_u8 = 0, of_i8 = 0;
      for (int r = 0; r < runs; r++)
        for (int k = 0; k < depth; k++) {
          const uint8_t a = left[(i < upper ? i * kRowStride : kBelow + (i - upper) * kRowStride) + r * kRunStride + k];
          const int     b = right[((r * depth + k) / 4 * columns + j) * 4 + k % 4];
          of_u8 += a * b;
          of_i8 += (int8_t)a * b;
        }
      expect(sums[0][i * columns + j] == of_u8, "tc_multiply_tiles_u8", i);
      expect(sums[1][i * columns + j] == of_i8, "tc_multiply_tiles_i8", i);
    }
  expect(sums[0][rows * columns] == 12345 && sums[1][rows * columns] == 12345, "behind tc_multiply_tiles", rows);
}

static void check_all_tiles(void)
{
  for (int columns = 16; columns <= 32; columns += 16)
    for (int upper = 1; upper <= 16; upper += 3)
      for (int lower = 0; lower <= 16; lower += upper < 8 ? upper : 5) {
        check_tiles(upper, lower, columns, 1, 64, 64);
        check_tiles(upper, lower, columns, 2, 120, 24);
        check_tiles(upper, lower, columns, 3, 64, 32);
      }
}

static void check_memory(const int32_t *w, const uint8_t *u, const int8_t *s)
{
  const tc_vi v = tc_load_i32(w);
  int32_t     y[17];
  uint8_t     yu[17];
  int8_t      ys[17];
  tc_store_bool(yu, tc_ilt(v, tc_iset(0)));
  for (int l = 0; l < TC_VL; l++) expect(yu[l] == (w[l] < 0), "tc_store_bool", l);
  for (int n = -1; n <= TC_VL + 1; n++) {
    tc_store_i32(y, tc_load_u8_n(u, n));
    for (int l = 0; l < TC_VL; l++) expect(y[l] == (l < n ? u[l] : 0), "tc_load_u8_n", l);
    tc_store_i32(y, tc_load_bool_n(u, n));
    for (int l = 0; l < TC_VL; l++) expect((y[l] != 0) == (l < n && u[l] != 0), "tc_load_bool_n", l);
    tc_store_i32(y, tc_load_i8_n(s, n));
    for (int l = 0; l < TC_VL; l++) expect(y[l] == (l < n ? s[l] : 0), "tc_load_i8_n", l);
    tc_store_i32(y, tc_load_i32_n(w, n));
    for (int l = 0; l < TC_VL; l++) expect(y[l] == (l < n ? w[l] : 0), "tc_load_i32_n", l);
    for (int l = 0; l < 17; l++) yu[l] = 77;
    tc_store_bool_n(yu, tc_load_bool(u), n);
    for (int l = 0; l < 17; l++) expect(yu[l] == (l < n && l < TC_VL ? u[l] != 0 : 77), "tc_store_bool_n", l);
    for (int l = 0; l < 17; l++) y[l] = yu[l] = (uint8_t)(ys[l] = 77);
    tc_store_u8_n(yu, v, n);
    tc_store_i8_n(ys, v, n);
    tc_store_i32_n(y, v, n);
    for (int l = 0; l < 17; l++) {
      const int written = l < n && l < TC_VL;
      expect(yu[l] == (written ? (uint8_t)(w[l] & 255) : 77), "tc_store_u8_n", l);
      expect(ys[l] == (written ? (int8_t)(uint8_t)(w[l] & 255) : 77), "tc_store_i8_n", l);
      expect(y[l] == (written ? w[l] : 77), "tc_store_i32_n", l);
    }
  }
}

/* clang 14 takes the other one of two zeros where the bound is a constant and lanes are single floats. */
static int is_choice(float e, float r)
{
  if (TC_VL == 1 && e == 0) return r == 0;
  return memcmp(&e, &r, 4) == 0;
}

static void check_arithmetic(const int32_t *a, const int32_t *b, const float *x)
{
  int32_t     y[16];
  float       r[16];
  const tc_vi p = tc_load_i32(a), q = tc_load_i32(b);
#define LANES(f, expected)                                                                 \
  tc_store_i32(y, f);                                                                      \
  for (int l = 0; l < TC_VL; l++) expect(y[l] == (expected), #f, l);
  LANES(tc_iadd(p, q), (int32_t)((uint32_t)a[l] + (uint32_t)b[l]))
  LANES(tc_isub(p, q), (int32_t)((uint32_t)a[l] - (uint32_t)b[l]))
  LANES(tc_imul(p, q), (int32_t)((uint32_t)a[l] * (uint32_t)b[l]))
  LANES(tc_imax(p, q), a[l] > b[l] ? a[l] : b[l])
  LANES(tc_imin(p, q), a[l] < b[l] ? a[l] : b[l])
  LANES(tc_isel(tc_ile(p, q), p, q), a[l] <= b[l] ? a[l] : b[l])
  LANES(tc_isel(tc_ieq(p, q), p, tc_iset(3)), a[l] == b[l] ? a[l] : 3)
  LANES(tc_isel(tc_ine(p, q), p, tc_iset(3)), a[l] != b[l] ? a[l] : 3)
  LANES(tc_int_nearest(tc_load(x)), x[l] >= -2147483648.0f && x[l] < 2147483648.0f ? (int32_t)rintf(x[l]) : INT32_MIN)
  LANES(tc_int(tc_load(x)), x[l] >= -2147483648.0f && x[l] < 2147483648.0f ? (int32_t)x[l] : INT32_MIN)
  tc_store(r, tc_float(p));
  for (int l = 0; l < TC_VL; l++) expect(r[l] == (float)a[l], "tc_float", l);
  tc_store(r, tc_round(tc_load(x)));
  for (int l = 0; l < TC_VL; l++) {
    const float e = rintf(x[l]);
    expect(x[l] != x[l] ? r[l] != r[l] : memcmp(&e, &r[l], 4) == 0, "tc_round", l);
  }
  for (int k = 0; k < 3; k++) {  /* the bound is not NaN; of two zeros, x stays */
    const float bound = k == 0 ? 0.0f : k == 1 ? -0.0f : 300.5f;
    tc_store(r, tc_max(tc_load(x), tc_set(bound)));
    for (int l = 0; l < TC_VL; l++) expect(is_choice(x[l] < bound ? bound : x[l], r[l]), "tc_max", l);
    tc_store(r, tc_min(tc_load(x), tc_set(bound)));
    for (int l = 0; l < TC_VL; l++) expect(is_choice(bound < x[l] ? bound : x[l], r[l]), "tc_min", l);
  }
}

/* Numbers of few bits in words: each of them, and sums of their products. */
static int32_t number_of(int32_t word, int bits, int at)
{
  return (int32_t)((uint32_t)word >> at & ((1u << bits) - 1u));
}

/* Callers name the count as a constant, by which the loops are unrolled. */
static tc_vi dot_words(tc_vi sum, int bits, const int32_t *words, const int8_t *a, int count)
{
  switch (bits * 16 + count) {
#define COUNT(bits, n) case bits * 16 + n: return tc_dot_words_##bits(sum, words, 16, a, n);
    COUNT(4, 1) COUNT(4, 2) COUNT(4, 3) COUNT(4, 4)
    COUNT(8, 1) COUNT(8, 2) COUNT(8, 3) COUNT(8, 4) COUNT(8, 5) COUNT(8, 6) COUNT(8, 7) COUNT(8, 8)
  }
  return sum;
}

static void check_bits(const int32_t *sum, const int32_t *words, const int8_t *a)
{
  float   x[16];
  int32_t y[16];
  for (int bits = 2; bits <= 8; bits *= 2)
    for (int j = 0; j < 32 / bits; j++) {
      const tc_vi w = tc_load_i32(words);
      tc_store(x, bits == 2 ? tc_unpack_2(w, j) : bits == 4 ? tc_unpack_4(w, j) : tc_unpack_8(w, j));
      for (int l = 0; l < TC_VL; l++) {
        const int32_t number = number_of(words[l], bits, bits * j), top = 1 << (bits - 1);
        expect(x[l] == (float)(number < top ? number : number - 2 * top), "tc_unpack", l);
      }
    }
  for (int bits = 4; bits <= 8; bits *= 2)
    for (int count = 1; count <= bits; count++) {
      tc_store_i32(y, dot_words(tc_load_i32(sum), bits, words, a, count));
      for (int l = 0; l < TC_VL; l++) {
        uint32_t e = (uint32_t)sum[l];
        for (int w = 0; w < count; w++)
          for (int k = 0; k < 32 / bits; k++)
            e += (uint32_t)(number_of(words[w * 16 + l], bits, k % 4 * 8 + k / 4 * bits) * a[w * (32 / bits) + k]);
        expect(y[l] == (int32_t)e, "tc_dot_words", l);
      }
    }
}

int main(void)
{
#ifdef __AMX_INT8__
  if (tc_cpu_v4_amx()) check_all_tiles();
#else
  check_all_tiles();
#endif
  for (int turn = 0; turn < 5000; turn++) {
    uint8_t u[16];
    int8_t  s[16], b[64];
    int32_t v[16], w[16];
    float   x[16];
    for (int i = 0; i < 64; i++) b[i] = (int8_t)(random_bits() % 3 ? (int)(random_bits() % 256) - 128 : -128);
    for (int i = 0; i < 16; i++) {
      const uint32_t bits = random_bits() << 8 ^ random_bits();
      u[i] = (uint8_t)(random_bits() % 3 ? random_bits() % 256 : 255);
      s[i] = (int8_t)(random_bits() % 3 ? (int)(random_bits() % 256) - 128 : 127);
      v[i] = (int32_t)(random_bits() << 8 ^ random_bits());
      w[i] = random_bits() % 4 ? (int32_t)(random_bits() << 8 ^ random_bits()) : v[i];
      memcpy(&x[i], &bits, 4);
      if (turn % 7 == 0) x[i] = i % 2 ? -0.0f : 0.0f;
      if (turn % 2) x[i] = (float)((int)(random_bits() % 2000) - 1000) * 0.5f;
    }
    check_dot4(v, u, s, b);
    check_madd(v, u, s, w);
    check_riffled(v);
    check_memory(v, u, s);
    check_arithmetic(v, w, x);
    if (turn % 50 == 0) {
      int32_t words[16 * 8];
      for (int i = 0; i < 16 * 8; i++) words[i] = random_bits() % 3 ? (int32_t)(random_bits() << 8 ^ random_bits()) : -1;
      check_bits(v, words, b);
    }
  }
  return bad != 0;
}
