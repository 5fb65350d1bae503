/* SPDX-License-Identifier: Apache-2.0 */
/* Compares every function of tc_math.h with double libm, on a stride over all 2^32 floats, and its special values with
 * float libm exactly. argv[1] is the stride (default 433: 10^7 floats); -v prints the largest errors. */
#include "templates/text/tc_math.h"
#include "templates/text/tc_tail.h"
#include "templates/text/tc_transpose.h"
#include <fenv.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct {
  const char *name;
  void (*f)(const float *x, float *y);
  double (*reference)(double x);
  double ulp;       /* the largest error allowed, in ulp of the result */
  double absolute;  /* or this absolute error */
  float  limit;     /* |x| up to here */
} function;

#define VECTOR(name, expression) static void name(const float *p, float *y) { const tc_vf x = tc_load(p); tc_store(y, expression); }
VECTOR(v_exp, tc_exp(x))
VECTOR(v_expm1, tc_expm1(x))
VECTOR(v_log, tc_log(x))
VECTOR(v_log1p, tc_log1p(x))
VECTOR(v_tanh, tc_tanh(x))
VECTOR(v_erf, tc_erf(x))
VECTOR(v_sigmoid, tc_sigmoid(x))
VECTOR(v_silu, tc_silu(x))
VECTOR(v_softplus, tc_softplus(x))
VECTOR(v_gelu, tc_gelu(x))
VECTOR(v_gelu_tanh, tc_gelu_tanh(x))
VECTOR(v_sin, tc_sin(x))
VECTOR(v_cos, tc_cos(x))
VECTOR(v_tan, tc_tan(x))
VECTOR(v_asin, tc_asin(x))
VECTOR(v_acos, tc_acos(x))
VECTOR(v_atan, tc_atan(x))
VECTOR(v_sinh, tc_sinh(x))
VECTOR(v_cosh, tc_cosh(x))
VECTOR(v_asinh, tc_asinh(x))
VECTOR(v_acosh, tc_acosh(x))
VECTOR(v_atanh, tc_atanh(x))
VECTOR(v_sqrt, tc_sqrt(x))
VECTOR(v_rsqrt, tc_rsqrt(x))
VECTOR(v_rcp, tc_rcp(x))
VECTOR(v_round, tc_round(x))
VECTOR(v_floor, tc_floor(x))
VECTOR(v_ceil, tc_ceil(x))
VECTOR(v_trunc, tc_trunc(x))
VECTOR(v_abs, tc_abs(x))
VECTOR(v_lanes, TC_LANES(cbrtf, x))

static double sigmoid(double x) { return 1 / (1 + exp(-x)); }
static double silu(double x) { return x / (1 + exp(-x)); }
static double softplus(double x) { return (x > 0 ? x : 0) + log1p(exp(-fabs(x))); }
static double gelu(double x) { return 0.5 * x * (1 + erf(x * 0.70710678118654752440)); }
static double gelu_tanh(double x) { return 0.5 * x * (1 + tanh(0.79788456080286535588 * (x + 0.044715 * x * x * x))); }
static double rsqrt(double x) { return 1 / sqrt(x); }
static double rcp(double x) { return 1 / x; }

static const function kFunctions[] = {
  {"exp", v_exp, exp, 1.0, 0, INFINITY},
  {"expm1", v_expm1, expm1, 2.0, 0, INFINITY},
  {"log", v_log, log, 1.0, 0, INFINITY},
  {"log1p", v_log1p, log1p, 2.0, 0, INFINITY},
  {"tanh", v_tanh, tanh, 6.0, 0, INFINITY},
  {"erf", v_erf, erf, 7.0, 0, INFINITY},
  {"sigmoid", v_sigmoid, sigmoid, 2.5, 1e-38, INFINITY},
  {"silu", v_silu, silu, 3.0, 2e-36, INFINITY},
  {"softplus", v_softplus, softplus, 2.0, 0, INFINITY},
  {"gelu", v_gelu, gelu, 8.0, 1.5e-6, INFINITY},
  {"gelu_tanh", v_gelu_tanh, gelu_tanh, 8.0, 1.5e-6, 1e12f},
  {"sin", v_sin, sin, 2.5, 0, INFINITY},
  {"cos", v_cos, cos, 2.5, 0, INFINITY},
  {"tan", v_tan, tan, 4.0, 0, INFINITY},
  {"asin", v_asin, asin, 2.5, 0, INFINITY},
  {"acos", v_acos, acos, 2.0, 0, INFINITY},
  {"atan", v_atan, atan, 2.0, 0, INFINITY},
  {"sinh", v_sinh, sinh, 3.0, 0, INFINITY},
  {"cosh", v_cosh, cosh, 2.0, 0, INFINITY},
  {"asinh", v_asinh, asinh, 3.0, 0, INFINITY},
  {"acosh", v_acosh, acosh, 3.0, 0, INFINITY},
  {"atanh", v_atanh, atanh, 3.0, 0, INFINITY},
  {"sqrt", v_sqrt, sqrt, 0.5, 0, INFINITY},
  {"rsqrt", v_rsqrt, rsqrt, 1.5, 0, INFINITY},
  {"rcp", v_rcp, rcp, 0.5, 0, INFINITY},
  {"round", v_round, nearbyint, 0, 0, INFINITY},
  {"floor", v_floor, floor, 0, 0, INFINITY},
  {"ceil", v_ceil, ceil, 0, 0, INFINITY},
  {"trunc", v_trunc, trunc, 0, 0, INFINITY},
  {"abs", v_abs, fabs, 0, 0, INFINITY},
  {"lanes", v_lanes, cbrt, 1.5, 0, INFINITY},
};

static float from_bits(uint32_t bits) { float x; memcpy(&x, &bits, 4); return x; }

/* |y - expected| in ulp of expected; 0 if both are the same infinity, NaN, or zero of the same sign */
static double ulp_error(float y, double expected)
{
  if (isnan(expected)) return isnan(y) ? 0 : INFINITY;
  if (isnan(y)) return INFINITY;
  const float nearest = (float)expected;
  if (isinf(nearest) || isinf(y)) return nearest == y ? 0 : INFINITY;
  if (expected == 0) return y == 0 && !signbit(y) == !signbit(expected) ? 0 : INFINITY;
  int exponent;
  frexp(expected, &exponent);
  return fabs((double)y - expected) / ldexp(1.0, exponent - 24 > -149 ? exponent - 24 : -149);
}

static int check(const function *f, const float *x, double *worst, double *worst_absolute, int quiet)
{
  float y[TC_VL];
  int bad = 0;
  f->f(x, y);
  for (int l = 0; l < TC_VL; l++) {
    if (fabsf(x[l]) > f->limit) continue;
    const double expected = f->reference((double)x[l]), error = ulp_error(y[l], expected);
    const double absolute = error == 0 ? 0 : fabs((double)y[l] - expected);
    if (error > *worst && !(f->absolute > 0 && absolute <= f->absolute)) *worst = error;
    if (error > f->ulp && absolute > *worst_absolute) *worst_absolute = absolute;
    if (error > f->ulp && !(f->absolute > 0 && absolute <= f->absolute)) {
      if (!quiet && !bad) printf("%s(%.9g) = %.9g, expected %.9g\n", f->name, (double)x[l], (double)y[l], expected);
      bad++;
    }
  }
  return bad;
}

/* What a lane becomes is the same to the bit, whatever stands in another one, which may be memory that nobody has written. */
static int check_neighbours(void)
{
  const float neighbours[] = {0.0f, -3.5f, 1e-42f, 13000.0f, -1e30f, INFINITY, -INFINITY, NAN};
  int bad = 0;
  for (size_t f = 0; f < sizeof kFunctions / sizeof *kFunctions; f++) {
    float x[TC_VL], alone[TC_VL], y[TC_VL];
    for (int l = 0; l < TC_VL; l++) x[l] = (float)l * 2.375f + 0.6875f;
    kFunctions[f].f(x, alone);
    for (size_t k = 0; k < sizeof neighbours / sizeof *neighbours; k++) {
      x[0] = neighbours[k];
      kFunctions[f].f(x, y);
      const int same = memcmp(y + 1, alone + 1, (TC_VL - 1) * sizeof *y) == 0;
      if (!same) printf("%s: lanes depend on a neighbour that is %g\n", kFunctions[f].name, (double)neighbours[k]);
      bad += !same;
    }
  }
  return bad;
}

/* What is 0 comes without underflow: that is slow, and whole rows of masked attention would. */
static int check_underflow(void)
{
  const float zeros[] = {-103.98f, -104.0f, -1000.0f, -1e30f, -INFINITY};
  int bad = 0;
  for (size_t k = 0; k < sizeof zeros / sizeof *zeros; k++) {
    float y[TC_VL];
    volatile float x[TC_VL];
    for (int l = 0; l < TC_VL; l++) x[l] = zeros[k];
    feclearexcept(FE_ALL_EXCEPT);
    v_exp((const float *)x, y);
    const int underflow = fetestexcept(FE_UNDERFLOW) != 0;
    if (underflow) printf("exp(%g) underflows\n", (double)zeros[k]);
    bad += underflow || y[0] != 0;
  }
  return bad;
}

/* One remainder, in all lanes or in one among others that are near, to the bit. */
static int check_mod_of(float x, float y)
{
  const float expected = fmodf(x, y);
  int bad = 0;
  for (int all = 0; all < 2; all++) {
    float a[TC_VL], b[TC_VL], m[TC_VL];
    for (int l = 0; l < TC_VL; l++) { a[l] = l && !all ? 7.5f : x; b[l] = l && !all ? -2.0f : y; }
    tc_store(m, tc_mod(tc_load(a), tc_load(b)));
    bad += isnan(expected) ? !isnan(m[0]) : memcmp(m, &expected, 4) != 0;
    bad += !all && TC_VL > 1 && m[TC_VL - 1] != 1.5f;
  }
  if (bad) printf("mod(%.9g, %.9g), expected %.9g\n", (double)x, (double)y, (double)expected);
  return bad != 0;
}

/* Divisors of every size, and dividends that are multiples of them, or next to one. */
static int check_mod(uint32_t stride)
{
  static const float special[] = {0.0f, -0.0f, 1.0f, -1.0f, INFINITY, -INFINITY, NAN, 1e-45f, 1.17549435e-38f, 3.40282347e38f, -5.3f, 134217728.0f};
  const size_t n = sizeof special / sizeof *special;
  int bad = 0;
  for (size_t i = 0; i < n * n; i++) bad += check_mod_of(special[i / n], special[i % n]);
  uint64_t state = 1;
  for (uint64_t bits = 0; bits < UINT64_C(1) << 32 && bad < 4; bits += (uint64_t)stride * 30) {
    const float y = from_bits((uint32_t)bits);
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    const uint32_t times = (uint32_t)(state >> 32) >> (state >> 27 & 31);
    const float multiple = (float)((double)times * (double)y);
    if (isinf(multiple)) continue;
    for (int away = -1; away <= 1; away++) {
      uint32_t next;
      memcpy(&next, &multiple, 4);
      bad += check_mod_of(from_bits(next + (uint32_t)away), y);
    }
  }
  return bad;
}

static int check_tails(void)
{
  int bad = 0;
  for (int n = -1; n <= TC_VL + 1; n++) {
    const int kept = n < 0 ? 0 : n > TC_VL ? TC_VL : n;
    float *exact = (float *)malloc((size_t)kept * 4 + 1), out[TC_VL + 1], lanes[TC_VL];  /* the sanitizer sees what lies beyond */
    for (int i = 0; i < kept; i++) exact[i] = (float)(i + 1);
    for (int i = 0; i <= TC_VL; i++) out[i] = -1.0f;
    tc_store(lanes, tc_load_n_or(exact, n, 7.0f));
    for (int i = 0; i < TC_VL; i++) bad += lanes[i] != (i < kept ? (float)(i + 1) : 7.0f);
    tc_store(lanes, tc_load_n(exact, n));
    for (int i = 0; i < TC_VL; i++) bad += lanes[i] != (i < kept ? (float)(i + 1) : 0.0f);
    tc_store_n(out, tc_load_n(exact, n), n);
    for (int i = 0; i <= TC_VL; i++) bad += out[i] != (i < kept ? (float)(i + 1) : -1.0f);
    tc_store_n(exact, tc_load_n(exact, n), n);
    tc_store(lanes, tc_sel_n(n, tc_set(1.0f), tc_set(2.0f)));
    for (int i = 0; i < TC_VL; i++) bad += lanes[i] != (i < kept ? 1.0f : 2.0f);
    free(exact);
  }
  if (bad) printf("tails: %d wrong\n", bad);
  return bad;
}

/* Tiles of 16 / SIZE rows, of bytes that are all different, out of rows of 17 elements and into columns of 18. */
static int check_transposed(void)
{
  static void (*const turn[])(void *, ptrdiff_t, const void *, ptrdiff_t) = {tc_transpose_1, tc_transpose_2, tc_transpose_4, tc_transpose_8};
  int bad = 0;
  for (int k = 0; k < 4; k++) {
    const int size = 1 << k, n = 16 / size;
    unsigned char from[17 * 16 * 8], to[18 * 16 * 8] = {0};
    for (size_t i = 0; i < sizeof from; i++) from[i] = (unsigned char)(i * 37 % 251);
    turn[k](to, 18, from, 17);
    for (int r = 0; r < n; r++)
      for (int c = 0; c < n; c++) bad += memcmp(to + (c * 18 + r) * size, from + (r * 17 + c) * size, (size_t)size) != 0;
    for (int c = 0; c < n; c++)
      for (int r = n; r < 18; r++) bad += to[(c * 18 + r) * size] != 0;
  }
  float x[TC_VL * 19], y[TC_VL];
  tc_vf t[TC_VL + 3];
  for (int i = 0; i < TC_VL * 19; i++) x[i] = (float)i;
  tc_load_transposed(t, x, 19);
  for (int i = 0; i < TC_VL; i++) {
    tc_store(y, t[i]);
    for (int l = 0; l < TC_VL; l++) bad += y[l] != (float)(19 * l + i);
  }
  for (int n = 2; n <= 4; n++) {
    tc_vf rows[4];
    float z[TC_VL * 4];
    for (int i = 0; i < n; i++) rows[i] = tc_load(x + i * TC_VL);
    if (n == 2)
      tc_store_riffled_2(z, rows);
    else if (n == 3)
      tc_store_riffled_3(z, rows);
    else
      tc_store_riffled_4(z, rows);
    for (int l = 0; l < TC_VL; l++)
      for (int i = 0; i < n; i++) bad += z[l * n + i] != x[i * TC_VL + l];
  }
  tc_load_unriffled_3(t, x);
  for (int i = 0; i < 3; i++) {
    tc_store(y, t[i]);
    for (int l = 0; l < TC_VL; l++) bad += y[l] != (float)(3 * l + i);
  }
  {
    tc_vf rows[16];
    float z[16];
    for (int i = 0; i < 16; i++) rows[i] = tc_load(x) * (0.1f + (float)i) + tc_set((float)(i * i));
    tc_store_sums_16(z, rows);
    for (int i = 0; i < 16; i++) bad += z[i] != tc_hsum(rows[i]);
    tc_store_sums_8(z, rows + 5);
    for (int i = 0; i < 8; i++) bad += z[i] != tc_hsum(rows[i + 5]);
    tc_store_sums_4(z, rows + 11);
    for (int i = 0; i < 4; i++) bad += z[i] != tc_hsum(rows[i + 11]);
  }
  if (bad) printf("transposed: %d wrong\n", bad);
  return bad;
}

static int check_lanes(void)
{
  float a[TC_VL], b[TC_VL], y[TC_VL], strided[TC_VL * 3];
  int32_t index[TC_VL];
  int bad = 0;
  float sum = 0;
  for (int l = 0; l < TC_VL; l++) { a[l] = (float)(l + 1); b[l] = (float)(TC_VL - l); index[l] = 3 * (TC_VL - 1 - l); sum += a[l]; }
  for (int i = 0; i < TC_VL * 3; i++) strided[i] = (float)i;
  bad += tc_hsum(tc_load(a)) != sum || tc_hmax(tc_load(b)) != (float)TC_VL || tc_hmin(tc_load(b)) != 1.0f;
  tc_store(y, tc_load_stride(strided, 3));
  for (int l = 0; l < TC_VL; l++) bad += y[l] != (float)(3 * l);
  tc_store(y, tc_load_even(strided + 1));
  for (int l = 0; l < TC_VL; l++) bad += y[l] != (float)(2 * l + 1);
  tc_store(y, tc_gather(strided, index));
  for (int l = 0; l < TC_VL; l++) bad += y[l] != (float)index[l];
  for (int l = 0; l < TC_VL; l++) {
    b[l] = NAN;
    bad += !isnan(tc_hmax(tc_load(b))) || !isnan(tc_hmin(tc_load(b)));
    tc_store(y, tc_max2(tc_load(a), tc_load(b)));
    bad += !isnan(y[l]);
    tc_store(y, tc_min2(tc_load(b), tc_load(a)));
    bad += !isnan(y[l]);
    tc_store(y, tc_max2(tc_load(b), tc_load(a)));
    bad += !isnan(y[l]);
    tc_store(y, tc_max(tc_load(b), tc_zero()));
    bad += !isnan(y[l]);
    tc_store(y, tc_sign(tc_load(b)));
    bad += !isnan(y[l]);
    b[l] = -2.0f;
    tc_store(y, tc_max2(tc_load(a), tc_load(b)));
    bad += y[l] != a[l];
    tc_store(y, tc_min(tc_load(a), tc_set(1.5f)));
    bad += y[l] != (l == 0 ? 1.0f : 1.5f);
    tc_store(y, tc_sign(tc_load(b)));
    bad += y[l] != -1.0f;
  }
  if (bad) printf("lanes: %d wrong\n", bad);
  return bad;
}

/* One power, in all lanes or in one among others that are plain. */
static int check_pow_of(float x, float y, double *worst)
{
  const double expected = pow((double)x, (double)y);
  int bad = 0;
  for (int all = 0; all < 2; all++) {
    float a[TC_VL], b[TC_VL], m[TC_VL];
    for (int l = 0; l < TC_VL; l++) { a[l] = l && !all ? 9.0f : x; b[l] = l && !all ? 0.5f : y; }
    tc_store(m, tc_pow(tc_load(a), tc_load(b)));
    const double error = ulp_error(m[0], expected);
    if (error > *worst) *worst = error;
    bad += error > 1.0 || (!all && TC_VL > 1 && m[TC_VL - 1] != 3.0f);
  }
  if (bad) printf("pow(%.9g, %.9g), expected %.9g\n", (double)x, (double)y, expected);
  return bad != 0;
}

/* Bases of every size; exponents that are usual, any, and those for which the result is anything from the least to the largest float. */
static int check_pow(uint32_t stride, int verbose)
{
  static const float special[] = {0.0f, -0.0f, 1.0f, -1.0f, INFINITY, -INFINITY, NAN, 1e-45f, -1e-45f, 1.17549435e-38f, 3.40282347e38f, 0.99999994f,
                                  1.00000012f, -5.3f, 2.0f, 3.0f, -3.0f, 0.5f, -0.5f, 2.2f, 0.75f, 1e9f, -1e9f, 127.99999f, 128.0f, -149.0f, -149.5f, 16777217.0f};
  const size_t n = sizeof special / sizeof *special;
  int bad = 0;
  double worst = 0;
  for (size_t i = 0; i < n * n; i++) bad += check_pow_of(special[i / n], special[i % n], &worst);
  uint64_t state = 1;
  for (uint64_t bits = 0; bits < UINT64_C(1) << 32 && bad < 4; bits += (uint64_t)stride * 30) {
    const float x = from_bits((uint32_t)bits);
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    const double log2_of_result = (double)(state >> 40) * (0x1p-24 * 280) - 151.0;
    bad += check_pow_of(x, from_bits((uint32_t)(state >> 32)), &worst);
    bad += check_pow_of(x, special[14 + state % 8], &worst);
    bad += check_pow_of(fabsf(x), (float)(log2_of_result / log2(fabs((double)x))), &worst);
  }
  if (verbose || bad) printf("TC_VL %2d  %-10s %9.3f ulp  %s\n", TC_VL, "pow", worst, bad ? "FAIL" : "ok");
  return bad;
}

int main(int argc, char **argv)
{
  const int verbose = argc > 2 && strcmp(argv[2], "-v") == 0;
  const uint32_t stride = argc > 1 ? (uint32_t)atoi(argv[1]) : 433;
  static const float special[] = {0.0f, -0.0f, 1.0f, -1.0f, INFINITY, -INFINITY, NAN, 1e-45f, -1e-45f, 1.17549435e-38f, 3.40282347e38f,
                                  -3.40282347e38f, 88.7228317f, 88.7228394f, -87.33655f, -103.972076f, -103.97208f, 0.5f, -0.5f, 1.5f, 2.5f, -2.5f, 8388607.5f, -8388609.0f, 8388608.0f,
                                  0.99999994f, 1.00000012f, -1.00000012f, 0.50000006f, 89.4159851f, 89.4159927f, -89.4159851f, 1e-4f, 1e9f, 1.00000006e9f, 12000.0f, -12000.001f};
  int failed = check_tails() != 0 || check_underflow() != 0 || check_transposed() != 0 || check_lanes() != 0 || check_neighbours() != 0 || check_mod(stride) != 0 || check_pow(stride, verbose) != 0;
  for (size_t i = 0; i < sizeof kFunctions / sizeof kFunctions[0]; i++) {
    const function *f = &kFunctions[i];
    double worst = 0, worst_absolute = 0;
    int bad = 0;
    float x[TC_VL];
    for (size_t s = 0; s < sizeof special / sizeof special[0]; s++) {
      for (int l = 0; l < TC_VL; l++) x[l] = special[s];
      bad += check(f, x, &worst, &worst_absolute, bad > 3);
    }
    for (uint64_t bits = 0; bits < UINT64_C(1) << 32; bits += (uint64_t)stride * TC_VL) {
      for (int l = 0; l < TC_VL; l++) x[l] = from_bits((uint32_t)(bits + (uint64_t)stride * (uint64_t)l));
      bad += check(f, x, &worst, &worst_absolute, bad > 3);
    }
    if (verbose || bad) printf("TC_VL %2d  %-10s %9.3f ulp  %9.2g beyond it  %s\n", TC_VL, f->name, worst, worst_absolute, bad ? "FAIL" : "ok");
    failed |= bad != 0;
  }
  if (!failed) printf("ok\n");
  return failed;
}
