/* Times a network that another tool printed: one float tensor in, one out.
 * usage: timed WEIGHTS INPUT.raw OUTPUT.raw SECONDS
 * WEIGHTS is the file that emx-onnx-cgen leaves beside its text; onnx2c leaves none.
 * OUTPUT.raw has the size of the output and is overwritten. The last line is {"runs", "median_ms"}. */
#define _POSIX_C_SOURCE 199309L
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#ifdef ONNX2C
void entry(const float *input, float *output);
static int load(const char *path) { return path != NULL; }
#else
#include <stdbool.h>
bool model_load(const char *path);
void model(const float *input, float *output);
#define entry model
static int load(const char *path) { return model_load(path); }
#endif

enum { MAX_RUNS = 1 << 20 };

static float *read_floats(const char *path, size_t *count) {
  FILE *file = fopen(path, "rb");
  if (!file || fseek(file, 0, SEEK_END)) exit(2);
  *count = (size_t)ftell(file) / sizeof(float);
  rewind(file);
  float *values = malloc(*count * sizeof(float));
  if (!values || fread(values, sizeof(float), *count, file) != *count) exit(2);
  fclose(file);
  return values;
}

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int compare(const void *a, const void *b) {
  const double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

int main(int argc, char **argv) {
  if (argc != 5 || !load(argv[1])) return 2;
  size_t inputs, outputs;
  float *input = read_floats(argv[2], &inputs), *output = read_floats(argv[3], &outputs);
  const double seconds = atof(argv[4]);
  static double times[MAX_RUNS];
  int runs = 0;
  entry(input, output);
  for (const double end = now() + seconds / 5; now() < end;) entry(input, output);
  for (const double end = now() + seconds; (runs < 3 || now() < end) && runs < MAX_RUNS; runs++) {
    const double start = now();
    entry(input, output);
    times[runs] = 1e3 * (now() - start);
  }
  FILE *file = fopen(argv[3], "wb");
  if (!file || fwrite(output, sizeof(float), outputs, file) != outputs || fclose(file)) return 2;
  qsort(times, (size_t)runs, sizeof *times, compare);
  printf("{\"runs\": %d, \"median_ms\": %.6f}\n", runs, times[runs / 2]);
  return 0;
}
