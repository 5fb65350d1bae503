/* SPDX-License-Identifier: 0BSD -- support text of tc-emit; do not edit */
/* Functions of vectors of floats. Errors are bounds in units in the last place (ulp), above the largest found among 10^7
 * floats spread over all of them, with and without contraction to fused multiply-adds, TC_VL = 1 to 16. Zeros, infinities,
 * NaN and denormals are as in C's Annex F unless a comment says otherwise. fit_math.py of tc-emit derives the coefficients. */
#ifndef TC_MATH_H
#define TC_MATH_H
#include "tc_simd.h"
#include <math.h>

/* Any function of libm, lane by lane: TC_LANES(acosf, x), TC_LANES2(powf, x, y). */
TC_INLINE tc_vf tc_lanes(float (*f)(float), tc_vf x)
{
  TC_UNROLL for (int l = 0; l < TC_VL; l++) x = tc_put(x, l, f(tc_get(x, l)));
  return x;
}
TC_INLINE tc_vf tc_lanes2(float (*f)(float, float), tc_vf x, tc_vf y)
{
  TC_UNROLL for (int l = 0; l < TC_VL; l++) x = tc_put(x, l, f(tc_get(x, l), tc_get(y, l)));
  return x;
}
#define TC_LANES(f, x)     tc_lanes(f, x)
#define TC_LANES2(f, x, y) tc_lanes2(f, x, y)

/* Correctly rounded. Compilers know the instruction by names of their own; a header of intrinsics takes longer to read than
 * a kernel to compile. */
#if defined(__has_builtin)
#  define TC_HAS(builtin) __has_builtin(builtin)
#else
#  define TC_HAS(builtin) 1  /* gcc before version 10 */
#endif
TC_INLINE tc_vf tc_sqrt(tc_vf x)
{
#if TC_VL > 1 && defined(__clang__) && TC_HAS(__builtin_elementwise_sqrt)
  return __builtin_elementwise_sqrt(x);
#elif TC_VL == 16 && defined(__AVX512F__) && defined(__clang__) && TC_HAS(__builtin_ia32_sqrtps512)
  return __builtin_ia32_sqrtps512(x, 4);  /* 4: rounding as the machine is set */
#elif TC_VL == 16 && defined(__AVX512F__) && TC_HAS(__builtin_ia32_sqrtps512_mask)
  return __builtin_ia32_sqrtps512_mask(x, tc_zero(), -1, 4);
#elif TC_VL == 8 && defined(__AVX__) && TC_HAS(__builtin_ia32_sqrtps256)
  return __builtin_ia32_sqrtps256(x);
#elif TC_VL == 4 && defined(__SSE__) && TC_HAS(__builtin_ia32_sqrtps)
  return __builtin_ia32_sqrtps(x);
#else
  return TC_LANES(sqrtf, x);
#endif
}
TC_INLINE tc_vf tc_rsqrt(tc_vf x) { return 1.0f / tc_sqrt(x); }  /* 1.5 ulp */

/* x = n ln 2 + r, |r| <= ln 2 / 2: returns (e^r - 1 - r) / r^2 and sets r, and n as an integer. */
TC_INLINE tc_vf tc_exp_reduce(tc_vf x, tc_vf *r, tc_vu *n)
{
  const tc_vf shifted = x * 1.44269504f + 12582912.0f;  /* 1.5 * 2^23: n is in the low bits */
  const tc_vf whole = shifted - 12582912.0f;
  const tc_vf t = x - whole * 0.693145752f - whole * 1.42860677e-6f;
  *n = (tc_vu)tc_bits(shifted) - 0x4B400000u;
  *r = t;
  return (((t * 0.001381448f + 0.00836877991f) * t + 0.0416683927f) * t + 0.166665196f) * t + 0.49999994f;
}
/* 2^n for -126 <= n <= 127 */
TC_INLINE tc_vf tc_exp2_int(tc_vu n) { return tc_from_bits((tc_vi)((n + 127u) << 23)); }

/* e^x; 1 ulp, denormal results included. What is no more than half of the least float is 0 without arithmetic: that would
 * underflow, for which processors take a hundred cycles and more, and masked attention has many of these. */
TC_INLINE tc_vf tc_exp(tc_vf x)
{
  tc_vf r;
  tc_vu n;
#if TC_VL == 16 && defined(__AVX512F__) && TC_HAS(__builtin_ia32_scalefps512_mask)
  const tc_vf q = tc_exp_reduce(tc_min(x, tc_set(89.0f)), &r, &n);
  /* times 2^n by one instruction, with n as a float, in the lanes that are not 0; 4: rounding as the machine is set */
  const tc_vf power = tc_from_bits((tc_vi)(n + 0x4B400000u)) - 12582912.0f;
#  if defined(__clang__)
  const unsigned short some = __builtin_ia32_cmpps512_mask(x, tc_set(-103.972084f), 0x15, 0xffff, 4);  /* not less */
#  else
  const short some = (short)__builtin_ia32_cmpps512_mask(x, tc_set(-103.972084f), 0x15, 0xffff, 4);  /* not less */
#  endif
  return __builtin_ia32_scalefps512_mask(q * (r * r) + r + 1.0f, power, tc_zero(), some, 4);
#else
  const tc_vm none = tc_lt(x, tc_set(-103.972084f));
  const tc_vf q = tc_exp_reduce(tc_min(tc_sel(none, tc_zero(), x), tc_set(89.0f)), &r, &n);
  const tc_vu half = ((n + 256u) >> 1) - 128u;  /* 2^n in two factors, since n goes from -150 to 128 */
  return tc_sel(none, tc_zero(), (q * (r * r) + r + 1.0f) * tc_exp2_int(half) * tc_exp2_int(n - half));
#endif
}

/* e^x - 1; 2 ulp */
TC_INLINE tc_vf tc_expm1(tc_vf x)
{
  tc_vf r;
  tc_vu n;
  const tc_vf q = tc_exp_reduce(tc_min(tc_max(x, tc_set(-20.0f)), tc_set(89.0f)), &r, &n);
  const tc_vf scale = tc_exp2_int(n - 1u);  /* half of 2^n, which may be 2^128 */
  const tc_vf y = 2.0f * ((q * (r * r) + r) * scale + (scale - 0.5f));
  return tc_sel(tc_eq(x, tc_zero()), x, y);  /* keeps -0 */
}

/* ln x; 1 ulp */
TC_INLINE tc_vf tc_log(tc_vf x)
{
  const tc_vm tiny = tc_lt(x, tc_set(1.17549435e-38f));
  const tc_vf normal = tc_sel(tiny, x * 8388608.0f, x);
  /* normal = 2^e (1 + f), sqrt(1/2) <= 1 + f < sqrt(2) */
  const tc_vi above = (tc_vi)((tc_vu)tc_bits(normal) - 0x3F3504F3u);  /* the bits of sqrt(1/2) */
  const tc_vf f = tc_from_bits((above & 0x007FFFFF) + 0x3F3504F3) - 1.0f;
  const tc_vf whole = tc_from_bits((above >> 23) + 0x4B400000) - 12582912.0f;  /* the exponent, as a float */
  const tc_vf e = whole - tc_sel(tiny, tc_set(23.0f), tc_zero());
  tc_vf p = f * 0.0674689785f - 0.116757408f;
  p = p * f + 0.11888095f;
  p = p * f - 0.124055721f;
  p = p * f + 0.142195597f;
  p = p * f - 0.166679963f;
  p = p * f + 0.200021178f;
  p = p * f - 0.250000089f;
  p = p * f + 0.333333135f;
  p = p * f - 0.5f;
  const tc_vf y = e * 0.693145752f + (f + (p * (f * f) + e * 1.42860677e-6f));
  const tc_vf huge_or_nan = tc_sel(tc_lt(x, tc_zero()), tc_set(NAN), x);  /* inf and NaN stay */
  const tc_vm finite = tc_and(tc_lt(tc_zero(), x), tc_lt(x, tc_set(INFINITY)));
  return tc_sel(finite, y, tc_sel(tc_eq(x, tc_zero()), tc_set(-INFINITY), huge_or_nan));
}

/* ln(1 + x); 2 ulp */
TC_INLINE tc_vf tc_log1p(tc_vf x)
{
  const tc_vf u = 1.0f + x;
  const tc_vf lost = (x - (u - 1.0f)) / u;  /* what rounding u lost, over u */
  const tc_vf y = tc_log(u);
  const tc_vm plain = tc_and(tc_lt(tc_zero(), u), tc_lt(u, tc_set(INFINITY)));
  return tc_sel(tc_eq(x, tc_zero()), x, tc_sel(plain, y + lost, y));
}

/* tanh x; 6 ulp. From 9.1 on the quotient exceeds 1. */
TC_INLINE tc_vf tc_tanh(tc_vf x)
{
  const tc_vf a = tc_min(tc_max(x, tc_set(-9.5f)), tc_set(9.5f)), t = a * a;
  const tc_vf p = (((t * 1.33186537e-8f + 2.05831693e-5f) * t + 0.00349401566f) * t + 0.13379702f) * t + 1.0f;
  const tc_vf q = (((t * 7.76184436e-7f + 0.000328306167f) * t + 0.0258710012f) * t + 0.467130184f) * t + 1.0f;
  return tc_min(tc_max(a * p / q, tc_set(-1.0f)), tc_set(1.0f));
}

/* erf x; 7 ulp. From 4 on the quotient exceeds 1. */
TC_INLINE tc_vf tc_erf(tc_vf x)
{
  const tc_vf a = tc_min(tc_max(x, tc_set(-4.05f)), tc_set(4.05f)), t = a * a;
  tc_vf p = t * 2.04204412e-6f + 0.000284800277f;
  p = (((p * t + 0.00377922272f) * t + 0.0527890883f) * t + 0.190774798f) * t + 1.12837911f;
  tc_vf q = t * 3.80044039e-5f + 0.00116511981f;
  q = (((q * t + 0.0149966599f) * t + 0.114253789f) * t + 0.502402484f) * t + 1.0f;
  return tc_min(tc_max(a * p / q, tc_set(-1.0f)), tc_set(1.0f));
}

/* 1 / (1 + e^-x); 2.5 ulp, but 0 below -88.72 */
TC_INLINE tc_vf tc_sigmoid(tc_vf x) { return 1.0f / (1.0f + tc_exp(-x)); }
/* x / (1 + e^-x); 3 ulp, but -0 below -88.72 and NaN at -infinity */
TC_INLINE tc_vf tc_silu(tc_vf x) { return x / (1.0f + tc_exp(-x)); }
/* ln(1 + e^x), without overflow; 2 ulp */
TC_INLINE tc_vf tc_softplus(tc_vf x) { return tc_max(x, tc_zero()) + tc_log1p(tc_exp(-tc_abs(x))); }
/* x (1 + erf(x / sqrt 2)) / 2; absolute error below 1.5e-6 for x < 0, 8 ulp else */
TC_INLINE tc_vf tc_gelu(tc_vf x) { return 0.5f * x * (1.0f + tc_erf(x * 0.707106781f)); }
/* x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) / 2; absolute error below 1.5e-6 for x < 0, 8 ulp else */
TC_INLINE tc_vf tc_gelu_tanh(tc_vf x) { return 0.5f * x * (1.0f + tc_tanh(0.797884561f * (x + 0.044715f * x * x * x))); }

/* sin and cos share this: x = n pi/2 + r; returns sin(r) and cos(r) swapped and negated as n says. */
TC_INLINE tc_vf tc_sin_quadrant(tc_vf x, uint32_t add)
{
  const tc_vf shifted = x * 0.636619772f + 12582912.0f;
  const tc_vf n = shifted - 12582912.0f;
  const tc_vu quadrant = (tc_vu)tc_bits(shifted) + add;
  const tc_vf r = x - n * 1.5703125f - n * 0.000483751297f - n * 7.54953362e-8f - n * 2.56334407e-12f, t = r * r;
  const tc_vf s = ((t * -0.00019514632f + 0.00833215564f) * t - 0.166666552f) * t * r + r;
  const tc_vf c = ((t * 2.44324401e-5f - 0.00138873106f) * t + 0.0416666456f) * (t * t) + (1.0f - 0.5f * t);
  const tc_vm odd = (tc_vi)(0u - (quadrant & 1u));
  return tc_from_bits(tc_bits(tc_sel(odd, c, s)) ^ (tc_vi)((quadrant & 2u) << 30));
}
/* 2.5 ulp for |x| <= 12000; libm where |x| is larger. What a lane becomes does not depend on the others. */
TC_INLINE tc_vf tc_sin(tc_vf x)
{
  const tc_vf usual = tc_sel(tc_eq(x, tc_zero()), x, tc_sin_quadrant(x, 0u));
  const tc_vm large = tc_not(tc_le(tc_abs(x), tc_set(12000.0f)));
  return tc_any(large) ? tc_sel(large, TC_LANES(sinf, x), usual) : usual;
}
TC_INLINE tc_vf tc_cos(tc_vf x)
{
  const tc_vf usual = tc_sin_quadrant(x, 1u);
  const tc_vm large = tc_not(tc_le(tc_abs(x), tc_set(12000.0f)));
  return tc_any(large) ? tc_sel(large, TC_LANES(cosf, x), usual) : usual;
}

/* The rest is libm, lane by lane. */
TC_INLINE tc_vf tc_tan(tc_vf x) { return TC_LANES(tanf, x); }
TC_INLINE tc_vf tc_asin(tc_vf x) { return TC_LANES(asinf, x); }
TC_INLINE tc_vf tc_acos(tc_vf x) { return TC_LANES(acosf, x); }
TC_INLINE tc_vf tc_atan(tc_vf x) { return TC_LANES(atanf, x); }
TC_INLINE tc_vf tc_sinh(tc_vf x) { return TC_LANES(sinhf, x); }
TC_INLINE tc_vf tc_cosh(tc_vf x) { return TC_LANES(coshf, x); }
TC_INLINE tc_vf tc_asinh(tc_vf x) { return TC_LANES(asinhf, x); }
TC_INLINE tc_vf tc_acosh(tc_vf x) { return TC_LANES(acoshf, x); }
TC_INLINE tc_vf tc_atanh(tc_vf x) { return TC_LANES(atanhf, x); }
TC_INLINE tc_vf tc_pow(tc_vf x, tc_vf y) { return TC_LANES2(powf, x, y); }
TC_INLINE tc_vf tc_atan2(tc_vf y, tc_vf x) { return TC_LANES2(atan2f, y, x); }
TC_INLINE tc_vf tc_mod(tc_vf x, tc_vf y) { return TC_LANES2(fmodf, x, y); }  /* sign of x */

#endif
