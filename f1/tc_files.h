/* SPDX-License-Identifier: 0BSD -- support text of tc-emit; do not edit */
/* Tensors of a model from and to a folder or an archive; seeded inputs. */
#ifndef TC_FILES_H
#define TC_FILES_H
#include "tc_npz.h"
#include "tc_pb.h"
#if defined(_WIN32)
#include <direct.h>
#else
#include <sys/stat.h>
#include <sys/types.h>
#endif

TC_IO int tc_ends_with(const char* text, const char* end) {
  const size_t n = strlen(text), m = strlen(end);
  return n >= m && strcmp(text + n - m, end) == 0;
}

/* A place that tensors come from: a folder, or an archive that is in memory. */
typedef struct {
  const char* path;
  unsigned char* archive; /* NULL: a folder */
  size_t size;
} tc_source;

TC_IO int tc_source_open(tc_source* s, const char* path) {
  s->path = path;
  s->archive = NULL;
  s->size = 0;
  if (!tc_ends_with(path, ".npz")) return 0;
  s->archive = tc_read_file(path, &s->size);
  return s->archive == NULL ? tc_fail("cannot read %s", path) : 0;
}

/* Looks for stem.npy and stem.pb. 0: read; 1: failed, with a message; -1: there is none. */
TC_IO int tc_source_try(const tc_source* s, const char* stem, tc_tensor* t) {
  const size_t room = strlen(s->path) + strlen(stem) + 8;
  char* what = (char*)tc_allocate(room);
  unsigned char* file;
  const unsigned char* entry;
  size_t size, entries;
  int result = -1;
  if (s->archive != NULL) {
    snprintf(what, room, "%s.npy", stem);
    entry = tc_zip_find(s->archive, s->size, what, &entries);
    snprintf(what, room, "%s:%s", s->path, stem);
    if (entry != NULL) result = tc_npz_parse(t, s->archive, s->size, entry, what);
    free(what);
    return result;
  }
  snprintf(what, room, "%s/%s.npy", s->path, stem);
  if ((file = tc_read_file(what, &size)) != NULL) {
    result = tc_npy_parse(t, file, size, what);
  } else {
    snprintf(what, room, "%s/%s.pb", s->path, stem);
    if ((file = tc_read_file(what, &size)) != NULL) result = tc_pb_parse(t, file, size, what);
  }
  free(file);
  free(what);
  return result;
}

/* A tensor's name as a file's name: what could leave the folder, or is not portable, becomes '_'. */
TC_IO void tc_stem(char* stem, size_t size, const char* name) {
  size_t i = 0;
  for (; name[i] != '\0' && i + 1 < size; i++) {
    const char c = name[i];
    const int plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
                      c == '_' || (c == '.' && i > 0);
    stem[i] = (char)(plain ? c : '_');
  }
  stem[i] = '\0';
}

/* kind_K or the tensor's own name; it must be of the type of `info` and of shape `dims`, where a negative size is any. 0, or 1 after a message. */
TC_IO int tc_source_read(const tc_source* s, const char* kind, int k, const tc_io_info* info, const int64_t* dims,
                         tc_tensor* t) {
  char stem[200], got[512], want[512];
  int result;
  snprintf(stem, sizeof stem, "%s_%d", kind, k);
  t->data = NULL;
  result = tc_source_try(s, stem, t);
  if (result < 0) {
    tc_stem(stem, sizeof stem, info->name);
    result = tc_source_try(s, stem, t);
  }
  if (result < 0)
    return tc_fail("%s has neither %s_%d nor %s (.npy%s)", s->path, kind, k, stem, s->archive != NULL ? "" : " or .pb");
  if (result > 0) return 1;
  result = t->dtype == info->dtype && t->rank == info->rank;
  for (int d = 0; result && d < t->rank; d++) result = dims[d] < 0 || t->dims[d] == dims[d];
  if (result) return 0;
  free(t->data);
  t->data = NULL;
  return tc_fail("%s_%d \"%s\" is %s, the file has %s", kind, k, info->name,
                 tc_describe(want, sizeof want, info->dtype, info->rank, dims),
                 tc_describe(got, sizeof got, t->dtype, t->rank, t->dims));
}

/* 1, with a message, if the source has more tensors of a kind than the model. */
TC_IO int tc_source_has_more(const tc_source* s, const char* kind, int count) {
  char stem[64];
  tc_tensor t;
  size_t entries = 0;
  int result;
  if (s->archive != NULL &&
      tc_zip_find(s->archive, s->size, kind[0] == 'i' ? "output_0.npy" : "input_0.npy", &entries) == NULL &&
      entries > (size_t)count)
    return tc_fail("%s holds %zu arrays, the model has %d %ss", s->path, entries, count, kind);
  snprintf(stem, sizeof stem, "%s_%d", kind, count);
  t.data = NULL;
  result = tc_source_try(s, stem, &t);
  if (result == 0) free(t.data);
  return result < 0 ? 0 : tc_fail("%s has %s, the model has %d %ss", s->path, stem, count, kind);
}

/* Numbers of splitmix64, one stream for each seed and input: floats in [-1, 1), bool 0 or 1, integers 0 to 7, of 8 bits
 * all 256, of 4 and 2 bits all. */
TC_IO uint64_t tc_random(uint64_t* state) {
  uint64_t z = *state += UINT64_C(0x9E3779B97F4A7C15);
  z = (z ^ z >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
  z = (z ^ z >> 27) * UINT64_C(0x94D049BB133111EB);
  return z ^ z >> 31;
}

TC_IO void tc_seeded(tc_tensor* t, uint64_t seed, int k) {
  const tc_dtype_info* type = tc_dtype(t->dtype);
  const int64_t n = tc_elements(t) * (type->kind == 'c' ? 2 : 1);
  uint64_t state = (seed + 1) * UINT64_C(0xD1342543DE82EF95) + (uint64_t)k;
  uint8_t* bytes = (uint8_t*)t->data;
  for (int64_t i = 0; i < n; i++) {
    const uint64_t r = tc_random(&state);
    const float x = (float)((int64_t)(r >> 40) - (1 << 23)) / 8388608.0f;
    switch (t->dtype) {
      case TC_FLOAT:
      case TC_COMPLEX64: ((float*)t->data)[i] = x; break;
      case TC_DOUBLE:
      case TC_COMPLEX128: ((double*)t->data)[i] = (double)x; break;
      case TC_FLOAT16: ((uint16_t*)t->data)[i] = tc_f16_from_f32(x); break;
      case TC_BFLOAT16: ((uint16_t*)t->data)[i] = tc_bf16_from_f32(x); break;
      case TC_FLOAT8E4M3FN: bytes[i] = tc_f8e4m3fn_from_f32(x, 1); break;
      case TC_FLOAT8E4M3FNUZ: bytes[i] = tc_f8e4m3fnuz_from_f32(x, 1); break;
      case TC_FLOAT8E5M2: bytes[i] = tc_f8e5m2_from_f32(x, 1); break;
      case TC_FLOAT8E5M2FNUZ: bytes[i] = tc_f8e5m2fnuz_from_f32(x, 1); break;
      case TC_FLOAT8E8M0: bytes[i] = (uint8_t)(120 + (r >> 61)); break;
      case TC_FLOAT4E2M1:
      case TC_UINT4: bytes[i] = (uint8_t)(r >> 60); break;
      case TC_INT4: bytes[i] = (uint8_t)((r >> 60) - 8); break;
      case TC_UINT2: bytes[i] = (uint8_t)(r >> 62); break;
      case TC_INT2: bytes[i] = (uint8_t)((r >> 62) - 2); break;
      case TC_BOOL: bytes[i] = (uint8_t)(r >> 63); break;
      case TC_UINT8:
      case TC_INT8: bytes[i] = (uint8_t)(r >> 56); break;
      default: tc_pb_put(bytes + (size_t)i * (size_t)type->bytes, (size_t)type->bytes, r >> 61); break;
    }
  }
}

/* output_K.npy, or .pb where NumPy has no such type. */
TC_IO int tc_save(const char* folder, const char* kind, int k, const tc_tensor* t) {
  const size_t room = strlen(folder) + 40;
  const int npy = tc_dtype(t->dtype)->npy != NULL;
  char* path = (char*)tc_allocate(room);
  int bad;
#if defined(_WIN32)
  _mkdir(folder); /* if it is there already, or cannot be made, writing tells */
#else
  mkdir(folder, 0777);
#endif
  snprintf(path, room, "%s/%s_%d.%s", folder, kind, k, npy ? "npy" : "pb");
  bad = npy ? tc_npy_write(path, t) : tc_pb_write(path, t);
  free(path);
  return bad;
}

#endif
