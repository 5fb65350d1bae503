/* SPDX-License-Identifier: Apache-2.0 */
/* Compares every function of tc_half.h with the conversions of tc_types.h: all halves, and floats about all halves and on a stride
 * over all 2^32. argv[1] is the stride (default 433). */
#include "templates/text/tc_half.h"
#include <stdio.h>
#include <stdlib.h>

typedef struct {
  const char *name;
  tc_vf (*load)(const uint16_t *p);
  void (*store)(uint16_t *p, tc_vf v);
  tc_vf (*load_n)(const uint16_t *p, int n);
  void (*store_n)(uint16_t *p, tc_vf v, int n);
  tc_vf (*round)(tc_vf v);
  float (*widened)(uint16_t h);
  uint16_t (*rounded)(float x);
} format;

static const format kFormats[] = {
  {"f16", tc_load_f16, tc_store_f16, tc_load_f16_n, tc_store_f16_n, tc_round_f16, tc_f32_from_f16, tc_f16_from_f32},
  {"bf16", tc_load_bf16, tc_store_bf16, tc_load_bf16_n, tc_store_bf16_n, tc_round_bf16, tc_f32_from_bf16, tc_bf16_from_f32},
};

/* Equal bits, or both NaN: processors keep what else a NaN says. */
static int same(float a, float b) { return a != a ? b != b : tc_float_bits(a) == tc_float_bits(b); }

static int check_floats(const format *f, const float *x)
{
  uint16_t h[TC_VL];
  float back[TC_VL];
  int bad = 0;
  f->store(h, tc_load(x));
  tc_store(back, f->round(tc_load(x)));
  for (int l = 0; l < TC_VL; l++) {
    const float expected = f->widened(f->rounded(x[l]));
    if ((!same(f->widened(h[l]), expected) || !same(back[l], expected)) && !bad++)
      printf("%s(%.9g) = %.9g, rounded %.9g, expected %.9g\n", f->name, (double)x[l], (double)f->widened(h[l]), (double)back[l], (double)expected);
  }
  return bad;
}

static int check_halves(const format *f)
{
  uint16_t h[TC_VL];
  float y[TC_VL], about[TC_VL];
  int bad = 0;
  for (uint32_t first = 0; first < 65536; first += TC_VL) {
    for (int l = 0; l < TC_VL; l++) h[l] = (uint16_t)(first + (uint32_t)l);
    tc_store(y, f->load(h));
    for (int l = 0; l < TC_VL; l++)
      if (!same(y[l], f->widened(h[l])) && !bad++) printf("%s %04x: %.9g\n", f->name, (unsigned)h[l], (double)y[l]);
    for (int step = 0; step < 5; step++) {  /* halves, what lies half-way behind them, and its neighbours */
      const uint32_t half_way = f->rounded == tc_f16_from_f32 ? 0x1000u : 0x8000u;
      const uint32_t add[5] = {0, half_way - 1, half_way, half_way + 1, 1};
      for (int l = 0; l < TC_VL; l++) about[l] = tc_float_from_bits(tc_float_bits(y[l]) + add[step]);
      bad += check_floats(f, about);
    }
  }
  return bad;
}

static int check_tails(const format *f)
{
  int bad = 0;
  for (int n = -1; n <= TC_VL + 1; n++) {
    const int kept = n < 0 ? 0 : n > TC_VL ? TC_VL : n;
    uint16_t *exact = (uint16_t *)malloc((size_t)kept * 2 + 1), out[TC_VL + 1];  /* the sanitizer sees what lies beyond */
    float lanes[TC_VL];
    for (int i = 0; i < kept; i++) exact[i] = f->rounded((float)(i + 1));
    for (int i = 0; i <= TC_VL; i++) out[i] = 77;
    tc_store(lanes, f->load_n(exact, n));
    for (int i = 0; i < TC_VL; i++) bad += lanes[i] != (i < kept ? (float)(i + 1) : 0.0f);
    f->store_n(out, f->load_n(exact, n), n);
    for (int i = 0; i <= TC_VL; i++) bad += out[i] != (i < kept ? f->rounded((float)(i + 1)) : 77);
    f->store_n(exact, f->load_n(exact, n), n);
    free(exact);
  }
  if (bad) printf("%s: %d lanes of tails are wrong\n", f->name, bad);
  return bad;
}

int main(int argc, char **argv)
{
  const uint32_t stride = argc > 1 ? (uint32_t)atoi(argv[1]) : 433;
  int failed = 0;
  for (int i = 0; i < 2; i++) {
    float x[TC_VL];
    int bad = check_tails(&kFormats[i]) + check_halves(&kFormats[i]);
    for (uint64_t bits = 0; bits < UINT64_C(1) << 32; bits += (uint64_t)stride * TC_VL) {
      for (int l = 0; l < TC_VL; l++) x[l] = tc_float_from_bits((uint32_t)(bits + (uint64_t)stride * (uint64_t)l));
      bad += check_floats(&kFormats[i], x);
      if (bad > 3) break;
    }
    failed |= bad != 0;
  }
  if (!failed) printf("ok\n");
  return failed;
}
