/* tc_pool.c where a process or a thread ends beside loops. usage: ends forks | exits | cancels; exit code 0: right. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { CHUNKS = 40 };
static pid_t parent;
static int   stop;

static void sleep_for(long microseconds)
{
  const struct timespec t = {0, microseconds * 1000};
  int before;
  pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
  nanosleep(&t, NULL);
  pthread_setcancelstate(before, &before);
}

/* A chunk of a loop of the parent: in a child it would write to the stack of a thread that is not there. */
static void slow(const void *args, int chunk)
{
  (void)args, (void)chunk;
  if (getpid() != parent) abort();
  sleep_for(2000);
}
static void short_nap(const void *ran, int chunk)
{
  sleep_for(100);
  __atomic_add_fetch(*(int *const *)ran + chunk, 1, __ATOMIC_RELAXED);
}
static void nothing(const void *args, int chunk) { (void)args, (void)chunk; }
static void last_is_long(const void *args, int chunk) { (void)args, sleep_for(chunk == CHUNKS - 1 ? 50000 : 10); }

static void *slow_loops(void *args)
{
  while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) tc_pool_for(slow, NULL, CHUNKS);
  return args;
}
static void *short_loops(void *args)
{
  for (;;) tc_pool_for(nothing, NULL, CHUNKS);
  return args;
}
static void *one_loop(void *args)
{
  tc_pool_for(last_is_long, NULL, CHUNKS);
  return args;
}

static int wrong_loops(int loops)
{
  int wrong = 0;
  for (int k = 0; k < loops; k++) {
    int ran[CHUNKS] = {0}, *const p = ran;
    tc_pool_for(short_nap, &p, CHUNKS);
    for (int i = 0; i < CHUNKS; i++) wrong += ran[i] != 1;
  }
  return wrong;
}

/* While another thread is in a loop, whose batches nobody in the child may begin. */
static int forks(void)
{
  pthread_t caller;
  int wrong = pthread_create(&caller, NULL, slow_loops, NULL);
  for (int i = 0; i < 15; i++) {
    int status = 1;
    sleep_for(5000);
    const pid_t child = fork();
    if (child == 0) _exit(alarm(20) != 0 || wrong_loops(10) != 0);
    wrong += child < 0 || waitpid(child, &status, 0) != child || status != 0;
  }
  __atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
  pthread_join(caller, NULL);
  return wrong;
}

/* A process that ends while another of its threads runs loops, and workers are just being started. */
static int exits(void)
{
  int wrong = 0;
  for (int i = 0; i < 25; i++) {
    int status = 1;
    const pid_t child = fork();
    if (child == 0) {
      pthread_t caller;
      alarm(20);
      tc_pool_threads(64);
      if (pthread_create(&caller, NULL, short_loops, NULL) != 0) _exit(1);
      sleep_for(500 + 100 * i);
      exit(0);
    }
    wrong += child < 0 || waitpid(child, &status, 0) != child || status != 0;
  }
  return wrong;
}

/* A caller that is cancelled while it waits for the last chunk: its loop ends first, and the pool is free. */
static int cancels(void)
{
  for (int i = 0; i < 5; i++) {
    pthread_t caller;
    if (pthread_create(&caller, NULL, one_loop, NULL) != 0) return 1;
    sleep_for(20000);
    pthread_cancel(caller);
    pthread_join(caller, NULL);
    if (wrong_loops(5) != 0) return 1;
  }
  return 0;
}

int main(int argc, char **argv)
{
  const char *const what = argc > 1 ? argv[1] : "";
  parent = getpid();
  alarm(60);
  tc_pool_threads(4);
  return strcmp(what, "forks") == 0 ? forks() : strcmp(what, "exits") == 0 ? exits() : strcmp(what, "cancels") == 0 ? cancels() : 2;
}
