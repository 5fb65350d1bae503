/* SPDX-License-Identifier: 0BSD -- support text of tc-emit; do not edit */
/* Vectors of doubles. A tc_vd has TC_VL lanes, as every vector; it fills two registers, of which `lo` has the first half.
 *
 *   tc_load_f64, tc_store_f64       lanes from and to memory; with _n, the first n of them (see tc_tail.h), the others being 0
 *   tc_dset                         one number in all lanes
 *   tc_dadd, tc_dsub, tc_dmul, tc_ddiv, tc_dneg, tc_dabs, tc_dsqrt, tc_dmuladd (a * b + c, as the compiler contracts it)
 *   tc_dmax2, tc_dmin2              NaN in either stays NaN; tc_dmax, tc_dmin: the bound is not NaN
 *   tc_dexp, tc_dexpm1, tc_dtanh, tc_dsigmoid      within 2 ulp (tanh and sigmoid 4; sigmoid below 1e-307 is 0), by polynomials
 *   tc_dhsum, tc_dhmax, tc_dhmin    over the lanes, as a tree */
#ifndef TC_DOUBLE_H
#define TC_DOUBLE_H
#include "tc_simd.h"
#include <math.h>

#if TC_VL > 1

typedef double  tc_hd __attribute__((vector_size(4 * TC_VL)));  /* half of the lanes: a register */
typedef int64_t tc_hl __attribute__((vector_size(4 * TC_VL)));
typedef uint64_t tc_hu __attribute__((vector_size(4 * TC_VL)));
typedef double  tc_hd_unaligned __attribute__((vector_size(4 * TC_VL), aligned(8), may_alias));
typedef struct { tc_hd lo, hi; } tc_vd;

TC_INLINE tc_hd tc_hd_set(double x) { const tc_hd zero = {0}; return x - zero; }
TC_INLINE tc_hd tc_hd_from_bits(tc_hl i) { return (tc_hd)i; }
TC_INLINE tc_hl tc_hd_bits(tc_hd x) { return (tc_hl)x; }
TC_INLINE tc_hd tc_hd_sel(tc_hl m, tc_hd a, tc_hd b) { return (tc_hd)(((tc_hl)a & m) | ((tc_hl)b & ~m)); }

#  if TC_VL == 16 && defined(__AVX512F__) && defined(__clang__)
TC_INLINE tc_hd tc_hd_max(tc_hd x, tc_hd bound) { return __builtin_ia32_maxpd512(bound, x, 4); }  /* 4: no matter of rounding */
TC_INLINE tc_hd tc_hd_min(tc_hd x, tc_hd bound) { return __builtin_ia32_minpd512(bound, x, 4); }
#  elif TC_VL == 16 && defined(__AVX512F__)
TC_INLINE tc_hd tc_hd_max(tc_hd x, tc_hd bound) { return __builtin_ia32_maxpd512_mask(bound, x, x, 0xff, 4); }
TC_INLINE tc_hd tc_hd_min(tc_hd x, tc_hd bound) { return __builtin_ia32_minpd512_mask(bound, x, x, 0xff, 4); }
#  elif TC_VL == 8 && defined(__AVX__)
TC_INLINE tc_hd tc_hd_max(tc_hd x, tc_hd bound) { return __builtin_ia32_maxpd256(bound, x); }
TC_INLINE tc_hd tc_hd_min(tc_hd x, tc_hd bound) { return __builtin_ia32_minpd256(bound, x); }
#  elif TC_VL == 4 && defined(__SSE2__)
TC_INLINE tc_hd tc_hd_max(tc_hd x, tc_hd bound) { return __builtin_ia32_maxpd(bound, x); }
TC_INLINE tc_hd tc_hd_min(tc_hd x, tc_hd bound) { return __builtin_ia32_minpd(bound, x); }
#  else
TC_INLINE tc_hd tc_hd_max(tc_hd x, tc_hd bound) { return tc_hd_sel(x < bound, bound, x); }
TC_INLINE tc_hd tc_hd_min(tc_hd x, tc_hd bound) { return tc_hd_sel(bound < x, bound, x); }
#  endif
TC_INLINE tc_hd tc_hd_max2(tc_hd a, tc_hd b) { return tc_hd_sel(b != b, b, tc_hd_max(a, b)); }
TC_INLINE tc_hd tc_hd_min2(tc_hd a, tc_hd b) { return tc_hd_sel(b != b, b, tc_hd_min(a, b)); }
TC_INLINE tc_hd tc_hd_abs(tc_hd x) { return (tc_hd)((tc_hl)x & INT64_MAX); }
TC_INLINE tc_hd tc_hd_copysign(tc_hd x, tc_hd s) { return (tc_hd)(((tc_hl)x & INT64_MAX) | ((tc_hl)s & INT64_MIN)); }
TC_INLINE tc_hd tc_hd_sqrt(tc_hd x)
{
#  if TC_VL == 16 && defined(__AVX512F__) && defined(__clang__) && TC_HAS(__builtin_ia32_sqrtpd512)
  return __builtin_ia32_sqrtpd512(x, 4);  /* 4: rounding as the machine is set */
#  elif TC_VL == 16 && defined(__AVX512F__) && TC_HAS(__builtin_ia32_sqrtpd512_mask)
  return __builtin_ia32_sqrtpd512_mask(x, x, -1, 4);
#  elif TC_VL == 8 && defined(__AVX__)
  return __builtin_ia32_sqrtpd256(x);
#  elif TC_VL == 4 && defined(__SSE2__)
  return __builtin_ia32_sqrtpd(x);
#  else
  TC_UNROLL for (int l = 0; l < TC_VL / 2; l++) x[l] = sqrt(x[l]);
  return x;
#  endif
}

TC_INLINE tc_vd  tc_dpair(tc_hd lo, tc_hd hi) { tc_vd v; v.lo = lo; v.hi = hi; return v; }
TC_INLINE tc_vd  tc_load_f64(const double *p) { return tc_dpair(*(const tc_hd_unaligned *)p, *(const tc_hd_unaligned *)(p + TC_VL / 2)); }
TC_INLINE void   tc_store_f64(double *p, tc_vd v) { *(tc_hd_unaligned *)p = v.lo; *(tc_hd_unaligned *)(p + TC_VL / 2) = v.hi; }
TC_INLINE tc_vd  tc_dset(double x) { return tc_dpair(tc_hd_set(x), tc_hd_set(x)); }
TC_INLINE double tc_dget(tc_vd v, int lane) { return lane < TC_VL / 2 ? v.lo[lane] : v.hi[lane - TC_VL / 2]; }
TC_INLINE tc_vd  tc_dput(tc_vd v, int lane, double x)
{
  if (lane < TC_VL / 2)
    v.lo[lane] = x;
  else
    v.hi[lane - TC_VL / 2] = x;
  return v;
}

/* A function of halves for both of them. */
#  define TC_DOUBLE_1(name, of_half) TC_INLINE tc_vd name(tc_vd x) { return tc_dpair(of_half(x.lo), of_half(x.hi)); }
#  define TC_DOUBLE_2(name, of_half) TC_INLINE tc_vd name(tc_vd a, tc_vd b) { return tc_dpair(of_half(a.lo, b.lo), of_half(a.hi, b.hi)); }

#else

typedef double  tc_hd;
typedef int64_t tc_hl;
typedef uint64_t tc_hu;
typedef double  tc_vd;

TC_INLINE tc_hd tc_hd_set(double x) { return x; }
TC_INLINE tc_hd tc_hd_from_bits(tc_hl i) { tc_hd x; memcpy(&x, &i, 8); return x; }
TC_INLINE tc_hl tc_hd_bits(tc_hd x) { tc_hl i; memcpy(&i, &x, 8); return i; }
TC_INLINE tc_hd tc_hd_max(tc_hd x, tc_hd bound) { return x < bound ? bound : x; }
TC_INLINE tc_hd tc_hd_min(tc_hd x, tc_hd bound) { return bound < x ? bound : x; }
TC_INLINE tc_hd tc_hd_max2(tc_hd a, tc_hd b) { return b != b ? b : tc_hd_max(a, b); }
TC_INLINE tc_hd tc_hd_min2(tc_hd a, tc_hd b) { return b != b ? b : tc_hd_min(a, b); }
TC_INLINE tc_hd tc_hd_abs(tc_hd x) { return fabs(x); }
TC_INLINE tc_hd tc_hd_copysign(tc_hd x, tc_hd s) { return tc_hd_from_bits((tc_hd_bits(x) & INT64_MAX) | (tc_hd_bits(s) & INT64_MIN)); }
TC_INLINE tc_hd tc_hd_sqrt(tc_hd x) { return sqrt(x); }

TC_INLINE tc_vd  tc_load_f64(const double *p) { return *p; }
TC_INLINE void   tc_store_f64(double *p, tc_vd v) { *p = v; }
TC_INLINE tc_vd  tc_dset(double x) { return x; }
TC_INLINE double tc_dget(tc_vd v, int lane) { (void)lane; return v; }
TC_INLINE tc_vd  tc_dput(tc_vd v, int lane, double x) { (void)v; (void)lane; return x; }

#  define TC_DOUBLE_1(name, of_half) TC_INLINE tc_vd name(tc_vd x) { return of_half(x); }
#  define TC_DOUBLE_2(name, of_half) TC_INLINE tc_vd name(tc_vd a, tc_vd b) { return of_half(a, b); }

#endif

TC_INLINE tc_hd tc_hd_add(tc_hd a, tc_hd b) { return a + b; }
TC_INLINE tc_hd tc_hd_sub(tc_hd a, tc_hd b) { return a - b; }
TC_INLINE tc_hd tc_hd_mul(tc_hd a, tc_hd b) { return a * b; }
TC_INLINE tc_hd tc_hd_div(tc_hd a, tc_hd b) { return a / b; }
TC_INLINE tc_hd tc_hd_neg(tc_hd x) { return -x; }
TC_INLINE tc_hd tc_hd_muladd(tc_hd a, tc_hd b, tc_hd c) { return a * b + c; }

/* e^r - 1 for |r| <= log(2) / 2: the series, whose first term left out is below 2^-57 of the result. */
TC_INLINE tc_hd tc_hd_small_expm1(tc_hd r)
{
  static const double k[] = {1.0 / 479001600.0, 1.0 / 39916800.0, 1.0 / 3628800.0, 1.0 / 362880.0, 1.0 / 40320.0, 1.0 / 5040.0,
                             1.0 / 720.0, 1.0 / 120.0, 1.0 / 24.0, 1.0 / 6.0, 0.5};
  tc_hd p = tc_hd_set(1.0 / 6227020800.0);
  TC_UNROLL for (int i = 0; i < 11; i++) p = p * r + k[i];
  return r * r * p + r;
}
/* x = n * log(2) + r. Adding 1.5 * 2^52 rounds to an integer, which then stands in the low bits. */
TC_INLINE tc_hd tc_hd_reduce(tc_hd x, tc_hl *n)
{
  const tc_hd shifted = x * 1.4426950408889634074 + 6755399441055744.0, whole = shifted - 6755399441055744.0;
  *n = tc_hd_bits(shifted) - tc_hd_bits(tc_hd_set(6755399441055744.0));
  return x - whole * 0.693147180369123816490 - whole * 1.90821492927058770002e-10;
}
TC_INLINE tc_hd tc_hd_pow2(tc_hl n) { return tc_hd_from_bits((tc_hl)((tc_hu)(n + 1023) << 52)); }  /* -1022 <= n <= 1023 */
TC_INLINE tc_hd tc_hd_exp(tc_hd x)
{
  tc_hl n;
  const tc_hd r = tc_hd_reduce(tc_hd_min(tc_hd_max(x, tc_hd_set(-746.0)), tc_hd_set(710.0)), &n);
  const tc_hl half = n >> 1;  /* 2^n in two factors, which also reaches numbers that are not normal */
  return (tc_hd_small_expm1(r) + 1.0) * tc_hd_pow2(half) * tc_hd_pow2(n - half);
}
TC_INLINE tc_hd tc_hd_expm1(tc_hd x)
{
  tc_hl n;
  const tc_hd r = tc_hd_reduce(tc_hd_min(tc_hd_max(x, tc_hd_set(-40.0)), tc_hd_set(710.0)), &n), s = tc_hd_pow2(n - 1);
  return tc_hd_copysign((tc_hd_small_expm1(r) * s + (s - 0.5)) * 2.0, x);
}
TC_INLINE tc_hd tc_hd_tanh(tc_hd x)
{
  const tc_hd e = tc_hd_expm1(tc_hd_min(tc_hd_abs(x), tc_hd_set(20.0)) * 2.0);
  return tc_hd_copysign(e / (e + 2.0), x);
}
TC_INLINE tc_hd tc_hd_sigmoid(tc_hd x) { return 1.0 / (1.0 + tc_hd_exp(-x)); }

TC_DOUBLE_2(tc_dadd, tc_hd_add)
TC_DOUBLE_2(tc_dsub, tc_hd_sub)
TC_DOUBLE_2(tc_dmul, tc_hd_mul)
TC_DOUBLE_2(tc_ddiv, tc_hd_div)
TC_DOUBLE_2(tc_dmax, tc_hd_max)
TC_DOUBLE_2(tc_dmin, tc_hd_min)
TC_DOUBLE_2(tc_dmax2, tc_hd_max2)
TC_DOUBLE_2(tc_dmin2, tc_hd_min2)
TC_DOUBLE_1(tc_dneg, tc_hd_neg)
TC_DOUBLE_1(tc_dabs, tc_hd_abs)
TC_DOUBLE_1(tc_dsqrt, tc_hd_sqrt)
TC_DOUBLE_1(tc_dexp, tc_hd_exp)
TC_DOUBLE_1(tc_dexpm1, tc_hd_expm1)
TC_DOUBLE_1(tc_dtanh, tc_hd_tanh)
TC_DOUBLE_1(tc_dsigmoid, tc_hd_sigmoid)
#if TC_VL > 1
TC_INLINE tc_vd tc_dmuladd(tc_vd a, tc_vd b, tc_vd c) { return tc_dpair(tc_hd_muladd(a.lo, b.lo, c.lo), tc_hd_muladd(a.hi, b.hi, c.hi)); }
#else
TC_INLINE tc_vd tc_dmuladd(tc_vd a, tc_vd b, tc_vd c) { return tc_hd_muladd(a, b, c); }
#endif

/* --- the first n lanes (n <= 0: none; n >= TC_VL: all) */
TC_INLINE tc_vd tc_load_f64_n(const double *p, int n)
{
  tc_vd v = tc_dset(0.0);
  if (n >= TC_VL) return tc_load_f64(p);
  TC_UNROLL for (int l = 0; l < TC_VL; l++)
    if (l < n) v = tc_dput(v, l, p[l]);
  return v;
}
TC_INLINE void tc_store_f64_n(double *p, tc_vd v, int n)
{
  if (n >= TC_VL) {
    tc_store_f64(p, v);
    return;
  }
  TC_UNROLL for (int l = 0; l < TC_VL; l++)
    if (l < n) p[l] = tc_dget(v, l);
}
TC_INLINE tc_vd tc_dsel_n(int n, tc_vd a, tc_vd b)  /* the first n lanes of a, the others of b */
{
  TC_UNROLL for (int l = 0; l < TC_VL; l++)
    if (l < n) b = tc_dput(b, l, tc_dget(a, l));
  return b;
}

/* Lane l meets lane l + TC_VL / 2, then l + TC_VL / 4, ... */
#if TC_VL > 1
#  define TC_DOUBLE_OVER_LANES(name, of_two, of_halves)                             \
    TC_INLINE double name(tc_vd v)                                                  \
    {                                                                               \
      double     t[TC_VL / 2];                                                      \
      const tc_hd h = of_halves(v.lo, v.hi);                                        \
      memcpy(t, &h, sizeof t);                                                      \
      TC_UNROLL for (int w = TC_VL / 4; w > 0; w /= 2)                              \
        TC_UNROLL for (int i = 0; i < w; i++) t[i] = of_two(t[i], t[i + w]);        \
      return t[0];                                                                  \
    }
TC_INLINE double tc_double_sum(double a, double b) { return a + b; }
TC_INLINE double tc_double_max(double a, double b) { return b > a || b != b ? b : a; }
TC_INLINE double tc_double_min(double a, double b) { return b < a || b != b ? b : a; }
TC_DOUBLE_OVER_LANES(tc_dhsum, tc_double_sum, tc_hd_add)
TC_DOUBLE_OVER_LANES(tc_dhmax, tc_double_max, tc_hd_max2)
TC_DOUBLE_OVER_LANES(tc_dhmin, tc_double_min, tc_hd_min2)
#else
TC_INLINE double tc_dhsum(tc_vd v) { return v; }
TC_INLINE double tc_dhmax(tc_vd v) { return v; }
TC_INLINE double tc_dhmin(tc_vd v) { return v; }
#endif

#endif
