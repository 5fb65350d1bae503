/* The two macros that make a package run on this pool: compile all of it with -include pool.h. */
#ifndef POOL_H
#define POOL_H

/* Calls part(args, 0), ... part(args, chunks - 1) on the threads of the pool and returns when all have ended. */
void pool_for(void (*part)(const void *args, int chunk), const void *args, int chunks);

/* Makes it `wanted` threads, the caller's among them, or leaves it as it is if that is 0. Returns how many there are. */
int pool_threads(int wanted);

#define TC_PARALLEL_FOR(part, args, chunks) pool_for(part, args, chunks)
#define TC_SET_THREADS(n) pool_threads(n)

#endif
