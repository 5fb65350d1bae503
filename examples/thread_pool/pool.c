/* A pool of threads: workers sleep until there is a loop, and take its chunks until none is left. */
#define _POSIX_C_SOURCE 200809L
#include "pool.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <unistd.h>

enum { MOST = 64 };

typedef struct {
  void (*part)(const void *args, int chunk); /* NULL: there is no loop */
  const void *args;
  int         chunks;
} loop;

static struct {
  pthread_mutex_t taken;      /* by the caller whose loop has the pool, or who changes the number of threads */
  pthread_mutex_t lock;       /* of all that follows but next */
  pthread_cond_t  work, done; /* there is a loop; the last worker has left it */
  pthread_t       worker[MOST];
  int             workers, quit, inside;
  unsigned        loops; /* how many there have been */
  loop            now;
  atomic_int      next; /* chunk */
} pool = {.taken = PTHREAD_MUTEX_INITIALIZER, .lock = PTHREAD_MUTEX_INITIALIZER, .work = PTHREAD_COND_INITIALIZER, .done = PTHREAD_COND_INITIALIZER};

static void take_chunks(loop l)
{
  for (int chunk; (chunk = atomic_fetch_add(&pool.next, 1)) < l.chunks;) l.part(l.args, chunk);
}

static void *work(void *unused)
{
  pthread_mutex_lock(&pool.lock);
  for (unsigned seen = 0; !pool.quit;) {
    if (seen == pool.loops || !pool.now.part) { /* nothing new, or over before this thread woke up */
      pthread_cond_wait(&pool.work, &pool.lock);
      continue;
    }
    const loop l = pool.now;
    seen = pool.loops;
    pool.inside++;
    pthread_mutex_unlock(&pool.lock);
    take_chunks(l);
    pthread_mutex_lock(&pool.lock);
    if (--pool.inside == 0) pthread_cond_signal(&pool.done);
  }
  pthread_mutex_unlock(&pool.lock);
  return unused;
}

/* Under pool.taken: ends the workers that there are and starts others, as many as the system gives. */
static void set_workers(int wanted)
{
  pthread_mutex_lock(&pool.lock);
  pool.quit = 1;
  pthread_cond_broadcast(&pool.work);
  pthread_mutex_unlock(&pool.lock);
  while (pool.workers > 0) pthread_join(pool.worker[--pool.workers], NULL);
  pool.quit = 0;
  while (pool.workers < wanted && pool.workers < MOST && pthread_create(&pool.worker[pool.workers], NULL, work, NULL) == 0) pool.workers++;
}

static void start(void) { set_workers((int)sysconf(_SC_NPROCESSORS_ONLN) - 1); }
static pthread_once_t started = PTHREAD_ONCE_INIT;

int pool_threads(int wanted)
{
  int threads;
  pthread_once(&started, start);
  pthread_mutex_lock(&pool.taken);
  if (wanted > 0 && wanted != pool.workers + 1) set_workers(wanted - 1);
  threads = pool.workers + 1;
  pthread_mutex_unlock(&pool.taken);
  return threads;
}

void pool_for(void (*part)(const void *args, int chunk), const void *args, int chunks)
{
  const loop l = {part, args, chunks};
  pthread_once(&started, start);
  /* One chunk, or another instance's loop has the pool: this thread alone. */
  if (chunks < 2 || pthread_mutex_trylock(&pool.taken) != 0) {
    for (int chunk = 0; chunk < chunks; chunk++) part(args, chunk);
    return;
  }
  pthread_mutex_lock(&pool.lock);
  atomic_store(&pool.next, 0);
  pool.now = l;
  pool.loops++;
  pthread_cond_broadcast(&pool.work);
  pthread_mutex_unlock(&pool.lock);
  take_chunks(l);
  pthread_mutex_lock(&pool.lock);
  pool.now.part = NULL;
  while (pool.inside > 0) pthread_cond_wait(&pool.done, &pool.lock);
  pthread_mutex_unlock(&pool.lock);
  pthread_mutex_unlock(&pool.taken);
}
