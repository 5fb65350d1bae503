/* SPDX-License-Identifier: 0BSD -- support text of tc-emit; do not edit */
/* Where the time of a run goes, for a program that is compiled with TC_PROFILE. The executor calls tc_trace_begin and
 * tc_trace_end around its steps (tc_trace.h); a table sums them up by kernel, a file has those of one run, one by one. */
#ifndef TC_PROFILE_H
#define TC_PROFILE_H
#ifdef TC_PROFILE
#include "tc_clock.h"
#include "tc_trace.h"

/* What one call of a kernel does: multiply-accumulates, bytes of operands, the nanoseconds that one thread (CUDA: the device)
 * takes at least (0: not known), and on how many threads it can run. With TC_NO_FLOORS, the program runs on something else than
 * what these nanoseconds are of. */
typedef struct {
  const char* kernel;
  double macs, bytes, floor_ns;
  int chunks;
} tc_work;

typedef struct {
  const char* step;
  double begin, seconds;
} tc_event;

typedef struct {
  const tc_work* work; /* NULL: a copy, or something else that is no kernel */
  const char* name;    /* of the kernel, or of the function called; up to a parenthesis */
  double calls, seconds;
} tc_profile_row;

/* The steps of the last run. One run at a time is profiled. */
static struct {
  tc_event* list;
  size_t used, room;
} tc_events;

void tc_trace_begin(const char* step) {
  tc_event* e;
  if (tc_events.used == tc_events.room) {
    tc_event* larger = (tc_event*)tc_allocate((2 * tc_events.room + 1024) * sizeof *larger);
    if (tc_events.used > 0) memcpy(larger, tc_events.list, tc_events.used * sizeof *larger);
    free(tc_events.list);
    tc_events.list = larger;
    tc_events.room = 2 * tc_events.room + 1024;
  }
  e = &tc_events.list[tc_events.used++];
  e->step = step;
  e->begin = tc_now();
}

void tc_trace_end(const char* step) {
  const double now = tc_now();
  tc_event* e = &tc_events.list[tc_events.used - 1];
  if (e->step == step) e->seconds = now - e->begin;
}

/* "conv_3x3_0a1b(AT(x), ...)" of the step "NAME_conv_3x3_0a1b(AT(x), ...)". */
TC_IO const char* tc_called(const char* step, const char* model) {
  const size_t n = strlen(model);
  return strncmp(step, model, n) == 0 && step[n] == '_' ? step + n + 1 : step;
}

TC_IO int tc_name_length(const char* called) { return (int)strcspn(called, "("); }

/* Adds the last run to the rows; `n` of `works + 1` are used, the first `works` by kernels. All that is no kernel shares a row. */
TC_IO void tc_sum_up(tc_profile_row* rows, const tc_work* work, int works, const char* model) {
  for (size_t i = 0; i < tc_events.used; i++) {
    const char* called = tc_called(tc_events.list[i].step, model);
    const size_t length = (size_t)tc_name_length(called);
    int low = 0, high = works; /* the first kernel that is not before it in the order of names */
    while (low < high) {
      const int middle = (low + high) / 2, order = strncmp(work[middle].kernel, called, length);
      if (order < 0)
        low = middle + 1;
      else
        high = middle;
    }
    if (low < works && (strncmp(work[low].kernel, called, length) != 0 || work[low].kernel[length] != '\0'))
      low = works;
    rows[low].work = low < works ? &work[low] : NULL;
    rows[low].name = low < works ? work[low].kernel : "copies";
    rows[low].calls += 1;
    rows[low].seconds += tc_events.list[i].seconds;
  }
}

TC_IO int tc_by_seconds(const void* a, const void* b) {
  const tc_profile_row *x = (const tc_profile_row*)a, *y = (const tc_profile_row*)b;
  return (x->seconds < y->seconds) - (x->seconds > y->seconds);
}

/* A number for a column that may have none. */
TC_IO const char* tc_cell(char* text, size_t room, const char* form, double value) {
  if (value > 0)
    snprintf(text, room, form, value);
  else
    snprintf(text, room, "-");
  return text;
}

TC_IO void tc_print_row(const tc_profile_row* r, double runs, double total, int threads, int json) {
  const double ns = r->seconds * 1e9 / r->calls; /* of a call */
  const double used = r->work != NULL && r->work->chunks < threads ? r->work->chunks : threads;
  const double gflops = r->work != NULL ? 2 * r->work->macs / ns : 0, gbs = r->work != NULL ? r->work->bytes / ns : 0;
#ifdef TC_NO_FLOORS
  const double floor_ns = 0;
#else
  const double floor_ns = r->work != NULL ? r->work->floor_ns : 0;
#endif
  const double floor_share = floor_ns / used / ns;
  char cell[3][32];
  if (json) {
    printf("{\"kernel\":\"%s\",\"calls\":%.6g,\"total_us\":%.6g,\"mean_us\":%.6g,\"share\":%.6g", r->name,
           r->calls / runs, r->seconds * 1e6 / runs, ns * 1e-3, r->seconds / total);
    if (r->work != NULL) printf(",\"gflops\":%.6g,\"gbs\":%.6g", gflops, gbs);
    if (floor_share > 0) printf(",\"floor_share\":%.6g", floor_share);
    printf("}");
    return;
  }
  printf("%7.5g %11.3f %11.3f %6.1f%% %9s %8s %7s  %s\n", r->calls / runs, r->seconds * 1e6 / runs, ns * 1e-3,
         100 * r->seconds / total, tc_cell(cell[0], sizeof cell[0], "%.1f", gflops),
         tc_cell(cell[1], sizeof cell[1], "%.1f", gbs), tc_cell(cell[2], sizeof cell[2], "%.0f%%", 100 * floor_share),
         r->name);
}

/* The table: what a run of `seconds` on average spends where, the longest first. */
TC_IO void tc_print_profile(tc_profile_row* rows, int n, double runs, double seconds, int threads, int json) {
  double inside = 0;
  for (int i = 0; i < n; i++) inside += rows[i].seconds;
  if (inside <= 0) inside = 1;
  qsort(rows, (size_t)n, sizeof *rows, tc_by_seconds);
  if (json)
    printf("{\"runs\":%.0f,\"mean_us\":%.6g,\"inside_us\":%.6g,\"threads\":%d,\"kernels\":[", runs,
           seconds * 1e6 / runs, inside * 1e6 / runs, threads);
  else
    printf("%.0f runs, %.2f us each, %.2f us in their steps; threads: %d\n%7s %11s %11s %7s %9s %8s %7s  %s\n", runs,
           seconds * 1e6 / runs, inside * 1e6 / runs, threads, "calls", "us a run", "us a call", "share", "GFLOP/s",
           "GB/s", "floor", "kernel");
  for (int i = 0; i < n && rows[i].calls > 0; i++) {
    if (json && i > 0) printf(",");
    tc_print_row(&rows[i], runs, inside, threads, json);
  }
  if (json) printf("]}\n");
}

/* The last run as Chrome's trace events, which Perfetto and chrome://tracing show. A file that cannot be written is removed. */
TC_IO int tc_write_trace(const char* path, const char* model) {
  FILE* f = fopen(path, "w");
  int bad;
  if (f == NULL) return tc_fail("cannot write %s", path);
  fprintf(f,
          "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n{\"name\":\"process_name\",\"ph\":\"M\",\"pid\":1,\"tid\":1,"
          "\"args\":{\"name\":\"%s\"}}",
          model);
  for (size_t i = 0; i < tc_events.used; i++) {
    const tc_event* e = &tc_events.list[i];
    const char* called = tc_called(e->step, model);
    fprintf(
        f,
        ",\n{\"name\":\"%.*s\",\"ph\":\"X\",\"pid\":1,\"tid\":1,\"ts\":%.3f,\"dur\":%.3f,\"args\":{\"step\":\"%s\"}}",
        tc_name_length(called), called, (e->begin - tc_events.list[0].begin) * 1e6, e->seconds * 1e6, e->step);
  }
  fprintf(f, "\n]}\n");
  bad = ferror(f) != 0;
  bad |= fclose(f) != 0;
  if (!bad) return 0;
  remove(path);
  return tc_fail("cannot write %s", path);
}

#endif
#endif
