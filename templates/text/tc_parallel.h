/* SPDX-License-Identifier: 0BSD -- support text of tc-emit; do not edit */
/* Runs part(args, 0), part(args, 1), ... part(args, chunks - 1), in any order and on any threads. The number of chunks is
 * fixed in the text and chunks share no memory that they write, so results do not depend on the number of threads.
 *
 * With TC_PTHREADS, which the build files define, the threads of tc_pool.c run them (on POSIX systems, by gcc or clang); OpenMP does where the compiler has it switched
 * on: a static schedule, so that each of two threads gets one half. Without either it is a loop. To use a pool of your own, define
 * TC_PARALLEL_FOR(part, args, chunks) before compiling; with TC_SET_THREADS (tc_main.h) the program's --threads reaches it. */
#ifndef TC_PARALLEL_H
#define TC_PARALLEL_H

typedef void (*tc_part)(const void *args, int chunk);

#ifndef TC_PARALLEL_FOR
#  if defined(TC_PTHREADS) && !defined(_OPENMP) && defined(__GNUC__) && (defined(__unix__) || defined(__APPLE__))
#    define TC_POOL
#    ifdef __cplusplus
extern "C" {
#    endif
/* As TC_PARALLEL_FOR. While one caller's loop has the pool, the loops of others run on their own threads. A part must return: by no
 * longjmp, nor in the child of a fork of its own. */
void tc_pool_for(tc_part part, const void *args, int chunks);
/* Loops run on at most `wanted` threads from now on, the caller's among them; 0 changes nothing. Returns how many they are: unless
 * somebody asked, as many as OMP_NUM_THREADS says, or as there are processors that this process, or its container, may use. */
int tc_pool_threads(int wanted);
#    ifdef __cplusplus
}
#    endif
#    define TC_PARALLEL_FOR(part, args, chunks) tc_pool_for(part, args, chunks)
#  else
#    define TC_PARALLEL_FOR(part, args, chunks) tc_parallel_for(part, args, chunks)

static inline void tc_parallel_for(tc_part part, const void *args, int chunks)
{
#    ifdef _OPENMP
#      pragma omp parallel for schedule(static) if (chunks > 1)
#    endif
  for (int chunk = 0; chunk < chunks; chunk++) part(args, chunk);
}
#  endif

#endif
#endif
