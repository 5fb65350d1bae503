/* SPDX-License-Identifier: 0BSD -- support text of tc-emit; do not edit */
/* Runs part(args, 0), part(args, 1), ... part(args, chunks - 1), in any order and on any threads. The number of chunks is
 * fixed in the text and chunks share no memory that they write, so results do not depend on the number of threads.
 *
 * OpenMP runs them where the compiler has it switched on: a static schedule, so that each of two threads gets one half.
 * A loop runs them elsewhere. To use a pool of your own, define TC_PARALLEL_FOR(part, args, chunks) before
 * compiling; with TC_SET_THREADS (tc_main.h) the program's --threads reaches it. */
#ifndef TC_PARALLEL_H
#define TC_PARALLEL_H

#ifndef TC_PARALLEL_FOR
#  define TC_PARALLEL_FOR(part, args, chunks) tc_parallel_for(part, args, chunks)

typedef void (*tc_part)(const void *args, int chunk);

static inline void tc_parallel_for(tc_part part, const void *args, int chunks)
{
#  ifdef _OPENMP
#    pragma omp parallel for schedule(static) if (chunks > 1)
#  endif
  for (int chunk = 0; chunk < chunks; chunk++) part(args, chunk);
}

#endif
#endif
