/* SPDX-License-Identifier: 0BSD -- support text of tc-emit; do not edit */
/* What the program around a model says about tensors: a comparison, a summary, the largest values. */
#ifndef TC_REPORT_H
#define TC_REPORT_H
#include <math.h>

#include "tc_io.h"

/* Numbers of a tensor: complex elements are two. */
TC_IO int64_t tc_numbers(const tc_tensor* t) { return tc_elements(t) * (tc_dtype(t->dtype)->kind == 'c' ? 2 : 1); }

/* A double's place in the order of all floats of a type: neighbours differ by 1. */
TC_IO int64_t tc_place(int dtype, double x) {
  int64_t magnitude;
  if (dtype == TC_DOUBLE || dtype == TC_COMPLEX128) {
    double a = fabs(x);
    memcpy(&magnitude, &a, 8);
  } else if (dtype == TC_FLOAT16) {
    magnitude = tc_f16_from_f32((float)fabs(x));
  } else if (dtype == TC_BFLOAT16) {
    magnitude = tc_bf16_from_f32((float)fabs(x));
  } else {
    magnitude = (int64_t)tc_float_bits((float)fabs(x));
  }
  return x < 0 ? -magnitude : magnitude;
}

/* Prints one line. 0 if every number is within atol + rtol * |expected|; NaN matches NaN, integers must be equal. */
TC_IO int tc_compare(const char* name, const tc_tensor* got, const tc_tensor* expected, double rtol, double atol) {
  const int is_float = tc_dtype(got->dtype)->kind == 'f' || tc_dtype(got->dtype)->kind == 'c';
  const int64_t n = tc_numbers(got), wide = tc_dtype(got->dtype)->bytes == 8 && !is_float;
  double max_abs = 0, max_rel = 0;
  uint64_t max_ulp = 0;
  int64_t wrong = 0, first = -1;
  for (int64_t i = 0; i < n; i++) {
    const double a = tc_value(got, i), e = tc_value(expected, i), difference = fabs(a - e);
    int ok = a == e || (a != a && e != e);
    if (wide) ok = memcmp((const int64_t*)got->data + i, (const int64_t*)expected->data + i, 8) == 0;
    if (!ok && a == a && e == e) {
      const uint64_t ulp = (uint64_t)tc_place(got->dtype, a) - (uint64_t)tc_place(got->dtype, e),
                     distance = a > e ? ulp : 0 - ulp;
      if (difference > max_abs) max_abs = difference;
      if (e != 0 && difference / fabs(e) > max_rel) max_rel = difference / fabs(e);
      if (is_float && distance > max_ulp) max_ulp = distance;
      if (is_float && difference <= atol + rtol * fabs(e) && difference < (double)INFINITY) ok = 1;
    }
    if (!ok && wrong++ == 0) first = i;
  }
  printf("output \"%s\": max abs %.3g  max rel %.3g  max ulp %llu  %s", name, max_abs, max_rel,
         (unsigned long long)max_ulp, wrong == 0 ? "PASS" : "FAIL");
  if (is_float) printf(" (rtol %g atol %g)", rtol, atol);
  if (wrong > 0)
    printf(", %lld of %lld differ, first at %lld: %.9g, expected %.9g", (long long)wrong, (long long)n,
           (long long)first, tc_value(got, first), tc_value(expected, first));
  printf("\n");
  return wrong != 0;
}

/* Shape, first values, smallest, largest, mean. */
TC_IO void tc_summary(const char* name, const tc_tensor* t) {
  char text[512];
  const int64_t n = tc_numbers(t);
  double least = (double)INFINITY, most = -(double)INFINITY, sum = 0;
  int64_t nans = 0;
  for (int64_t i = 0; i < n; i++) {
    const double v = tc_value(t, i);
    if (v != v) {
      nans++;
      continue;
    }
    if (v < least) least = v;
    if (v > most) most = v;
    sum += v;
  }
  printf("output \"%s\" %s:", name, tc_describe(text, sizeof text, t->dtype, t->rank, t->dims));
  for (int64_t i = 0; i < n && i < 8; i++) printf(" %.6g", tc_value(t, i));
  if (n > 8) printf(" ...");
  if (n > nans) printf("  min %.6g  max %.6g  mean %.6g", least, most, sum / (double)(n - nans));
  if (nans > 0) printf("  NaN %lld", (long long)nans);
  printf("\n");
}

/* The k largest numbers of each row of the last axis, largest first; of equal ones, the first comes first. */
TC_IO void tc_top(const char* name, const tc_tensor* t, int64_t k) {
  const int64_t n = tc_elements(t), row = t->rank == 0 ? 1 : t->dims[t->rank - 1], rows = row > 0 ? n / row : 0;
  unsigned char* taken;
  if (tc_dtype(t->dtype)->kind == 'c' || row <= 0) return;
  taken = (unsigned char*)tc_allocate((size_t)row);
  for (int64_t r = 0; r < rows && r < 16; r++) {
    memset(taken, 0, (size_t)row);
    printf("output \"%s\" row %lld:", name, (long long)r);
    for (int64_t j = 0; j < k && j < row; j++) {
      int64_t best = -1;
      for (int64_t i = 0; i < row; i++)
        if (!taken[i] && (best < 0 || tc_value(t, r * row + i) > tc_value(t, r * row + best))) best = i;
      taken[best] = 1;
      printf(" %lld (%.6g)", (long long)best, tc_value(t, r * row + best));
    }
    printf("\n");
  }
  if (rows > 16) printf("output \"%s\": %lld more rows\n", name, (long long)(rows - 16));
  free(taken);
}

#endif
