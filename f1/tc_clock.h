/* SPDX-License-Identifier: 0BSD -- support text of tc-emit; do not edit */
/* Seconds since some moment, for the program around a model. */
#ifndef TC_CLOCK_H
#define TC_CLOCK_H
#include <time.h>

#include "tc_io.h"
#if defined(_WIN32)
#define WIN32_LEAN_AND_MEAN
#include <windows.h>
#endif

TC_IO double tc_now(void) {
#if defined(_WIN32)
  LARGE_INTEGER ticks, a_second;
  QueryPerformanceFrequency(&a_second);
  QueryPerformanceCounter(&ticks);
  return (double)ticks.QuadPart / (double)a_second.QuadPart;
#elif defined(CLOCK_MONOTONIC)
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
#elif defined(TIME_UTC)
  struct timespec t;
  timespec_get(&t, TIME_UTC);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
#else
  return (double)clock() / CLOCKS_PER_SEC;
#endif
}

#endif
