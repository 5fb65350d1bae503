/* SPDX-License-Identifier: Apache-2.0 */
/* Compares every function of tc_double.h with libm in long double, on numbers of every size and sign, and with plain C. argv[1]
 * is how many numbers there are (default 2,000,000); -v prints the largest errors. */
#include "templates/text/tc_double.h"
#include <stdio.h>
#include <stdlib.h>

typedef struct {
  const char *name;
  void (*f)(const double *x, double *y);
  long double (*reference)(long double x);
  double ulp;       /* the largest error allowed, in ulp of the result */
  double absolute;  /* or this absolute error */
} function;

#define VECTOR(name, f) static void name(const double *p, double *y) { tc_store_f64(y, f(tc_load_f64(p))); }
VECTOR(v_exp, tc_dexp)
VECTOR(v_expm1, tc_dexpm1)
VECTOR(v_tanh, tc_dtanh)
VECTOR(v_sigmoid, tc_dsigmoid)
VECTOR(v_sqrt, tc_dsqrt)
VECTOR(v_abs, tc_dabs)
VECTOR(v_neg, tc_dneg)

static long double sigmoid(long double x) { return 1 / (1 + expl(-x)); }
static long double negative(long double x) { return -x; }

static const function kFunctions[] = {
  {"exp", v_exp, expl, 1.5, 0},
  {"expm1", v_expm1, expm1l, 2.0, 0},
  {"tanh", v_tanh, tanhl, 4.0, 0},
  {"sigmoid", v_sigmoid, sigmoid, 4.0, 1e-307},
  {"sqrt", v_sqrt, sqrtl, 0.5, 0},
  {"abs", v_abs, fabsl, 0, 0},
  {"neg", v_neg, negative, 0, 0},
};

static uint64_t seed = 1;
static uint64_t random_bits(void)
{
  seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
  return seed ^ (seed >> 29);
}
static double from_bits(uint64_t bits) { double x; memcpy(&x, &bits, 8); return x; }

/* |y - expected| in ulp of expected; 0 if both are the same infinity, NaN, or zero of the same sign */
static double ulp_error(double y, long double expected)
{
  if (isnan(expected)) return isnan(y) ? 0 : INFINITY;
  if (isnan(y)) return INFINITY;
  const double nearest = (double)expected;
  if (isinf(nearest) || isinf(y)) return nearest == y ? 0 : INFINITY;
  if (expected == 0) return y == 0 && !signbit(y) == !signbit(expected) ? 0 : INFINITY;
  int exponent;
  frexpl(expected, &exponent);
  return (double)(fabsl((long double)y - expected) / ldexpl(1.0L, exponent - 53 > -1074 ? exponent - 53 : -1074));
}

static int check(const function *f, const double *x, double *worst, int quiet)
{
  double y[TC_VL];
  int bad = 0;
  f->f(x, y);
  for (int l = 0; l < TC_VL; l++) {
    const long double expected = f->reference(x[l]);
    double error = ulp_error(y[l], expected);
    if (fabsl((long double)y[l] - expected) <= f->absolute) error = 0;
    if (error > *worst) *worst = error;
    if (error > f->ulp && !quiet && !bad) printf("%s(%.17g) = %.17g, expected %.19Lg\n", f->name, x[l], y[l], expected);
    bad += error > f->ulp;
  }
  return bad;
}

static int check_tails(void)
{
  int bad = 0;
  for (int n = -1; n <= TC_VL + 1; n++) {
    const int kept = n < 0 ? 0 : n > TC_VL ? TC_VL : n;
    double *exact = (double *)malloc((size_t)kept * 8 + 1), out[TC_VL + 1], lanes[TC_VL];  /* the sanitizer sees what lies beyond */
    for (int i = 0; i < kept; i++) exact[i] = i + 1;
    for (int i = 0; i <= TC_VL; i++) out[i] = -1.0;
    tc_store_f64(lanes, tc_load_f64_n(exact, n));
    for (int i = 0; i < TC_VL; i++) bad += lanes[i] != (i < kept ? i + 1 : 0);
    tc_store_f64_n(out, tc_load_f64_n(exact, n), n);
    for (int i = 0; i <= TC_VL; i++) bad += out[i] != (i < kept ? i + 1 : -1);
    tc_store_f64_n(exact, tc_load_f64_n(exact, n), n);
    tc_store_f64(lanes, tc_dsel_n(n, tc_dset(1.0), tc_dset(2.0)));
    for (int i = 0; i < TC_VL; i++) bad += lanes[i] != (i < kept ? 1.0 : 2.0);
    free(exact);
  }
  if (bad) printf("tails: %d wrong\n", bad);
  return bad;
}

static int same(double a, double b) { return (isnan(a) && isnan(b)) || a == b; }
static double larger(double a, double b) { return isnan(a) || a > b ? a : b; }
static double smaller(double a, double b) { return isnan(a) || a < b ? a : b; }

static int check_pairs(void)
{
  static const double some[] = {0.0, 1.0, -2.5, INFINITY, -INFINITY, NAN, 1e300, 4e-320};
  int bad = 0;
  for (int i = 0; i < 8; i++)
    for (int j = 0; j < 8; j++) {
      double a[TC_VL], b[TC_VL], y[TC_VL];
      for (int l = 0; l < TC_VL; l++) a[l] = some[(i + l) % 8];
      for (int l = 0; l < TC_VL; l++) b[l] = some[(j + 3 * l) % 8];
#define PAIR(f, e) tc_store_f64(y, f(tc_load_f64(a), tc_load_f64(b))); for (int l = 0; l < TC_VL; l++) bad += !same(y[l], e);
      PAIR(tc_dadd, a[l] + b[l])
      PAIR(tc_dsub, a[l] - b[l])
      PAIR(tc_dmul, a[l] * b[l])
      PAIR(tc_ddiv, a[l] / b[l])
      PAIR(tc_dmax2, isnan(b[l]) ? b[l] : larger(a[l], b[l]))
      PAIR(tc_dmin2, isnan(b[l]) ? b[l] : smaller(a[l], b[l]))
      tc_store_f64(y, tc_dmax(tc_load_f64(a), tc_dset(1.0)));
      for (int l = 0; l < TC_VL; l++) bad += !same(y[l], larger(a[l], 1.0));
      tc_store_f64(y, tc_dmin(tc_load_f64(a), tc_dset(1.0)));
      for (int l = 0; l < TC_VL; l++) bad += !same(y[l], smaller(a[l], 1.0));
      tc_store_f64(y, tc_dmuladd(tc_dset(3.0), tc_dset(5.0), tc_load_f64(b)));
      for (int l = 0; l < TC_VL; l++) bad += !same(y[l], 15.0 + b[l]);
      double most = a[0], least = a[0];
      for (int l = 1; l < TC_VL; l++) most = isnan(a[l]) ? a[l] : larger(most, a[l]);
      for (int l = 1; l < TC_VL; l++) least = isnan(a[l]) ? a[l] : smaller(least, a[l]);
      bad += !same(tc_dhmax(tc_load_f64(a)), most) + !same(tc_dhmin(tc_load_f64(a)), least);
    }
  double count[TC_VL];
  for (int l = 0; l < TC_VL; l++) count[l] = l + 1;
  bad += tc_dhsum(tc_load_f64(count)) != TC_VL * (TC_VL + 1) / 2;
  if (bad) printf("pairs: %d wrong\n", bad);
  return bad;
}

int main(int argc, char **argv)
{
  const int verbose = argc > 2 && strcmp(argv[2], "-v") == 0;
  const long numbers = argc > 1 ? atol(argv[1]) : 2000000;
  static const double special[] = {0.0, -0.0, 1.0, -1.0, INFINITY, -INFINITY, NAN, 5e-324, -5e-324, 2.2250738585072014e-308, 1.7976931348623157e308,
                                   709.782712893384, 709.78271289338409, 709.79, -708.3964185322641, -745.13321910194111, -745.13321910194122, -746.5, 0.34657359027997264,
                                   -0.34657359027997264, 19.5, 20.5, -40.5, 1e-9, -1e-9};
  int failed = check_tails() != 0 || check_pairs() != 0;
  for (size_t i = 0; i < sizeof kFunctions / sizeof kFunctions[0]; i++) {
    const function *f = &kFunctions[i];
    double worst = 0, x[TC_VL];
    int bad = 0;
    for (size_t s = 0; s < sizeof special / sizeof special[0]; s++) {
      for (int l = 0; l < TC_VL; l++) x[l] = special[s];
      bad += check(f, x, &worst, bad > 3);
    }
    for (long n = 0; n < numbers; n += TC_VL) {
      for (int l = 0; l < TC_VL; l++) {
        const double wide = from_bits(random_bits()), near = ((double)(random_bits() >> 11) * 0x1p-53 - 0.5) * 8;
        x[l] = l % 4 == 0 ? wide : l % 4 == 1 ? near : l % 4 == 2 ? near * 200 : near * 0.125;
      }
      bad += check(f, x, &worst, bad > 3);
    }
    if (verbose || bad) printf("TC_VL %2d  %-10s %9.3f ulp  %s\n", TC_VL, f->name, worst, bad ? "FAIL" : "ok");
    failed |= bad != 0;
  }
  if (!failed) printf("ok\n");
  return failed;
}
