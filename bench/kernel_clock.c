/* Counts calls and time of every function of an emitted package, for bench/kernels.py. The package is compiled with
 * -finstrument-functions, so that gcc calls the two hooks below; this file itself is not. Own time: callees are taken
 * off. One thread. */
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { FUNCTIONS = 1 << 14, DEPTH = 256 };

typedef struct {
  void    *function;
  uint64_t calls;
  double   own_ns;
} entry;

static entry  table[FUNCTIONS];
static double entered[DEPTH], inside[DEPTH]; /* when the call at a depth began, and what its callees took */
static int    depth;

static double now_ns(void)
{
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static entry *find(void *function)
{
  size_t at = ((uintptr_t)function >> 4) * 2654435761u % FUNCTIONS;
  while (table[at].function != NULL && table[at].function != function) at = (at + 1) % FUNCTIONS;
  table[at].function = function;
  return &table[at];
}

void __cyg_profile_func_enter(void *function, void *caller)
{
  (void)function;
  (void)caller;
  if (depth < DEPTH) {
    inside[depth] = 0;
    entered[depth] = now_ns();
  }
  depth++;
}

void __cyg_profile_func_exit(void *function, void *caller)
{
  (void)caller;
  depth--;
  if (depth < DEPTH) {
    const double total = now_ns() - entered[depth];
    entry *e = find(function);
    e->calls++;
    e->own_ns += total - inside[depth];
    if (depth > 0) inside[depth - 1] += total;
  }
}

/* One line a function: address, calls, own nanoseconds. */
__attribute__((destructor)) static void write_table(void)
{
  const char *path = getenv("KERNEL_CLOCK_FILE");
  FILE *f = path == NULL ? NULL : fopen(path, "w");
  if (f == NULL) return;
  for (int i = 0; i < FUNCTIONS; i++)
    if (table[i].function != NULL) fprintf(f, "%p %llu %.0f\n", table[i].function, (unsigned long long)table[i].calls, table[i].own_ns);
  fclose(f);
}
