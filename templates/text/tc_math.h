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

/* sin, cos and tan share this: x = n pi/2 + r, |x| <= 12000; sets sin(r) and cos(r) and returns n, right in its low bits. */
TC_INLINE tc_vu tc_quarters(tc_vf x, tc_vf *sin_r, tc_vf *cos_r)
{
  const tc_vf shifted = x * 0.636619772f + 12582912.0f;
  const tc_vf n = shifted - 12582912.0f;
  const tc_vf r = x - n * 1.5703125f - n * 0.000483751297f - n * 7.54953362e-8f - n * 2.56334407e-12f, t = r * r;
  *sin_r = ((t * -0.00019514632f + 0.00833215564f) * t - 0.166666552f) * t * r + r;
  *cos_r = ((t * 2.44324401e-5f - 0.00138873106f) * t + 0.0416666456f) * (t * t) + (1.0f - 0.5f * t);
  return (tc_vu)tc_bits(shifted);
}
TC_INLINE tc_vm tc_is_odd(tc_vu n) { return (tc_vi)(0u - (n & 1u)); }
TC_INLINE tc_vf tc_sin_quadrant(tc_vf x, uint32_t add)
{
  tc_vf s, c;
  const tc_vu quadrant = tc_quarters(x, &s, &c) + add;
  return tc_from_bits(tc_bits(tc_sel(tc_is_odd(quadrant), c, s)) ^ (tc_vi)((quadrant & 2u) << 30));
}
/* y for |x| <= 12000, libm's function where |x| is larger. What a lane becomes does not depend on the others. */
TC_INLINE tc_vf tc_unless_large(tc_vf x, tc_vf y, float (*function)(float))
{
  const tc_vm large = tc_not(tc_le(tc_abs(x), tc_set(12000.0f)));
  return tc_any(large) ? tc_sel(large, TC_LANES(function, x), y) : y;
}
/* sin x and cos x 2.5 ulp, tan x 4 ulp */
TC_INLINE tc_vf tc_sin(tc_vf x) { return tc_unless_large(x, tc_sel(tc_eq(x, tc_zero()), x, tc_sin_quadrant(x, 0u)), sinf); }
TC_INLINE tc_vf tc_cos(tc_vf x) { return tc_unless_large(x, tc_sin_quadrant(x, 1u), cosf); }
TC_INLINE tc_vf tc_tan(tc_vf x)
{
  tc_vf s, c;
  const tc_vm odd = tc_is_odd(tc_quarters(x, &s, &c));
  const tc_vf y = tc_sel(odd, -c, s) / tc_sel(odd, s, c);
  return tc_unless_large(x, tc_sel(tc_eq(x, tc_zero()), x, y), tanf);
}

/* Functions of angles: pi/2 and pi are rounded up to floats, and the rest is taken off. */
TC_INLINE tc_vf tc_below_half_pi(tc_vf x) { return 1.57079637f - (x + 4.37113883e-8f); }
TC_INLINE tc_vf tc_below_pi(tc_vf x) { return 3.14159274f - (x + 8.74227766e-8f); }

/* atan x; 2 ulp. Above 1 it is pi/2 - atan(1 / x). */
TC_INLINE tc_vf tc_atan(tc_vf x)
{
  const tc_vf a = tc_abs(x), one = tc_set(1.0f), u = tc_min(a, one) / tc_max(a, one), t = u * u;
  tc_vf p = t * -0.00179362728f + 0.0109146293f;
  p = p * t - 0.0311778896f;
  p = p * t + 0.0579576343f;
  p = p * t - 0.0840345249f;
  p = p * t + 0.109521866f;
  p = p * t - 0.142642424f;
  p = p * t + 0.199985489f;
  p = p * t - 0.333332986f;
  const tc_vf y = p * t * u + u;
  return tc_copysign(tc_sel(tc_lt(one, a), tc_below_half_pi(y), y), x);
}

/* For a = |x| up to 1/2, asin a. Above it is pi/2 - 2 asin(sqrt((1 - a) / 2)), and this is the second term. */
TC_INLINE tc_vf tc_asin_term(tc_vf a, tc_vm above)
{
  const tc_vf t = tc_sel(above, 0.5f - 0.5f * a, a * a), u = tc_sel(above, tc_sqrt(t), a);
  const tc_vf p = (((t * 0.0421663709f + 0.0241794717f) * t + 0.0454703867f) * t + 0.0749529749f) * t + 0.166667521f;
  const tc_vf y = p * t * u + u;
  return tc_sel(above, y + y, y);
}
/* asin x; 2.5 ulp */
TC_INLINE tc_vf tc_asin(tc_vf x)
{
  const tc_vf a = tc_abs(x);
  const tc_vm above = tc_lt(tc_set(0.5f), a);
  const tc_vf y = tc_asin_term(a, above);
  return tc_copysign(tc_sel(above, tc_below_half_pi(y), y), x);
}
/* acos x; 2 ulp */
TC_INLINE tc_vf tc_acos(tc_vf x)
{
  const tc_vf a = tc_abs(x);
  const tc_vm above = tc_lt(tc_set(0.5f), a);
  const tc_vf y = tc_asin_term(a, above), outer = tc_sel(tc_lt(x, tc_zero()), tc_below_pi(y), y);
  return tc_sel(above, outer, tc_below_half_pi(tc_copysign(y, x)));
}

/* sinh x = (e + e / (e + 1)) / 2 with e = expm1 |x|, of which this takes a quarter, as e overflows before sinh does; 3 ulp */
TC_INLINE tc_vf tc_sinh(tc_vf x)
{
  tc_vf r;
  tc_vu n;
  const tc_vf a = tc_abs(x), q = tc_exp_reduce(tc_min(a, tc_set(89.5f)), &r, &n), scale = tc_exp2_int(n - 2u);
  const tc_vf e = (q * (r * r) + r) * scale + (scale - 0.25f);
  return tc_sel(tc_lt(a, tc_set(1e-4f)), x, tc_copysign(2.0f * (e + e / (4.0f * e + 1.0f)), x));
}
/* cosh x; 2 ulp. Of e^|x|, too, this takes a quarter. */
TC_INLINE tc_vf tc_cosh(tc_vf x)
{
  tc_vf r;
  tc_vu n;
  const tc_vf q = tc_exp_reduce(tc_min(tc_abs(x), tc_set(89.5f)), &r, &n), e = (q * (r * r) + r + 1.0f) * tc_exp2_int(n - 2u);
  return 2.0f * (e + 0.0625f / e);
}

/* asinh x = log1p(a + a^2 / (1 + sqrt(1 + a^2))) with a = |x|; 3 ulp. Above 1e9 this is ln(2 a). */
TC_INLINE tc_vf tc_asinh(tc_vf x)
{
  const tc_vf a = tc_abs(x), s = a * a;
  const tc_vm large = tc_lt(tc_set(1e9f), a);
  const tc_vf y = tc_log1p(tc_sel(large, a, a + s / (1.0f + tc_sqrt(1.0f + s))));
  return tc_copysign(tc_sel(large, y + 0.693147181f, y), x);
}
/* acosh x = log1p(t + sqrt(2 t + t^2)) with t = x - 1; 3 ulp. Above 1e9 this is ln(2 x). */
TC_INLINE tc_vf tc_acosh(tc_vf x)
{
  const tc_vf t = x - 1.0f;
  const tc_vm large = tc_lt(tc_set(1e9f), x);
  const tc_vf y = tc_log1p(tc_sel(large, x, t + tc_sqrt(t * (t + 2.0f))));
  return tc_sel(tc_lt(x, tc_set(1.0f)), tc_set(NAN), tc_sel(large, y + 0.693147181f, y));
}
/* atanh x = log1p(2 a / (1 - a)) / 2 with a = |x|; 3 ulp */
TC_INLINE tc_vf tc_atanh(tc_vf x)
{
  const tc_vf a = tc_abs(x);
  return tc_copysign(0.5f * tc_log1p((a + a) / (1.0f - a)), x);
}

/* Half a vector of floats, which becomes a vector of doubles. */
#if TC_VL > 1
typedef float    tc_half_f __attribute__((vector_size(2 * TC_VL)));
typedef int32_t  tc_half_i __attribute__((vector_size(2 * TC_VL)));
typedef double   tc_half_d __attribute__((vector_size(4 * TC_VL)));
typedef uint64_t tc_half_u __attribute__((vector_size(4 * TC_VL)));
TC_INLINE tc_vf tc_by_halves(tc_half_f (*f)(tc_half_f, tc_half_f), tc_vf x, tc_vf y)
{
  tc_half_f a[2], b[2];
  memcpy(a, &x, sizeof x);
  memcpy(b, &y, sizeof y);
  TC_UNROLL for (int i = 0; i < 2; i++) a[i] = f(a[i], b[i]);
  memcpy(&x, a, sizeof x);
  return x;
}
#endif

/* x - n y for doubles, n being x / y cut to an integer: no error where |x / y| < 2^28. Products of 24 and 28 bits are doubles, and
 * a quotient that is no integer is too far from the next one to be rounded to it. */
#if TC_VL > 1
TC_INLINE tc_half_f tc_mod_half(tc_half_f x, tc_half_f y)
{
  const tc_half_d a = __builtin_convertvector(x, tc_half_d), b = __builtin_convertvector(y, tc_half_d);
  const tc_half_d n = __builtin_convertvector(__builtin_convertvector(a / b, tc_half_i), tc_half_d);
  return __builtin_convertvector(a - n * b, tc_half_f);
}
TC_INLINE tc_vf tc_mod_near(tc_vf x, tc_vf y) { return tc_by_halves(tc_mod_half, x, y); }
#else
TC_INLINE tc_vf tc_mod_near(tc_vf x, tc_vf y) { return (float)((double)x - trunc((double)x / (double)y) * (double)y); }
#endif
/* fmod: the sign is that of x; exact. Libm has the quotients of 2^27 and more, and what is not finite. */
TC_INLINE tc_vf tc_mod(tc_vf x, tc_vf y)
{
  const tc_vm exact = tc_and(tc_lt(tc_abs(x / y), tc_set(134217728.0f)), tc_lt(tc_abs(y), tc_set(INFINITY)));
  return tc_any(tc_not(exact)) ? TC_LANES2(fmodf, x, y) : tc_copysign(tc_mod_near(x, y), x);
}

/* x^y = 2^(y log2 x) for positive finite x and finite y, by doubles; 1 ulp */
#if TC_VL > 1
TC_INLINE tc_half_f tc_pow_half(tc_half_f x, tc_half_f y)
{
  /* x = 2^e m, sqrt(1/2) <= m < sqrt(2); ln m = 2 artanh s */
  const tc_half_u zero = {0}, root = zero + 0x3FE6A09E667F3BCDu;  /* the bits of sqrt(1/2) */
  const tc_half_u above = (tc_half_u)__builtin_convertvector(x, tc_half_d) - root + (UINT64_C(1024) << 52);
  const tc_half_d e = (tc_half_d)((above >> 52) | 0x4330000000000000u) - (4503599627370496.0 + 1024.0);
  const tc_half_d m = (tc_half_d)((above & 0x000FFFFFFFFFFFFFu) + root), s = (m - 1.0) / (m + 1.0), z = s * s;
  tc_half_d p = z * (1.0 / 13.0) + 1.0 / 11.0;
  p = p * z + 1.0 / 9.0;
  p = p * z + 1.0 / 7.0;
  p = p * z + 1.0 / 5.0;
  p = p * z + 1.0 / 3.0;
  p = p * z + 1.0;
  const tc_half_d power_of_2 = __builtin_convertvector(y, tc_half_d) * (e + s * p * 2.8853900817779268);
  /* between -160 and 160: beyond, the result is 0 or infinity */
  const tc_half_u low = (tc_half_u)(power_of_2 < -160.0), high = (tc_half_u)(power_of_2 > 160.0);
  const tc_half_d t = (tc_half_d)(((tc_half_u)power_of_2 & ~(low | high)) | (low & (zero + 0xC064000000000000u)) |
                                (high & (zero + 0x4064000000000000u)));
  /* t = n + r / ln 2, |r| <= ln 2 / 2 */
  const tc_half_d shifted = t + 6755399441055744.0;  /* 1.5 * 2^52: n is in the low bits */
  const tc_half_d r = (t - (shifted - 6755399441055744.0)) * 0.69314718055994531;
  tc_half_d q = r * (1.0 / 40320.0) + 1.0 / 5040.0;
  q = q * r + 1.0 / 720.0;
  q = q * r + 1.0 / 120.0;
  q = q * r + 1.0 / 24.0;
  q = q * r + 1.0 / 6.0;
  q = q * r + 0.5;
  q = q * r + 1.0;
  q = q * r + 1.0;
  const tc_half_d power = (tc_half_d)(((tc_half_u)shifted - 0x4338000000000000u + 1023u) << 52);
  return __builtin_convertvector(q * power, tc_half_f);
}
TC_INLINE tc_vf tc_pow_plain(tc_vf x, tc_vf y) { return tc_by_halves(tc_pow_half, x, y); }
#else
TC_INLINE tc_vf tc_pow_plain(tc_vf x, tc_vf y) { return powf(x, y); }
#endif
/* Libm has the powers of what is negative or not finite, and of -0. */
TC_INLINE tc_vf tc_pow(tc_vf x, tc_vf y)
{
  const tc_vm none = tc_and(tc_and(tc_eq(x, tc_zero()), tc_lt(tc_zero(), tc_copysign(tc_set(1.0f), x))), tc_lt(tc_zero(), y));
  const tc_vm finite = tc_and(tc_lt(x, tc_set(INFINITY)), tc_lt(tc_abs(y), tc_set(INFINITY)));
  const tc_vm plain = tc_and(tc_or(none, tc_lt(tc_zero(), x)), finite);
  if (tc_any(tc_not(plain))) return TC_LANES2(powf, x, y);
  return tc_sel(none, tc_zero(), tc_pow_plain(tc_sel(none, tc_set(1.0f), x), y));
}

/* The rest is libm, lane by lane. */
TC_INLINE tc_vf tc_atan2(tc_vf y, tc_vf x) { return TC_LANES2(atan2f, y, x); }

#endif
