/* Loads a shared library of the package `products`, runs it, and unloads it while its workers wait for the next loop. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

/* The types of products.h, as far as this needs them: an instance is small, inputs and outputs are pointers. */
typedef int (*init_function)(void *, const void *, size_t, void *, size_t);
typedef int (*run_function)(const void *, const void *, const void *);
typedef void (*free_function)(void *);

int main(int argc, char **argv)
{
  static float x[1 << 20], y[1 << 20];
  const void *in[4] = {x, x, x, x}, *out[4] = {y, y, y, y};
  for (int times = 0; times < 20; times++) {
    char instance[256];
    void *const library = argc > 1 ? dlopen(argv[1], RTLD_NOW) : NULL;
    if (!library) return fprintf(stderr, "%s\n", dlerror()), 1;
    int (*const threads)(int) = (int (*)(int))dlsym(library, "tc_pool_threads");
    const init_function init = (init_function)dlsym(library, "products_init");
    const run_function run = (run_function)dlsym(library, "products_run");
    const free_function end = (free_function)dlsym(library, "products_free");
    if (!threads || !init || !run || !end || threads(4) != 4) return 2;
    if (init(instance, NULL, 0, NULL, 0) != 0 || run(instance, in, out) != 0) return 3;
    end(instance);
    if (dlclose(library) != 0) return 4;
    nanosleep(&(struct timespec){0, 2000000}, NULL);
  }
  return 0;
}
