/* SPDX-License-Identifier: 0BSD -- support text of tc-emit; do not edit */
/* The program around a model: main.c describes the model in a tc_model and calls tc_main. */
#ifndef TC_MAIN_H
#define TC_MAIN_H
#include "tc_clock.h"
#include "tc_files.h"
#include "tc_profile.h"
#include "tc_report.h"
#ifdef _OPENMP
#include <omp.h>
#endif

/* TC_SET_THREADS(n): how many threads run the chunks of kernels, after n are asked for (0: as many as there are). Who defines
 * TC_PARALLEL_FOR (tc_parallel.h) may define it, too. */
#ifndef TC_SET_THREADS
#define TC_SET_THREADS(n) tc_set_threads(n)
TC_IO int tc_set_threads(int n) {
#ifdef _OPENMP
  if (n > 0) omp_set_num_threads(n);
  return omp_get_max_threads();
#elif defined(TC_POOL)
  return tc_pool_threads(n);
#else
  (void)n;
  return 1;
#endif
}
#endif

/* A size that is chosen when the model runs. */
typedef struct {
  const char* name;
  int64_t least, most, usual; /* usual: where nobody states it */
} tc_size;

/* Of how many elements axis `axis` of input `input` has: `factor` times size `size`, or, if that is -1, `factor`. Terms of one
 * axis stand side by side and are added. */
typedef struct {
  int input, axis, size;
  int64_t factor;
} tc_sized_axis;

typedef struct {
  const char* name;
  int inputs, outputs;
  const tc_io_info *input, *output; /* with the largest sizes */
  const tc_size* size;
  int sizes;
  const tc_sized_axis* axis;
  int axes;
  const char* const* cpu; /* the kernels of several processors, by name: best, baseline, ... */
  int cpus;               /* 0: of one */
  int lanes, built_lanes; /* floats of a vector: as scheduled, and as compiled; 0: does not apply */
  void* instance;
  size_t align;             /* of weights */
  const char* weights_file; /* beside the program, where they are no part of it; NULL: they are */
  int (*map)(const char* path, const void** weights, size_t* bytes); /* with it: 0, or a status for message() */
  void (*unmap)(const void* weights);
  int (*open)(void* instance, const void* weights, size_t bytes, int cpu,
              const int64_t* sizes); /* NULL: its own weights. 0, or a status for message() */
  void (*shape)(const int64_t* sizes, int64_t* const* out_dims); /* what is known before a run; NULL: the largest */
  int (*run)(void* instance, const void* const* in, const int64_t* sizes, void* const* out, int64_t* const* out_dims);
  void (*close)(void* instance);
  void (*reset)(void* instance); /* empties the states before each run; NULL: there are none */
  const char* (*message)(int status);
#ifdef TC_PROFILE
  const tc_work* work; /* of the kernels, by name */
  int works;
#endif
} tc_model;

typedef struct {
  const char *inputs, *outputs, *expect, *weights, *trace, *cpu;
  uint64_t seed;
  double rtol, atol, bench;
  int64_t top, repeat;
  int threads, json, profile, help;
} tc_options;

TC_IO void tc_usage(const tc_model* m) {
  char text[512];
  printf(
      "usage: %s [options]\n"
      "  --inputs DIR     read input_0, input_1, ... or inputs by name, .npy or .pb; or one .npz file\n"
      "  --seed N         without --inputs: numbers from this seed (default 0)\n"
      "  --outputs DIR    write output_0.npy, ... (.pb where NumPy has no such type)\n"
      "  --expect DIR     compare with output_0, ... of DIR; exit code 1 if any differs\n"
      "  --rtol R         relative tolerance of --expect (default 1e-3)\n"
      "  --atol A         absolute tolerance of --expect (default 1e-7)\n"
      "  --weights FILE   a blob of weights of the same layout, in place of the program's own\n"
      "  --top K          print the K largest values of each output's last axis\n"
      "  --bench SECONDS  time runs\n"
      "  --repeat N       time N runs\n"
      "  --profile        compiled with TC_PROFILE: where the time goes, by kernel (--bench: for how long, default 1)\n"
      "  --trace FILE     compiled with TC_PROFILE: the steps of one run as Chrome's trace events\n"
      "  --threads N      threads, where it is built with any\n"
      "  --dim NAME=K     a size that is chosen at run time; without it that of the inputs, or the largest\n"
      "  --json           end with one line of JSON\n",
      m->name);
  for (int k = 0; k < m->cpus; k++)
    printf("%s%s%s", k == 0 ? "  --cpu NAME       kernels: " : "", m->cpu[k], k + 1 < m->cpus ? ", " : "\n");
  for (int k = 0; k < m->sizes; k++)
    if (m->size[k].usual < m->size[k].most)
      printf("size   \"%s\" from %lld on; where nobody states it %lld\n", m->size[k].name, (long long)m->size[k].least,
             (long long)m->size[k].usual);
    else
      printf("size   \"%s\" from %lld to %lld\n", m->size[k].name, (long long)m->size[k].least,
             (long long)m->size[k].most);
  for (int k = 0; k < m->inputs; k++)
    printf("input  %d \"%s\" %s\n", k, m->input[k].name,
           tc_describe(text, sizeof text, m->input[k].dtype, m->input[k].rank, m->input[k].dims));
  for (int k = 0; k < m->outputs; k++)
    printf("output %d \"%s\" %s\n", k, m->output[k].name,
           tc_describe(text, sizeof text, m->output[k].dtype, m->output[k].rank, m->output[k].dims));
}

/* A number that is the whole of a text and not negative. */
TC_IO int tc_number(const char* option, const char* text, double* value) {
  char* end;
  *value = strtod(text, &end);
  return end != text && *end == '\0' && *value >= 0 && *value <= 1e15
             ? 0
             : tc_fail("%s needs a number, not \"%s\"", option, text);
}

TC_IO int tc_parse_options(tc_options* o, int argc, char** argv) {
  for (int i = 1; i < argc; i++) {
    const char *a = argv[i], *v = i + 1 < argc ? argv[i + 1] : NULL;
    double number = 0;
    if (strcmp(a, "--json") == 0) {
      o->json = 1;
      continue;
    }
    if (strcmp(a, "--profile") == 0) {
      o->profile = 1;
      continue;
    }
    if (strcmp(a, "--help") == 0 || strcmp(a, "-h") == 0) {
      o->help = 1;
      continue;
    }
    if (strcmp(a, "--inputs") != 0 && strcmp(a, "--outputs") != 0 && strcmp(a, "--expect") != 0 &&
        strcmp(a, "--weights") != 0 && strcmp(a, "--seed") != 0 && strcmp(a, "--rtol") != 0 &&
        strcmp(a, "--atol") != 0 && strcmp(a, "--top") != 0 && strcmp(a, "--bench") != 0 &&
        strcmp(a, "--threads") != 0 && strcmp(a, "--trace") != 0 && strcmp(a, "--repeat") != 0 &&
        strcmp(a, "--cpu") != 0 && strcmp(a, "--dim") != 0)
      return tc_fail("unknown option %s; see --help", a);
    if (v == NULL) return tc_fail("%s needs a value", a);
    i++;
    if (strcmp(a, "--inputs") == 0)
      o->inputs = v;
    else if (strcmp(a, "--outputs") == 0)
      o->outputs = v;
    else if (strcmp(a, "--expect") == 0)
      o->expect = v;
    else if (strcmp(a, "--weights") == 0)
      o->weights = v;
    else if (strcmp(a, "--trace") == 0)
      o->trace = v;
    else if (strcmp(a, "--cpu") == 0)
      o->cpu = v;
    else if (strcmp(a, "--dim") == 0)
      continue; /* tc_stated_sizes */
    else if (tc_number(a, v, &number))
      return 1;
    else if (strcmp(a, "--seed") == 0)
      o->seed = (uint64_t)number;
    else if (strcmp(a, "--rtol") == 0)
      o->rtol = number;
    else if (strcmp(a, "--atol") == 0)
      o->atol = number;
    else if (strcmp(a, "--top") == 0)
      o->top = (int64_t)number;
    else if (strcmp(a, "--bench") == 0)
      o->bench = number;
    else if (strcmp(a, "--repeat") == 0)
      o->repeat = (int64_t)number;
    else
      o->threads = number < 4096 ? (int)number : 4096;
  }
#ifndef TC_PROFILE
  if (o->profile || o->trace != NULL)
    return tc_fail("%s needs a program compiled with TC_PROFILE: make NAME_profile",
                   o->profile ? "--profile" : "--trace");
#endif
  return 0;
}

/* --- tensors of one run. Outputs start with the model's (largest) dims; run() may write smaller ones. */
typedef struct {
  tc_tensor *in, *out;
  const void** in_data;
  void** out_data;
  int64_t** out_dims;
  int64_t* sizes; /* -1: not known yet */
} tc_run_data;

/* The sizes that --dim states; one that is stated twice is the last one. 0, or 1 after a message. */
TC_IO int tc_stated_sizes(const tc_model* m, int argc, char** argv, int64_t* sizes) {
  for (int k = 0; k < m->sizes; k++) sizes[k] = -1;
  for (int i = 1; i + 1 < argc; i++) {
    const char* equals;
    double number = 0;
    int k = 0;
    if (argv[i][0] == '-' && strcmp(argv[i], "--json") != 0 && strcmp(argv[i], "--profile") != 0 &&
        strcmp(argv[i], "--dim") != 0)
      i++;
    if (strcmp(argv[i], "--dim") != 0) continue;
    i++;
    equals = strrchr(argv[i], '=');
    while (k < m->sizes && (equals == NULL || strlen(m->size[k].name) != (size_t)(equals - argv[i]) ||
                            strncmp(argv[i], m->size[k].name, (size_t)(equals - argv[i])) != 0))
      k++;
    if (k == m->sizes) return tc_fail("--dim %s: NAME=K names one of the sizes that --help lists", argv[i]);
    if (tc_number("--dim", equals + 1, &number)) return 1;
    if (number < (double)m->size[k].least || number > (double)m->size[k].most || number != (double)(int64_t)number)
      return tc_fail("--dim %s: it is from %lld to %lld", argv[i], (long long)m->size[k].least,
                     (long long)m->size[k].most);
    sizes[k] = (int64_t)number;
  }
  return 0;
}

/* The sum of the terms at `a` that are known; `open` is the only one that is not, -1 if all are, -2 if several are not. Returns where
 * the terms of the next axis begin. */
TC_IO int tc_axis_terms(const tc_model* m, const int64_t* sizes, int a, int64_t* sum, int* open) {
  const int first = a;
  *sum = 0;
  *open = -1;
  for (; a < m->axes && m->axis[a].input == m->axis[first].input && m->axis[a].axis == m->axis[first].axis; a++) {
    const int k = m->axis[a].size;
    if (k < 0 || sizes[k] >= 0)
      *sum += m->axis[a].factor * (k < 0 ? 1 : sizes[k]);
    else
      *open = *open == -1 ? a : -2;
  }
  return a;
}

/* The sizes of input k as the file has them: each within its bounds, and everywhere the same. What several sizes add up to says one of
 * them when the others are known. */
TC_IO int tc_take_sizes(const tc_model* m, tc_run_data* d, int k) {
  for (int a = 0, next; a < m->axes; a = next) {
    const tc_sized_axis* axis = &m->axis[a];
    int64_t sum, n;
    int open;
    next = tc_axis_terms(m, d->sizes, a, &sum, &open);
    if (axis->input != k || open == -2) continue;
    n = d->in[k].dims[axis->axis];
    if (open >= 0) {
      const tc_size* size = &m->size[m->axis[open].size];
      const int64_t factor = m->axis[open].factor, value = (n - sum) / factor;
      if (value * factor != n - sum || value < size->least || value > size->most)
        return tc_fail("input_%d \"%s\": axis %d has %lld elements; \"%s\" is from %lld to %lld", k, m->input[k].name,
                       axis->axis, (long long)n, size->name, (long long)size->least, (long long)size->most);
      d->sizes[m->axis[open].size] = value;
    } else if (n != sum && next == a + 1 && axis->size >= 0 && axis->factor == 1) {
      return tc_fail("input_%d \"%s\": axis %d has %lld elements, but \"%s\" is %lld", k, m->input[k].name, axis->axis,
                     (long long)n, m->size[axis->size].name, (long long)sum);
    } else if (n != sum) {
      return tc_fail("input_%d \"%s\": axis %d has %lld elements, but by the other sizes it is %lld", k,
                     m->input[k].name, axis->axis, (long long)n, (long long)sum);
    }
  }
  return 0;
}

TC_IO void tc_tensor_of(tc_tensor* t, const tc_io_info* info) {
  t->dtype = info->dtype;
  t->rank = info->rank;
  if (info->rank > 0) memcpy(t->dims, info->dims, (size_t)info->rank * sizeof *info->dims);
}

/* Reads input k, or makes it of the sizes that are known. */
TC_IO int tc_input(const tc_model* m, const tc_options* o, const tc_source* source, int k, tc_run_data* d) {
  tc_tensor* t = &d->in[k];
  tc_tensor_of(t, &m->input[k]);
  if (o->inputs != NULL) {
    tc_tensor any = *t;
    for (int a = 0; a < m->axes; a++)
      if (m->axis[a].input == k) any.dims[m->axis[a].axis] = -1;
    return tc_source_read(source, "input", k, &m->input[k], any.dims, t) || tc_take_sizes(m, d, k);
  }
  for (int a = 0; a < m->axes; a++) { /* sizes that nobody states are the largest */
    const int64_t size = m->axis[a].size < 0              ? 1
                         : d->sizes[m->axis[a].size] >= 0 ? d->sizes[m->axis[a].size]
                                                          : m->size[m->axis[a].size].usual;
    if (m->axis[a].input != k) continue;
    if (a == 0 || m->axis[a - 1].input != k || m->axis[a - 1].axis != m->axis[a].axis) t->dims[m->axis[a].axis] = 0;
    t->dims[m->axis[a].axis] += m->axis[a].factor * size;
  }
  t->data = tc_allocate(tc_bytes(t));
  tc_seeded(t, o->seed, k);
  return 0;
}

TC_IO int tc_prepare(const tc_model* m, const tc_options* o, int argc, char** argv, tc_run_data* d) {
  tc_source source = {NULL, NULL, 0};
  int bad = 0;
  d->in = (tc_tensor*)tc_allocate((size_t)m->inputs * sizeof *d->in);
  d->out = (tc_tensor*)tc_allocate((size_t)m->outputs * sizeof *d->out);
  d->in_data = (const void**)tc_allocate((size_t)m->inputs * sizeof *d->in_data);
  d->out_data = (void**)tc_allocate((size_t)m->outputs * sizeof *d->out_data);
  d->out_dims = (int64_t**)tc_allocate((size_t)m->outputs * sizeof *d->out_dims);
  d->sizes = (int64_t*)tc_allocate((size_t)m->sizes * sizeof *d->sizes);
  bad = tc_stated_sizes(m, argc, argv, d->sizes);
  if (o->inputs != NULL && !bad)
    bad = tc_source_open(&source, o->inputs) || tc_source_has_more(&source, "input", m->inputs);
  for (int k = 0; k < m->inputs && !bad; k++) {
    bad = tc_input(m, o, &source, k, d);
    d->in_data[k] = d->in[k].data;
  }
  for (int round = 0; round < 2 && o->inputs != NULL; round++) { /* by now others may be known */
    for (int k = 0; k < m->inputs && !bad; k++) bad = tc_take_sizes(m, d, k);
    for (int k = 0; k < m->sizes; k++)
      if (d->sizes[k] < 0) d->sizes[k] = m->size[k].usual;
  }
  for (int k = 0; k < m->sizes; k++)
    if (d->sizes[k] < 0) d->sizes[k] = m->size[k].usual;
  for (int k = 0; k < m->outputs && !bad; k++) {
    tc_tensor_of(&d->out[k], &m->output[k]);
    d->out_dims[k] = d->out[k].dims;
  }
  if (m->shape != NULL && !bad) m->shape(d->sizes, d->out_dims);
  for (int k = 0; k < m->outputs && !bad; k++) {
    d->out[k].data = tc_allocate(tc_bytes(&d->out[k]));
    d->out_data[k] = d->out[k].data;
  }
  free(source.archive);
  return bad;
}

TC_IO void tc_release(const tc_model* m, tc_run_data* d) {
  for (int k = 0; d->in != NULL && k < m->inputs; k++) free(d->in[k].data);
  for (int k = 0; d->out != NULL && k < m->outputs; k++) free(d->out[k].data);
  free(d->in);
  free(d->out);
  free(d->in_data);
  free(d->out_data);
  free(d->out_dims);
  free(d->sizes);
}

TC_IO int tc_run(const tc_model* m, tc_run_data* d) {
  int status;
  if (m->reset != NULL) m->reset(m->instance);
  status = m->run(m->instance, d->in_data, d->sizes, d->out_data, d->out_dims);
  return status == 0 ? 0 : tc_fail("run: %s", m->message(status));
}

/* --- time */
TC_IO int tc_by_value(const void* a, const void* b) {
  const double x = *(const double*)a, y = *(const double*)b;
  return (x > y) - (x < y);
}

/* Warms up for a tenth of the time (one run at least), then runs until the time is over, or as often as is wanted.
 * Percentiles by nearest rank. */
TC_IO int tc_bench(const tc_model* m, const tc_options* o, tc_run_data* d) {
  size_t room = 1024, n = 0;
  double *ms = (double*)tc_allocate(room * sizeof *ms), start = tc_now(), before, after;
  int bad = 0;
  if (m->lanes > m->built_lanes && m->built_lanes > 0)
    fprintf(stderr, "note: scheduled for vectors of %d floats, compiled for %d; see TC_ARCH in the Makefile\n",
            m->lanes, m->built_lanes);
  do bad = tc_run(m, d);
  while (!bad && tc_now() - start < o->bench / 10);
  start = before = tc_now();
  while (!bad && (n == 0 || (o->repeat > 0 ? (int64_t)n < o->repeat : before - start < o->bench))) {
    bad = tc_run(m, d);
    after = tc_now();
    if (n == room) {
      double* larger = (double*)tc_allocate(2 * room * sizeof *ms);
      memcpy(larger, ms, n * sizeof *ms);
      free(ms);
      ms = larger;
      room *= 2;
    }
    ms[n++] = (after - before) * 1e3;
    before = tc_now();
  }
  if (!bad) {
    const char* form = o->json ? "{\"runs\":%zu,\"min_ms\":%.6g,\"median_ms\":%.6g,\"p95_ms\":%.6g,\"p99_ms\":%.6g}\n"
                               : "runs %zu  min %.6g ms  median %.6g ms  p95 %.6g ms  p99 %.6g ms\n";
    qsort(ms, n, sizeof *ms, tc_by_value);
    printf(form, n, ms[0], ms[(n - 1) / 2], ms[(n * 95 + 99) / 100 - 1], ms[(n * 99 + 99) / 100 - 1]);
  }
  free(ms);
  return bad;
}

#ifdef TC_PROFILE
/* Warms up as tc_bench does, then sums up runs, and keeps the steps of the last one. */
TC_IO int tc_profile(const tc_model* m, const tc_options* o, tc_run_data* d) {
  tc_profile_row* rows = (tc_profile_row*)tc_allocate(((size_t)m->works + 1) * sizeof *rows);
  const double wanted = o->bench > 0 ? o->bench : 1, start = tc_now();
  double runs = 0, seconds = 0, first;
  const int threads = TC_SET_THREADS(0);
  int bad = 0;
  memset(rows, 0, ((size_t)m->works + 1) * sizeof *rows);
  do {
    tc_events.used = 0;
    bad = tc_run(m, d);
  } while (!bad && tc_now() - start < wanted / 10);
  first = tc_now();
  do {
    const double before = tc_now();
    tc_events.used = 0;
    bad = bad || tc_run(m, d);
    seconds += tc_now() - before;
    runs += 1;
    tc_sum_up(rows, m->work, m->works, m->name);
  } while (!bad && tc_now() - first < wanted);
  if (!bad && o->trace != NULL) bad = tc_write_trace(o->trace, m->name);
  if (!bad && o->profile) tc_print_profile(rows, m->works + 1, runs, seconds, threads, o->json);
  free(rows);
  free(tc_events.list);
  return bad;
}
#endif

TC_IO int tc_expect(const tc_model* m, const tc_options* o, const tc_run_data* d) {
  tc_source source;
  int differ = 0, bad = tc_source_open(&source, o->expect) || tc_source_has_more(&source, "output", m->outputs);
  for (int k = 0; k < m->outputs && !bad; k++) {
    tc_tensor expected;
    bad = tc_source_read(&source, "output", k, &m->output[k], d->out[k].dims, &expected);
    if (!bad) differ |= tc_compare(m->output[k].name, &d->out[k], &expected, o->rtol, o->atol);
    if (!bad) free(expected.data);
  }
  free(source.archive);
  return bad || differ;
}

/* Everything after the run; returns the exit code. */
TC_IO int tc_use_outputs(const tc_model* m, const tc_options* o, tc_run_data* d) {
  int bad = 0;
  for (int k = 0; k < m->outputs && !bad; k++) {
    if (o->outputs != NULL) bad = tc_save(o->outputs, "output", k, &d->out[k]);
    if (o->top > 0) tc_top(m->output[k].name, &d->out[k], o->top);
    if (o->outputs == NULL && o->top == 0 && o->expect == NULL && o->bench <= 0 && o->repeat == 0 && !o->profile)
      tc_summary(m->output[k].name, &d->out[k]);
  }
  if (!bad && o->expect != NULL) bad = tc_expect(m, o, d);
#ifdef TC_PROFILE
  if ((o->profile || o->trace != NULL) && !bad) return tc_profile(m, o, d);
#endif
  if ((o->bench > 0 || o->repeat > 0) && !bad) return tc_bench(m, o, d);
  if (o->json) printf("{\"status\":\"%s\"}\n", bad ? "fail" : "ok");
  return bad;
}

/* The path of a file that lies beside the program. */
TC_IO char* tc_beside(const char* program, const char* name) {
  size_t folder = 0;
  char* path = (char*)tc_allocate(strlen(program) + strlen(name) + 1);
  for (size_t k = 0; program[k] != '\0'; k++)
    if (program[k] == '/' || program[k] == '\\') folder = k + 1;
  memcpy(path, program, folder);
  strcpy(path + folder, name);
  return path;
}

/* Puts the weights of a file into memory. *held: what holds them until the model is closed. */
TC_IO int tc_take_weights(const tc_model* m, const char* path, const void** held, const void** weights, size_t* bytes) {
  unsigned char *file, *memory;
  if (m->map != NULL) {
    const int status = m->map(path, weights, bytes);
    *held = *weights;
    return status == 0 ? 0 : tc_fail("%s: %s", path, m->message(status));
  }
  if ((file = tc_read_file(path, bytes)) == NULL) return tc_fail("cannot read %s", path);
  memory = (unsigned char*)tc_allocate(*bytes + m->align);
  *held = memory;
  *weights = memory + (m->align - (uintptr_t)memory % m->align);
  memcpy(memory + (m->align - (uintptr_t)memory % m->align), file, *bytes);
  free(file);
  return 0;
}

/* Opens the model with its own weights, or with those of a file, which *held holds until the model is closed. */
TC_IO int tc_open(const tc_model* m, const char* path, const char* cpu, const int64_t* sizes, const void** held) {
  const void* weights = NULL;
  size_t bytes = 0;
  int status, which = 0;
  if (cpu != NULL) {
    while (which < m->cpus && strcmp(cpu, m->cpu[which]) != 0) which++;
    if (which == m->cpus)
      return tc_fail(m->cpus > 0 ? "--cpu: there are no kernels %s; see --help"
                                 : "--cpu %s: there are kernels of one processor only",
                     cpu);
  }
  if (path != NULL && tc_take_weights(m, path, held, &weights, &bytes)) return 1;
  status = m->open(m->instance, weights, bytes, which, sizes);
  if (status == 0) return 0;
  return path != NULL ? tc_fail("%s: %s", path, m->message(status)) : tc_fail("init: %s", m->message(status));
}

TC_IO int tc_main(const tc_model* m, int argc, char** argv) {
  tc_options o = {NULL, NULL, NULL, NULL, NULL, NULL, 0, 1e-3, 1e-7, 0, 0, 0, 0, 0, 0, 0};
  tc_run_data d = {NULL, NULL, NULL, NULL, NULL, NULL};
  const void* held = NULL;
  char* own = NULL;
  int threads, bad = tc_parse_options(&o, argc, argv);
  if (bad) return 2;
  if (o.help) {
    tc_usage(m);
    return 0;
  }
  threads = TC_SET_THREADS(o.threads);
  if (o.threads > threads)
    fprintf(stderr, "note: runs on %d thread%s, as it was built\n", threads, threads == 1 ? "" : "s");
  if (o.weights == NULL && m->weights_file != NULL)
    o.weights = own = tc_beside(argc > 0 ? argv[0] : "", m->weights_file);
  bad = tc_prepare(m, &o, argc, argv, &d) || tc_open(m, o.weights, o.cpu, d.sizes, &held);
  if (!bad) {
    bad = tc_run(m, &d) || tc_use_outputs(m, &o, &d);
    m->close(m->instance);
  }
  tc_release(m, &d);
  if (m->unmap != NULL)
    m->unmap(held);
  else
    free((void*)(uintptr_t)held);
  free(own);
  return bad;
}

#endif
