/* A pool by itself, by its two macros: chunks run once each, at the same time, from several callers, with any number of threads, and (with
 * FORKS) in the child of a fork as well. The macros come from -include: pool.h of examples/thread_pool, or tc_parallel.h of packages. */
#include <pthread.h>
#include <stdio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#ifndef TC_SET_THREADS
#  define TC_SET_THREADS(n) tc_pool_threads(n)
#endif

enum { CHUNKS = 8, CALLERS = 3, LOOPS = 2000 };
static const struct timespec nap = {0, 50000000};

static double now(void)
{
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Sleeping chunks need no processor: as many threads as there are sleep at the same time, on any machine. */
static void sleeps(const void *args, int chunk)
{
  (void)args, (void)chunk;
  nanosleep(&nap, NULL);
}

static double seconds_of_naps(int threads)
{
  double before;
  if (TC_SET_THREADS(threads) != threads) return -1;
  before = now();
  TC_PARALLEL_FOR(sleeps, NULL, CHUNKS);
  return now() - before;
}

typedef struct { int *ran; } counts;
static void counts_chunk(const void *args, int chunk) { ((const counts *)args)->ran[chunk]++; }

/* Many short loops, each result looked at by the caller. */
static void *calls(void *bad)
{
  for (int k = 0; k < LOOPS; k++) {
    int ran[37] = {0};
    const counts c = {ran};
    const int chunks = k % 38;
    TC_PARALLEL_FOR(counts_chunk, &c, chunks);
    for (int i = 0; i < 37; i++) *(int *)bad += ran[i] != (i < chunks);
  }
  return NULL;
}

/* Right after a loop: workers wait, sleep, or are about to. */
static int works_in_a_child(void)
{
  int bad = 0, status = 1;
  calls(&bad);
  const pid_t child = fork();
  if (child == 0) {
    alarm(20);
    calls(&bad);
    _exit(bad != 0);
  }
  return child > 0 && waitpid(child, &status, 0) == child && status == 0 && bad == 0;
}

int main(void)
{
  pthread_t caller[CALLERS];
  int bad[CALLERS] = {0}, wrong = 0, threads = TC_SET_THREADS(0);
  double one, eight;
  if (threads < 1) return 1;
  for (int n = 1; n <= 5; n += 2) {
    if (TC_SET_THREADS(n) != n || TC_SET_THREADS(0) != n) return 2;
    for (int i = 0; i < CALLERS; i++)
      if (pthread_create(&caller[i], NULL, calls, &bad[i]) != 0) return 3;
    for (int i = 0; i < CALLERS; i++) pthread_join(caller[i], NULL), wrong += bad[i];
  }
  if (wrong != 0) return 4;
#ifdef FORKS
  for (int i = 0; i < 50; i++)
    if (!works_in_a_child()) return 6;
#else
  (void)works_in_a_child;
#endif
  one = seconds_of_naps(1);
  eight = seconds_of_naps(CHUNKS);
  printf("%d naps: %.3f s on one thread, %.3f s on %d\n", CHUNKS, one, eight, CHUNKS);
  return one > 0 && eight > 0 && eight < one / 2 ? 0 : 5;
}
