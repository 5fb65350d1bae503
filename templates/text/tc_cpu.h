/* SPDX-License-Identifier: 0BSD -- support text of tc-emit; do not edit */
/* What this processor and its system have. Each function is 1 where they run whatever a compiler makes with the flags
 * beside it, and 0 where that is not known.
 *
 *   tc_cpu_v3        -march=x86-64-v3                   AVX2, FMA
 *   tc_cpu_v3_vnni   -march=x86-64-v3 -mavxvnni         and products of bytes (AVX-VNNI)
 *   tc_cpu_v4        -march=x86-64-v4                   AVX-512 F, BW, CD, DQ, VL
 *   tc_cpu_v4_vnni   -march=x86-64-v4 -mavx512vnni      and its products of bytes
 *   tc_cpu_dotprod   -march=armv8.2-a+dotprod           products of bytes on 64-bit ARM */
#ifndef TC_CPU_H
#define TC_CPU_H
#if defined(__GNUC__) && (defined(__x86_64__) || defined(__i386__))
#  define TC_CPU_X86
#  include <cpuid.h>
#elif defined(__aarch64__) && defined(__linux__)
#  include <sys/auxv.h>
#endif

/* The compiler's own function asks the system, too: whether it saves the wide registers. It does not know of all that
 * -march=x86-64-v3 allows; the levels are those of the System V ABI for x86-64, section 3.1.1. */
static inline int tc_cpu_v3(void)
{
#ifdef TC_CPU_X86
  const unsigned movbe = 1u << 22, f16c = 1u << 29, lzcnt = 1u << 5;
  unsigned a, b, c, d;
  __builtin_cpu_init();
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma")) return 0;
  if (!__builtin_cpu_supports("bmi") || !__builtin_cpu_supports("bmi2")) return 0;
  if (!__get_cpuid(1, &a, &b, &c, &d) || (c & movbe) == 0 || (c & f16c) == 0) return 0;
  return __get_cpuid(0x80000001u, &a, &b, &c, &d) && (c & lzcnt) != 0;
#else
  return 0;
#endif
}

static inline int tc_cpu_v3_vnni(void)
{
#ifdef TC_CPU_X86
  unsigned a, b, c, d;
  return tc_cpu_v3() && __get_cpuid_count(7, 1, &a, &b, &c, &d) && (a & 1u << 4) != 0;
#else
  return 0;
#endif
}

static inline int tc_cpu_v4(void)
{
#ifdef TC_CPU_X86
  if (!tc_cpu_v3() || !__builtin_cpu_supports("avx512f") || !__builtin_cpu_supports("avx512bw")) return 0;
  return __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
#else
  return 0;
#endif
}

static inline int tc_cpu_v4_vnni(void)
{
#ifdef TC_CPU_X86
  return tc_cpu_v4() && __builtin_cpu_supports("avx512vnni");
#else
  return 0;
#endif
}

static inline int tc_cpu_dotprod(void)
{
#if defined(__aarch64__) && defined(__linux__)
  return (getauxval(AT_HWCAP) & (1ul << 20)) != 0;
#elif defined(__aarch64__) && defined(__APPLE__)
  return 1;
#else
  return 0;
#endif
}

#endif
