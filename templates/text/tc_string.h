/* SPDX-License-Identifier: 0BSD -- support text of tc-emit; do not edit */
/* Strings: views of bytes that lie elsewhere. */
#ifndef TC_STRING_H
#define TC_STRING_H
#include <stddef.h>
#include <stdint.h>
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

static inline int64_t tc_string_size(tc_string s) { return (int64_t)s.size; }

/* Byte i; 0 outside of the string. */
static inline int64_t tc_string_byte(tc_string s, int64_t i)
{
  return i >= 0 && (uint64_t)i < s.size ? (int64_t)(unsigned char)s.data[i] : 0;
}

/* The first n bytes, or as many as there are. */
static inline tc_string tc_string_first(tc_string s, int64_t n)
{
  if (n < 0) n = 0;
  if ((uint64_t)n < s.size) s.size = (size_t)n;
  return s;
}

/* What is behind the first n bytes. */
static inline tc_string tc_string_from(tc_string s, int64_t n)
{
  if (n <= 0) return s;
  if ((uint64_t)n >= s.size) return tc_no_string();
  s.data += n;
  s.size -= (size_t)n;
  return s;
}

/* Memory for strings that are made, from `next` to `end`. Once one did not fit, `full` is 1, and strings stay empty. */
typedef struct {
  char *next, *end;
  int   full;
} tc_made;

static inline char *tc_made_room(tc_made *m, size_t bytes)
{
  char *p = m->next;
  if ((size_t)(m->end - p) < bytes) {
    m->full = 1;
    return NULL;
  }
  m->next += bytes;
  return p;
}

static inline tc_string tc_string_join(tc_string a, tc_string b, tc_made *m)
{
  tc_string s = tc_no_string();
  char *p;
  if (a.size == 0) return b;
  if (b.size == 0) return a;
  p = tc_made_room(m, a.size > (size_t)-1 - b.size ? (size_t)-1 : a.size + b.size);
  if (p == NULL) return s;
  memcpy(p, a.data, a.size);
  memcpy(p + a.size, b.data, b.size);
  s.data = p;
  s.size = a.size + b.size;
  return s;
}

#endif
