/* SPDX-License-Identifier: 0BSD -- support text of tc-emit; do not edit */
/* Strings: views of bytes that lie elsewhere. */
#ifndef TC_STRING_H
#define TC_STRING_H
#include <stddef.h>
#include <string.h>

#ifndef TC_STRING_TYPE
#define TC_STRING_TYPE
typedef struct {
  const char *data;  /* any bytes, 0 among them; none ends them */
  size_t      size;  /* bytes */
} tc_string;
#endif

static inline tc_string tc_no_string(void)
{
  tc_string s;
  s.data = "";
  s.size = 0;
  return s;
}

static inline int tc_string_equal(tc_string a, tc_string b)
{
  return a.size == b.size && (a.size == 0 || memcmp(a.data, b.data, a.size) == 0);
}

/* Below, at or above 0 as a stands before, at or behind b in the order of their bytes. */
static inline int tc_string_compare(tc_string a, tc_string b)
{
  const size_t n = a.size < b.size ? a.size : b.size;
  const int order = n == 0 ? 0 : memcmp(a.data, b.data, n);
  return order != 0 ? order : (a.size > b.size) - (a.size < b.size);
}

#endif
