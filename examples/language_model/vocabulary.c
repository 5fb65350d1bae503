#include "vocabulary.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint32_t number(const unsigned char *p)
{
  return p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

static unsigned char *whole_file(const char *path, size_t *size)
{
  FILE *f = fopen(path, "rb");
  unsigned char *data = NULL;
  long end = -1;
  if (f == NULL) return NULL;
  if (fseek(f, 0, SEEK_END) == 0) end = ftell(f);
  if (end >= 0 && fseek(f, 0, SEEK_SET) == 0 && (data = malloc((size_t)end + 1)) != NULL && fread(data, 1, (size_t)end, f) != (size_t)end) {
    free(data);
    data = NULL;
  }
  *size = (size_t)end;
  fclose(f);
  return data;
}

static const char *parse(vocabulary *v, size_t size)
{
  size_t at = 20;
  if (size < 20 || memcmp(v->file, "tokens 1", 8) != 0) return "no file of vocabulary.py";
  v->tokens = number(v->file + 8), v->merges = number(v->file + 12), v->leading_space = number(v->file + 16);
  if (v->tokens == 0 || v->tokens > size / 4 || v->merges > size / 16) return "it is cut off";
  v->text = malloc(v->tokens * sizeof *v->text), v->length = malloc(v->tokens * sizeof *v->length);
  v->merge = malloc((v->merges + 1) * sizeof *v->merge);
  if (v->text == NULL || v->length == NULL || v->merge == NULL) return "no memory";
  for (uint32_t k = 0; k < v->tokens; k++) {
    if (size - at < 4 || number(v->file + at) > size - at - 4) return "it is cut off";
    v->length[k] = number(v->file + at), v->text[k] = v->file + at + 4;
    at += 4 + (size_t)v->length[k];
  }
  if ((size - at) / 16 < v->merges) return "it is cut off";
  for (uint32_t k = 0; k < v->merges; k++)
    for (int part = 0; part < 4; part++)
      if ((v->merge[k][part] = number(v->file + at + 16 * (size_t)k + 4 * (size_t)part)) >= v->tokens && part < 3) return "a merge of no token";
  return NULL;
}

const char *vocabulary_open(vocabulary *v, const char *path)
{
  size_t size = 0;
  const char *problem;
  memset(v, 0, sizeof *v);
  v->file = whole_file(path, &size);
  problem = v->file == NULL ? "it cannot be read" : parse(v, size);
  if (problem != NULL) vocabulary_close(v);
  return problem;
}

void vocabulary_close(vocabulary *v)
{
  free(v->text), free(v->length), free(v->merge), free(v->file);
  memset(v, 0, sizeof *v);
}

/* The last one: tokens that stand for a byte whatever it is come first. */
static int64_t token_of(const vocabulary *v, const unsigned char *text, size_t length)
{
  for (uint32_t k = v->tokens; k-- > 0;)
    if (v->length[k] == length && memcmp(v->text[k], text, length) == 0) return k;
  return -1;
}

static int compare_pairs(const void *a, const void *b)
{
  const uint32_t *p = a, *q = b;
  if (p[0] != q[0]) return p[0] < q[0] ? -1 : 1;
  return p[1] < q[1] ? -1 : p[1] > q[1];
}

/* Characters first, or their bytes; then the pair that is merged first of all that there are, until none is. */
int64_t vocabulary_encode(const vocabulary *v, const char *text, int64_t *ids, int64_t most)
{
  const unsigned char *at = (const unsigned char *)text, *end = at + strlen(text);
  int64_t n = 0;
  if (v->leading_space && at < end && n < most && (ids[n] = token_of(v, (const unsigned char *)" ", 1)) >= 0) n++;
  while (at < end) {
    size_t size = 1;
    while (at + size < end && (at[size] & 0xC0) == 0x80) size++;
    if (n >= most) return -1;
    if ((ids[n] = token_of(v, at, size)) < 0 && (ids[n] = token_of(v, at, size = 1)) < 0) return -1;
    n++, at += size;
  }
  for (;;) {
    const uint32_t *best = NULL;
    int64_t place = 0;
    for (int64_t k = 0; k + 1 < n; k++) {
      const uint32_t pair[4] = {(uint32_t)ids[k], (uint32_t)ids[k + 1], 0, 0};
      const uint32_t *m = bsearch(pair, v->merge, v->merges, sizeof *v->merge, compare_pairs);
      if (m != NULL && (best == NULL || m[3] < best[3])) best = m, place = k;
    }
    if (best == NULL) return n;
    ids[place] = best[2];
    n--;
    memmove(ids + place + 1, ids + place + 2, (size_t)(n - place - 1) * sizeof *ids);
  }
}
