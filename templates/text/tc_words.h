/* SPDX-License-Identifier: 0BSD -- support text of tc-emit; do not edit */
/* Tensors of strings, for the program around a model (main.c): their data are views, and the bytes of what was read from a
 * file lie behind the views in the same block of memory. */
#ifndef TC_WORDS_H
#define TC_WORDS_H
#include "tc_io.h"
#include "tc_string.h"

/* Room for the views of a tensor and `bytes` bytes, which *text points to. */
TC_IO void tc_words_allocate(tc_tensor *t, size_t bytes, char **text)
{
  t->data = tc_allocate(tc_bytes(t) + bytes);
  *text = (char *)t->data + tc_bytes(t);
}

/* The UTF-8 of a code point; returns how many bytes. */
TC_IO size_t tc_words_utf8(char *to, uint32_t c)
{
  if (c < 0x80) {
    to[0] = (char)c;
    return 1;
  }
  if (c < 0x800) {
    to[0] = (char)(0xC0 | c >> 6);
    to[1] = (char)(0x80 | (c & 0x3F));
    return 2;
  }
  if (c < 0x10000) {
    to[0] = (char)(0xE0 | c >> 12);
    to[1] = (char)(0x80 | (c >> 6 & 0x3F));
    to[2] = (char)(0x80 | (c & 0x3F));
    return 3;
  }
  to[0] = (char)(0xF0 | (c >> 18 & 7));
  to[1] = (char)(0x80 | (c >> 12 & 0x3F));
  to[2] = (char)(0x80 | (c >> 6 & 0x3F));
  to[3] = (char)(0x80 | (c & 0x3F));
  return 4;
}

/* What NumPy calls <U5 (code points of 4 bytes) or |S5 (bytes), filled up with zeros: `width` bytes an element. */
TC_IO void tc_words_from_npy(tc_tensor *t, char kind, size_t width, int swap, const unsigned char *from)
{
  const int64_t n = tc_elements(t);
  const size_t unit = kind == 'U' ? 4 : 1;
  tc_string *words;
  char *text;
  tc_words_allocate(t, (size_t)n * width, &text);
  words = (tc_string *)t->data;
  for (int64_t i = 0; i < n; i++, from += width) {
    size_t used = width;
    while (used > 0 && from[used - 1] == 0) used--;
    words[i].data = text;
    for (size_t k = 0; k < used; k += unit) {
      uint32_t c = from[k];
      if (unit == 1) {
        *text++ = (char)c;
        continue;
      }
      memcpy(&c, from + k, 4);
      if (swap) c = c >> 24 | (c >> 8 & 0xFF00) | (c << 8 & 0xFF0000) | c << 24;
      text += tc_words_utf8(text, c);
    }
    words[i].size = (size_t)(text - words[i].data);
  }
}

/* In quotes, at most 60 bytes of it, those that cannot be printed as \xNN. */
TC_IO void tc_words_print(tc_string s)
{
  putchar('"');
  for (size_t k = 0; k < s.size && k < 60; k++) {
    const unsigned char c = (unsigned char)s.data[k];
    if (c == '"' || c == '\\') printf("\\%c", c);
    else if (c >= 32 && c < 127) putchar(c);
    else printf("\\x%02x", (unsigned)c);
  }
  fputs(s.size > 60 ? "...\"" : "\"", stdout);
}

/* Prints one line. 0 if all strings are equal. */
TC_IO int tc_words_compare(const char *name, const tc_tensor *got, const tc_tensor *expected)
{
  const tc_string *a = (const tc_string *)got->data, *e = (const tc_string *)expected->data;
  const int64_t n = tc_elements(got);
  int64_t wrong = 0, first = -1;
  for (int64_t i = 0; i < n; i++)
    if (!tc_string_equal(a[i], e[i]) && wrong++ == 0) first = i;
  printf("output \"%s\": %lld strings  %s", name, (long long)n, wrong == 0 ? "PASS" : "FAIL");
  if (wrong > 0) {
    printf(", %lld differ, first at %lld: ", (long long)wrong, (long long)first);
    tc_words_print(a[first]);
    printf(", expected ");
    tc_words_print(e[first]);
  }
  printf("\n");
  return wrong != 0;
}

TC_IO void tc_words_summary(const char *name, const tc_tensor *t)
{
  char text[512];
  const int64_t n = tc_elements(t);
  printf("output \"%s\" %s:", name, tc_describe(text, sizeof text, t->dtype, t->rank, t->dims));
  for (int64_t i = 0; i < n && i < 8; i++) {
    putchar(' ');
    tc_words_print(((const tc_string *)t->data)[i]);
  }
  printf(n > 8 ? " ...\n" : "\n");
}

/* The word that a random number stands for. */
TC_IO tc_string tc_words_pick(uint64_t random)
{
  static const char *const words[8] = {"a", "b", "c", "cat", "dog", "Red", "new york", ""};
  tc_string s;
  s.data = words[random & 7];
  s.size = strlen(s.data);
  return s;
}

#endif
