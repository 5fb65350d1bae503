/* How far apart the first two cores are: the least of some means of the time, in nanoseconds, that a cache line takes to the other core and
 * back. On a virtual machine it changes while programs run: its cores may share a cache now, and lie on two chips a second later. */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <time.h>

enum { kTrips = 2000, kMeans = 20 };

static _Alignas(128) atomic_int ball;

static double nanoseconds(void)
{
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return 1e9 * (double)t.tv_sec + (double)t.tv_nsec;
}

/* Onto core number `k` of those that the process may use. */
static void pin(int k)
{
  cpu_set_t all, one;
  CPU_ZERO(&one);
  if (sched_getaffinity(0, sizeof all, &all) != 0) return;
  for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
    if (CPU_ISSET(cpu, &all) && k-- == 0) CPU_SET(cpu, &one);
  sched_setaffinity(0, sizeof one, &one);
}

static void *answer(void *unused)
{
  pin(1);
  for (int i = 0; i < kTrips * kMeans; i++) {
    while (atomic_load(&ball) != 1) {}
    atomic_store(&ball, 2);
  }
  return unused;
}

int main(void)
{
  pthread_t other;
  double least = 1e30;
  if (pthread_create(&other, NULL, answer, NULL) != 0) return 1;
  pin(0);
  for (int mean = 0; mean < kMeans; mean++) {
    const double begin = nanoseconds();
    for (int i = 0; i < kTrips; i++) {
      atomic_store(&ball, 1);
      while (atomic_load(&ball) != 2) {}
    }
    const double ns = (nanoseconds() - begin) / kTrips;
    if (ns < least) least = ns;
  }
  pthread_join(other, NULL);
  printf("%.1f\n", least);
  return 0;
}
