/* SPDX-License-Identifier: 0BSD -- support text of tc-emit; do not edit */
/* Which of the processors with one set of instructions this one is: each function is 1 for those that a schedule was made for, and for
 * their maker's later ones. All have AVX-512 and its products of bytes (tc_cpu_v4_vnni). */
#ifndef TC_CPU_MAKER_H
#define TC_CPU_MAKER_H
#include "tc_cpu.h"

#ifdef TC_CPU_X86
/* The family of AMD's processors, 0 of those of others. */
static inline int tc_cpu_amd_family(void)
{
  unsigned a, b, c, d;
  if (!__get_cpuid(0, &a, &b, &c, &d) || b != 0x68747541u || d != 0x69746e65u || c != 0x444d4163u) return 0; /* "AuthenticAMD" */
  if (!__get_cpuid(1, &a, &b, &c, &d)) return 0;
  return (int)(a >> 8 & 15) + ((a >> 8 & 15) == 15 ? (int)(a >> 20 & 255) : 0);
}
#endif

static inline int tc_cpu_znver4(void)
{
#ifdef TC_CPU_X86
  return tc_cpu_v4_vnni() && tc_cpu_amd_family() >= 0x19;
#else
  return 0;
#endif
}

static inline int tc_cpu_znver5(void)
{
#ifdef TC_CPU_X86
  return tc_cpu_v4_vnni() && tc_cpu_amd_family() >= 0x1a;
#else
  return 0;
#endif
}

static inline int tc_cpu_cascadelake(void)
{
#ifdef TC_CPU_X86
  return tc_cpu_v4_vnni() && tc_cpu_amd_family() == 0;
#else
  return 0;
#endif
}

/* With AVX-512 VBMI2, which came with Ice Lake. */
static inline int tc_cpu_icelake_server(void)
{
#ifdef TC_CPU_X86
  unsigned a, b, c, d;
  return tc_cpu_cascadelake() && __get_cpuid_count(7, 0, &a, &b, &c, &d) && (c & 1u << 6) != 0;
#else
  return 0;
#endif
}

#endif
