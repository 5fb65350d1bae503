/* SPDX-License-Identifier: 0BSD -- support text of tc-emit; do not edit */
/* The threads of TC_PARALLEL_FOR (tc_parallel.h): the caller's own and workers, which all packages of a program share.
 *
 * Each thread has a share of a loop's chunks, in batches: the same ones in every loop, so that a kernel finds in its cache what the
 * kernel before has left there. Who is done takes batches of the others. The caller waits for batches that somebody has begun, never for
 * a thread: where other programs keep a processor busy, a worker that has begun no batch holds up nobody, and the others do its share. */
#ifndef _GNU_SOURCE
#  define _GNU_SOURCE /* for the processors that this process may use */
#endif
#ifndef _DARWIN_C_SOURCE
#  define _DARWIN_C_SOURCE /* for how many there are */
#endif
#include "tc_parallel.h"
#ifdef TC_POOL
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define TC_POOL_MOST    256  /* threads */
#define TC_POOL_BATCHES 8    /* of a share, at most: what is left of them fits into four bits */
#define TC_POOL_SPINS   2000 /* pauses until a thread that waits goes to sleep: 50 to 100 microseconds on most processors */
#ifndef TC_POOL_CPU_MAX
#  define TC_POOL_CPU_MAX "/sys/fs/cgroup/cpu.max" /* of Linux's control groups, version 2 */
#endif

#if defined(__ELF__) || defined(__APPLE__)
#  define TC_POOL_SHARED __attribute__((weak)) /* packages that are linked into one program have one pool */
#else
#  define TC_POOL_SHARED
#endif
#define TC_POOL_LINE __attribute__((aligned(64)))

#if defined(__x86_64__) || defined(__i386__)
#  define tc_pool_pause() __builtin_ia32_pause()
#elif defined(__aarch64__)
#  define tc_pool_pause() __asm__ __volatile__("isb")
#else
#  define tc_pool_pause() ((void)0)
#endif

/* What a thread has of a loop, and how it sleeps. */
typedef struct {
  TC_POOL_LINE uint32_t left; /* number of the loop (28 bits) << 4 | batches of the share that nobody has begun */
  int            sleeps;
  pthread_cond_t work;        /* there is a loop for it */
} tc_pool_share;

static struct {
  tc_pool_share share[TC_POOL_MOST];
  TC_POOL_LINE uint32_t loop; /* number of the newest one */

  /* The newest loop. It is written when all batches of the one before have ended. */
  TC_POOL_LINE tc_part part;
  const void *args;
  int chunks, threads;
  int batches; /* of each share */

  TC_POOL_LINE int running; /* batches of it that have not ended */
  int waiting;              /* the caller sleeps until they have */

  TC_POOL_LINE int wanted; /* threads; 0: nobody asked, and no loop ran */
  int taken;               /* a caller's loop has the pool */
  int quit;                /* workers are to end */
  int forks;               /* the handler of forks is known */
  int workers;             /* that there are */
  pthread_t worker[TC_POOL_MOST];
} tc_pool;
static pthread_mutex_t tc_pool_lock = PTHREAD_MUTEX_INITIALIZER; /* of sleeping, and of the list of workers */
static pthread_cond_t  tc_pool_ended = PTHREAD_COND_INITIALIZER;

/* Who waits says so and then looks; who has something to say writes it and then looks whether somebody waits. One of the two sees the
 * other, because all of these are in one order, "ordered". What stands between an acquire and a release is "relaxed". */
#define tc_pool_relaxed(x)        __atomic_load_n(&(x), __ATOMIC_RELAXED)
#define tc_pool_set_relaxed(x, v) __atomic_store_n(&(x), v, __ATOMIC_RELAXED)
#define tc_pool_ordered(x)        __atomic_load_n(&(x), __ATOMIC_SEQ_CST)
#define tc_pool_set_ordered(x, v) __atomic_store_n(&(x), v, __ATOMIC_SEQ_CST)

static void tc_pool_wake(pthread_cond_t *who)
{
  pthread_mutex_lock(&tc_pool_lock);
  pthread_cond_signal(who);
  pthread_mutex_unlock(&tc_pool_lock);
}

/* Begins batches of one share until none is left. Where the exchange succeeds, the batch was there and the loop has not ended: what was
 * read of it before holds. */
static void tc_pool_take(uint32_t loop, int share)
{
  uint32_t *const of = &tc_pool.share[share].left;
  uint32_t left = __atomic_load_n(of, __ATOMIC_ACQUIRE);
  while (left >> 4 == loop && (left & 15) != 0) {
    const tc_part part = tc_pool_relaxed(tc_pool.part);
    const void *const args = tc_pool_relaxed(tc_pool.args);
    const int64_t chunks = tc_pool_relaxed(tc_pool.chunks), batches = tc_pool_relaxed(tc_pool.batches), all = batches * tc_pool_relaxed(tc_pool.threads);
    if (!__atomic_compare_exchange_n(of, &left, left - 1, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) continue;
    const int64_t batch = share * batches + batches - (left & 15);
    for (int64_t chunk = chunks * batch / all; chunk < chunks * (batch + 1) / all; chunk++) part(args, (int)chunk);
    if (__atomic_sub_fetch(&tc_pool.running, 1, __ATOMIC_SEQ_CST) == 0 && tc_pool_ordered(tc_pool.waiting)) tc_pool_wake(&tc_pool_ended);
    left = __atomic_load_n(of, __ATOMIC_ACQUIRE);
  }
}

/* Its own share first. */
static void tc_pool_take_all(uint32_t loop, int self, int threads)
{
  for (int i = 0; i < threads; i++) tc_pool_take(loop, (self + i) % threads);
}

static void *tc_pool_work_on(void *number)
{
  const int self = (int)(intptr_t)number;
  tc_pool_share *const own = &tc_pool.share[self];
  int spins = TC_POOL_SPINS;
  for (uint32_t seen = 0, loop;; seen = loop) {
    loop = tc_pool_ordered(tc_pool.loop);
    for (int spin = 0; loop == seen && spin < spins; spin++) {
      tc_pool_pause();
      loop = tc_pool_ordered(tc_pool.loop);
    }
    if (loop == seen) {
      pthread_mutex_lock(&tc_pool_lock);
      tc_pool_set_ordered(own->sleeps, 1);
      while ((loop = tc_pool_ordered(tc_pool.loop)) == seen && !tc_pool_ordered(tc_pool.quit)) pthread_cond_wait(&own->work, &tc_pool_lock);
      tc_pool_set_ordered(own->sleeps, 0);
      pthread_mutex_unlock(&tc_pool_lock);
    }
    if (tc_pool_ordered(tc_pool.quit)) return NULL;
    const int threads = tc_pool_relaxed(tc_pool.threads);
    if (self < threads) tc_pool_take_all(loop, self, threads);
    spins = self < threads ? TC_POOL_SPINS : 0; /* loops have nothing for it */
  }
}

/* The child of a fork has the forking thread alone, and no loop that another one was in. */
static void tc_pool_forked(void)
{
  const pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
  const pthread_cond_t nobody = PTHREAD_COND_INITIALIZER;
  tc_pool_lock = lock;
  tc_pool_ended = nobody;
  for (int t = 0; t < TC_POOL_MOST; t++) tc_pool.share[t].left = 0, tc_pool.share[t].sleeps = 0;
  tc_pool.workers = tc_pool.waiting = tc_pool.taken = 0;
}

/* At the end of the program, and where a shared library is unloaded, whose text the workers run. Loops go on without them. */
__attribute__((destructor)) static void tc_pool_end(void)
{
  pthread_mutex_lock(&tc_pool_lock);
  tc_pool_set_ordered(tc_pool.quit, 1);
  for (int t = 1; t <= tc_pool.workers; t++) pthread_cond_signal(&tc_pool.share[t].work);
  pthread_mutex_unlock(&tc_pool_lock);
  for (int t = 0; t < tc_pool.workers; t++) pthread_join(tc_pool.worker[t], NULL);
}

/* One more worker, which no signal interrupts. */
static int tc_pool_hire(void)
{
  const pthread_cond_t work = PTHREAD_COND_INITIALIZER;
  const int self = tc_pool.workers + 1;
  sigset_t all, before;
  tc_pool.share[self].work = work;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  const int status = pthread_create(&tc_pool.worker[self - 1], NULL, tc_pool_work_on, (void *)(intptr_t)self);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  if (status == 0) tc_pool_set_relaxed(tc_pool.workers, self);
  return status == 0;
}

/* Under `taken`: the workers of a loop on so many threads. Where the system gives fewer, loops have so many from now on; this one's other
 * shares are taken by those that there are. */
static void tc_pool_start(int threads)
{
  if (tc_pool_relaxed(tc_pool.workers) >= threads - 1) return;
  pthread_mutex_lock(&tc_pool_lock);
  if (!tc_pool.forks) tc_pool.forks = pthread_atfork(NULL, NULL, tc_pool_forked) == 0;
  while (!tc_pool.quit && tc_pool.workers < threads - 1)
    if (!tc_pool.forks || !tc_pool_hire()) {
      tc_pool_set_relaxed(tc_pool.wanted, tc_pool.workers + 1);
      break;
    }
  pthread_mutex_unlock(&tc_pool_lock);
}

/* The time of so many processors is all that a container may have; 0: of any number. The file says "MICROSECONDS PERIOD" or "max PERIOD". */
static int tc_pool_quota(void)
{
  long  quota = 0, period = 0;
  FILE *file = fopen(TC_POOL_CPU_MAX, "r");
  if (!file) return 0;
  if (fscanf(file, "%ld %ld", &quota, &period) != 2 || quota <= 0 || period <= 0) quota = period = 0;
  fclose(file);
  if (period == 0 || quota / period >= TC_POOL_MOST) return 0;
  return (int)(quota / period) + (quota % period != 0);
}

static int tc_pool_processors(void)
{
  const char *const asked = getenv("OMP_NUM_THREADS");
  const int quota = tc_pool_quota();
  int count = 1;
  if (asked && atoi(asked) > 0) return atoi(asked);
#ifdef _SC_NPROCESSORS_ONLN
  count = (int)sysconf(_SC_NPROCESSORS_ONLN);
#endif
#ifdef CPU_COUNT
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) == 0) count = CPU_COUNT(&set);
#endif
  return quota > 0 && quota < count ? quota : count;
}

static int tc_pool_most(int threads) { return threads < 1 ? 1 : threads > TC_POOL_MOST ? TC_POOL_MOST : threads; }

TC_POOL_SHARED int tc_pool_threads(int wanted)
{
  int now = tc_pool_relaxed(tc_pool.wanted);
  if (wanted > 0) {
    wanted = tc_pool_most(wanted);
    tc_pool_set_relaxed(tc_pool.wanted, wanted);
    return wanted;
  }
  if (now > 0) return now;
  wanted = tc_pool_most(tc_pool_processors());
  return __atomic_compare_exchange_n(&tc_pool.wanted, &now, wanted, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED) ? wanted : now;
}

static void tc_pool_publish(uint32_t loop, tc_part part, const void *args, int chunks, int threads)
{
  const int each = (chunks + threads - 1) / threads, batches = each < TC_POOL_BATCHES ? each : TC_POOL_BATCHES;
  tc_pool_set_relaxed(tc_pool.part, part);
  tc_pool_set_relaxed(tc_pool.args, args);
  tc_pool_set_relaxed(tc_pool.chunks, chunks);
  tc_pool_set_relaxed(tc_pool.threads, threads);
  tc_pool_set_relaxed(tc_pool.batches, batches);
  tc_pool_set_relaxed(tc_pool.running, threads * batches);
  for (int t = 0; t < threads; t++) __atomic_store_n(&tc_pool.share[t].left, loop << 4 | (uint32_t)batches, __ATOMIC_RELEASE);
  tc_pool_set_ordered(tc_pool.loop, loop);
  for (int t = 1; t < threads; t++)
    if (tc_pool_ordered(tc_pool.share[t].sleeps)) tc_pool_wake(&tc_pool.share[t].work);
}

static void tc_pool_wait(void)
{
  for (int spin = 0; spin < TC_POOL_SPINS; spin++) {
    if (tc_pool_ordered(tc_pool.running) == 0) return;
    tc_pool_pause();
  }
  pthread_mutex_lock(&tc_pool_lock);
  tc_pool_set_ordered(tc_pool.waiting, 1);
  while (tc_pool_ordered(tc_pool.running) > 0) pthread_cond_wait(&tc_pool_ended, &tc_pool_lock);
  tc_pool_set_ordered(tc_pool.waiting, 0);
  pthread_mutex_unlock(&tc_pool_lock);
}

/* A thread that is cancelled while it waits would leave its loop behind. */
static int tc_pool_cancel(int state)
{
#ifndef __ANDROID__
  pthread_setcancelstate(state, &state);
#endif
  return state;
}

TC_POOL_SHARED void tc_pool_for(tc_part part, const void *args, int chunks)
{
  const int wanted = tc_pool_threads(0), threads = wanted < chunks ? wanted : chunks;
  if (threads < 2 || __atomic_exchange_n(&tc_pool.taken, 1, __ATOMIC_ACQUIRE)) {
    for (int chunk = 0; chunk < chunks; chunk++) part(args, chunk);
    return;
  }
  const int cancel = tc_pool_cancel(PTHREAD_CANCEL_DISABLE);
  const uint32_t loop = (tc_pool.loop + 1) & 0xfffffff;
  tc_pool_start(threads);
  tc_pool_publish(loop, part, args, chunks, threads);
  tc_pool_take_all(loop, 0, threads);
  tc_pool_wait();
  __atomic_store_n(&tc_pool.taken, 0, __ATOMIC_RELEASE);
  tc_pool_cancel(cancel);
}
#endif
