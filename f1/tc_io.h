/* SPDX-License-Identifier: 0BSD -- support text of tc-emit; do not edit */
/* Tensors in memory, for the program around a model (main.c). The model itself needs none of this. */
#ifndef TC_IO_H
#define TC_IO_H
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tc_types.h"

#if defined(__GNUC__) || defined(__clang__)
#define TC_IO static __attribute__((unused))
#else
#define TC_IO static
#endif
#if defined(__MINGW_PRINTF_FORMAT)
#define TC_PRINTF(text, first) __attribute__((format(__MINGW_PRINTF_FORMAT, text, first)))
#elif defined(__GNUC__) || defined(__clang__)
#define TC_PRINTF(text, first) __attribute__((format(printf, text, first)))
#else
#define TC_PRINTF(text, first)
#endif

/* Element types, numbered as ONNX's TensorProto.DataType. */
enum {
  TC_FLOAT = 1,
  TC_UINT8,
  TC_INT8,
  TC_UINT16,
  TC_INT16,
  TC_INT32,
  TC_INT64,
  TC_STRING,
  TC_BOOL,
  TC_FLOAT16,
  TC_DOUBLE,
  TC_UINT32,
  TC_UINT64,
  TC_COMPLEX64,
  TC_COMPLEX128,
  TC_BFLOAT16,
  TC_FLOAT8E4M3FN,
  TC_FLOAT8E4M3FNUZ,
  TC_FLOAT8E5M2,
  TC_FLOAT8E5M2FNUZ,
  TC_UINT4,
  TC_INT4,
  TC_FLOAT4E2M1,
  TC_FLOAT8E8M0,
  TC_UINT2,
  TC_INT2,
  TC_DTYPES
};

typedef struct {
  const char* name;
  const char* npy; /* NumPy's kind and size, NULL: NumPy has no such type */
  int bytes;       /* of an element in memory; types below 8 bits take one byte an element */
  int packed;      /* bits of an element in a .pb file */
  char kind;       /* 'f'loat, 'i'nt, 'u'nsigned, 'b'ool, 'c'omplex, ' ' none */
} tc_dtype_info;

TC_IO const tc_dtype_info* tc_dtype(int dtype) {
  static const tc_dtype_info table[TC_DTYPES] = {
      {"undefined", NULL, 0, 0, ' '},      {"float", "f4", 4, 32, 'f'},     {"uint8", "u1", 1, 8, 'u'},
      {"int8", "i1", 1, 8, 'i'},           {"uint16", "u2", 2, 16, 'u'},    {"int16", "i2", 2, 16, 'i'},
      {"int32", "i4", 4, 32, 'i'},         {"int64", "i8", 8, 64, 'i'},     {"string", NULL, 0, 0, ' '},
      {"bool", "b1", 1, 8, 'b'},           {"float16", "f2", 2, 16, 'f'},   {"double", "f8", 8, 64, 'f'},
      {"uint32", "u4", 4, 32, 'u'},        {"uint64", "u8", 8, 64, 'u'},    {"complex64", "c8", 8, 64, 'c'},
      {"complex128", "c16", 16, 128, 'c'}, {"bfloat16", NULL, 2, 16, 'f'},  {"float8e4m3fn", NULL, 1, 8, 'f'},
      {"float8e4m3fnuz", NULL, 1, 8, 'f'}, {"float8e5m2", NULL, 1, 8, 'f'}, {"float8e5m2fnuz", NULL, 1, 8, 'f'},
      {"uint4", NULL, 1, 4, 'u'},          {"int4", NULL, 1, 4, 'i'},       {"float4e2m1", NULL, 1, 4, 'f'},
      {"float8e8m0", NULL, 1, 8, 'f'},     {"uint2", NULL, 1, 2, 'u'},      {"int2", NULL, 1, 2, 'i'},
  };
  return &table[dtype > 0 && dtype < TC_DTYPES ? dtype : 0];
}

enum { TC_MAX_RANK = 32 };

/* What a model wants or gives. */
typedef struct {
  const char* name; /* of the ONNX model */
  int dtype;
  int rank;
  const int64_t* dims; /* of an output whose size depends on data: the largest */
} tc_io_info;

typedef struct {
  int dtype, rank;
  int64_t dims[TC_MAX_RANK];
  void* data; /* row-major; owned */
} tc_tensor;

/* Prints one line to stderr and returns 1, the exit code of every failure. */
TC_IO int tc_fail(const char* format, ...) TC_PRINTF(1, 2);
TC_IO int tc_fail(const char* format, ...) {
  va_list args;
  fputs("error: ", stderr);
  va_start(args, format);
  vfprintf(stderr, format, args);
  va_end(args);
  fputc('\n', stderr);
  return 1;
}

TC_IO void* tc_allocate(size_t bytes) {
  void* p = calloc(bytes > 0 ? bytes : 1, 1);
  if (p == NULL) {
    tc_fail("out of memory: %zu bytes", bytes);
    exit(1);
  }
  return p;
}

/* Elements of a shape; -1 if negative or more than memory could hold. */
TC_IO int64_t tc_count(int rank, const int64_t* dims) {
  int64_t n = 1;
  for (int i = 0; i < rank; i++)
    if (dims[i] == 0) return 0;
  for (int i = 0; i < rank; i++) {
    if (dims[i] < 0 || n > (INT64_MAX >> 5) / dims[i]) return -1;
    n *= dims[i];
  }
  return n;
}
TC_IO int64_t tc_elements(const tc_tensor* t) { return tc_count(t->rank, t->dims); }
TC_IO size_t tc_bytes(const tc_tensor* t) { return (size_t)tc_elements(t) * (size_t)tc_dtype(t->dtype)->bytes; }

/* "float [1, 3, 224, 224]" into a buffer that the caller owns */
TC_IO const char* tc_describe(char* text, size_t size, int dtype, int rank, const int64_t* dims) {
  size_t used = (size_t)snprintf(text, size, "%s [", tc_dtype(dtype)->name);
  for (int i = 0; i < rank && used < size; i++)
    used += (size_t)snprintf(text + used, size - used, i > 0 ? ", %lld" : "%lld", (long long)dims[i]);
  if (used < size) snprintf(text + used, size - used, "]");
  return text;
}

TC_IO int tc_is_narrow(int dtype) { return tc_dtype(dtype)->kind == 'f' && dtype != TC_FLOAT && dtype != TC_DOUBLE; }

/* Element i as a double; complex numbers count as two. 64-bit integers beyond 2^53 round. */
TC_IO double tc_value(const tc_tensor* t, int64_t i) {
  const void* d = t->data;
  switch (t->dtype) {
    case TC_FLOAT:
    case TC_COMPLEX64: return (double)((const float*)d)[i];
    case TC_DOUBLE:
    case TC_COMPLEX128: return ((const double*)d)[i];
    case TC_INT8:
    case TC_INT4:
    case TC_INT2: return (double)((const int8_t*)d)[i];
    case TC_INT16: return (double)((const int16_t*)d)[i];
    case TC_INT32: return (double)((const int32_t*)d)[i];
    case TC_INT64: return (double)((const int64_t*)d)[i];
    case TC_UINT16: return (double)((const uint16_t*)d)[i];
    case TC_UINT32: return (double)((const uint32_t*)d)[i];
    case TC_UINT64: return (double)((const uint64_t*)d)[i];
    case TC_FLOAT16: return (double)tc_f32_from_f16(((const uint16_t*)d)[i]);
    case TC_BFLOAT16: return (double)tc_f32_from_bf16(((const uint16_t*)d)[i]);
    case TC_FLOAT8E4M3FN: return (double)tc_f32_from_f8e4m3fn(((const uint8_t*)d)[i]);
    case TC_FLOAT8E4M3FNUZ: return (double)tc_f32_from_f8e4m3fnuz(((const uint8_t*)d)[i]);
    case TC_FLOAT8E5M2: return (double)tc_f32_from_f8e5m2(((const uint8_t*)d)[i]);
    case TC_FLOAT8E5M2FNUZ: return (double)tc_f32_from_f8e5m2fnuz(((const uint8_t*)d)[i]);
    case TC_FLOAT8E8M0: return (double)tc_f32_from_f8e8m0(((const uint8_t*)d)[i]);
    case TC_FLOAT4E2M1: return (double)tc_f32_from_f4e2m1(((const uint8_t*)d)[i]);
    default: return (double)((const uint8_t*)d)[i];
  }
}

/* Reads a whole file; NULL if there is none. */
TC_IO unsigned char* tc_read_file(const char* path, size_t* size) {
  FILE* f = fopen(path, "rb");
  size_t room = 1 << 16, used = 0, got;
  unsigned char* data;
  if (f == NULL) return NULL;
  data = (unsigned char*)tc_allocate(room);
  while ((got = fread(data + used, 1, room - used, f)) > 0) {
    used += got;
    if (used == room) {
      unsigned char* larger = (unsigned char*)tc_allocate(room * 2);
      memcpy(larger, data, used);
      free(data);
      data = larger;
      room *= 2;
    }
  }
  if (ferror(f)) {
    free(data);
    data = NULL;
  }
  fclose(f);
  *size = used;
  return data;
}

TC_IO int tc_write_file(const char* path, const void* head, size_t head_size, const void* data, size_t size) {
  FILE* f = fopen(path, "wb");
  int ok = f != NULL && fwrite(head, 1, head_size, f) == head_size && fwrite(data, 1, size, f) == size;
  if (f != NULL && fclose(f) != 0) ok = 0;
  return ok ? 0 : tc_fail("cannot write %s", path);
}

TC_IO int tc_big_endian(void) {
  const uint16_t one = 1;
  unsigned char first;
  memcpy(&first, &one, 1);
  return first == 0;
}

/* Turns the bytes of each element of a number around; complex numbers are two numbers. */
TC_IO void tc_swap_bytes(tc_tensor* t) {
  const tc_dtype_info* type = tc_dtype(t->dtype);
  const size_t width = (size_t)type->bytes / (type->kind == 'c' ? 2u : 1u), n = tc_bytes(t) / width;
  unsigned char* p = (unsigned char*)t->data;
  for (size_t i = 0; i < n; i++, p += width)
    for (size_t a = 0, b = width - 1; a < b; a++, b--) {
      const unsigned char byte = p[a];
      p[a] = p[b];
      p[b] = byte;
    }
}

#endif
