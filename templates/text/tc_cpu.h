/* SPDX-License-Identifier: 0BSD -- support text of tc-emit; do not edit */
/* What this processor and its system have. Each function is 1 where they run whatever a compiler makes with the flags
 * beside it, and 0 where that is not known.
 *
 *   tc_cpu_v3        -march=x86-64-v3                   AVX2, FMA
 *   tc_cpu_v3_vnni   -march=x86-64-v3 -mavxvnni         and products of bytes (AVX-VNNI)
 *   tc_cpu_v4        -march=x86-64-v4                   AVX-512 F, BW, CD, DQ, VL
 *   tc_cpu_v4_vnni   -march=x86-64-v4 -mavx512vnni      and its products of bytes
 *   tc_cpu_v4_amx    and -mamx-tile -mamx-int8          and those of tiles, whose registers the process asks for with it
 *   tc_cpu_dotprod   -march=armv8.2-a+dotprod           products of bytes on 64-bit ARM */
#ifndef TC_CPU_H
#define TC_CPU_H
#if (defined(__GNUC__) || defined(__clang__)) && (defined(__x86_64__) || defined(__i386__))
#  define TC_CPU_X86
#  include <cpuid.h>
#elif defined(__aarch64__) && defined(__linux__)
#  include <sys/auxv.h>
#endif

#ifdef TC_CPU_X86
/* 1 if the system saves the registers of these bits of XCR0 when it changes threads. */
static inline int tc_cpu_saves(unsigned registers)
{
  const unsigned osxsave = 1u << 27;
  unsigned a, b, c, d;
  if (!__get_cpuid(1, &a, &b, &c, &d) || (c & osxsave) == 0) return 0;
  __asm__ volatile("xgetbv" : "=a"(a), "=d"(d) : "c"(0));
  return (a & registers) == registers;
}
#endif

/* The levels are those of the System V ABI for x86-64, section 3.1.1. */
static inline int tc_cpu_v3(void)
{
#ifdef TC_CPU_X86
  const unsigned ymm = 6, movbe = 1u << 22, fma = 1u << 12, f16c = 1u << 29, bmi = 1u << 3, avx2 = 1u << 5, bmi2 = 1u << 8, lzcnt = 1u << 5;
  unsigned a, b, c, d;
  if (!tc_cpu_saves(ymm) || !__get_cpuid(1, &a, &b, &c, &d) || (~c & (movbe | fma | f16c)) != 0) return 0;
  if (!__get_cpuid_count(7, 0, &a, &b, &c, &d) || (~b & (bmi | avx2 | bmi2)) != 0) return 0;
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
  const unsigned zmm = 0xe6, f = 1u << 16, dq = 1u << 17, cd = 1u << 28, bw = 1u << 30, vl = 1u << 31;
  unsigned a, b, c, d;
  if (!tc_cpu_v3() || !tc_cpu_saves(zmm)) return 0;
  return __get_cpuid_count(7, 0, &a, &b, &c, &d) && (~b & (f | dq | cd | bw | vl)) == 0;
#else
  return 0;
#endif
}

static inline int tc_cpu_v4_vnni(void)
{
#ifdef TC_CPU_X86
  const unsigned vnni = 1u << 11;
  unsigned a, b, c, d;
  return tc_cpu_v4() && __get_cpuid_count(7, 0, &a, &b, &c, &d) && (c & vnni) != 0;
#else
  return 0;
#endif
}

static inline int tc_cpu_v4_amx(void)
{
#ifdef TC_CPU_X86
  const unsigned tiles = 3u << 17, tile = 1u << 24, int8 = 1u << 25;
  unsigned a, b, c, d;
  if (!tc_cpu_v4_vnni() || !tc_cpu_saves(tiles) || !__get_cpuid_count(7, 0, &a, &b, &c, &d) || (~d & (tile | int8)) != 0) return 0;
#  if defined(__linux__) && defined(__x86_64__)
  long result; /* arch_prctl(ARCH_REQ_XCOMP_PERM, 18), which has no function in older C libraries */
  __asm__ volatile("syscall" : "=a"(result) : "a"(158L), "D"(0x1023L), "S"(18L) : "rcx", "r11", "memory");
  return result == 0;
#  else
  return 1;
#  endif
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
