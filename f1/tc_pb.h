/* SPDX-License-Identifier: 0BSD -- support text of tc-emit; do not edit */
/* ONNX's TensorProto files (.pb), as its test suites hold them: raw data and all typed fields. Not read: strings, segments,
 * data in other files. */
#ifndef TC_PB_H
#define TC_PB_H
#include "tc_io.h"

typedef struct {
  const unsigned char *p, *end;
} tc_pb_span;

/* A varint; 0 if the message ends first, which then also empties the span. */
TC_IO uint64_t tc_pb_varint(tc_pb_span* s) {
  uint64_t v = 0;
  for (int shift = 0; s->p < s->end && shift < 64; shift += 7) {
    const unsigned char byte = *s->p++;
    v |= (uint64_t)(byte & 127) << shift;
    if (byte < 128) return v;
  }
  s->end = NULL; /* marks an error */
  s->p = NULL;
  return 0;
}

/* The next field: its number and wire type; numbers in *value, bytes in *bytes. 0 at the end or in a broken message. */
TC_IO int tc_pb_next(tc_pb_span* s, int* wire, uint64_t* value, tc_pb_span* bytes) {
  uint64_t tag, length = 0;
  if (s->p == s->end) return 0;
  tag = tc_pb_varint(s);
  *wire = (int)(tag & 7);
  *value = 0;
  bytes->p = bytes->end = s->p;
  if (*wire == 0)
    *value = tc_pb_varint(s);
  else if (*wire == 2)
    length = tc_pb_varint(s);
  else
    length = *wire == 1 ? 8 : *wire == 5 ? 4 : UINT64_MAX;
  if (s->end == NULL || length > (uint64_t)(s->end - s->p)) {
    s->p = s->end = NULL;
    return 0;
  }
  bytes->p = s->p;
  bytes->end = s->p += length;
  return (int)(tag >> 3);
}

TC_IO uint64_t tc_pb_fixed(const unsigned char* p, size_t bytes) {
  uint64_t v = 0;
  while (bytes-- > 0) v = v << 8 | p[bytes];
  return v;
}

/* Stores the low bytes of v in the machine's own order. */
TC_IO void tc_pb_put(void* to, size_t width, uint64_t v) {
  const uint8_t b1 = (uint8_t)v;
  const uint16_t b2 = (uint16_t)v;
  const uint32_t b4 = (uint32_t)v;
  memcpy(to,
         width == 1   ? (const void*)&b1
         : width == 2 ? (const void*)&b2
         : width == 4 ? (const void*)&b4
                      : (const void*)&v,
         width);
}

/* Appends numbers to t->data; each packed byte of a type below 8 bits holds several elements. *at counts elements. */
TC_IO void tc_pb_append(tc_tensor* t, int64_t* at, int64_t count, uint64_t v) {
  const tc_dtype_info* type = tc_dtype(t->dtype);
  const size_t width = (size_t)type->bytes;
  if (type->packed >= 8) {
    if (*at < count) tc_pb_put((unsigned char*)t->data + (size_t)*at * width, width, v);
    ++*at;
    return;
  }
  for (int shift = 0; shift < 8 && (*at < count || shift == 0); shift += type->packed, ++*at) {
    const int bits = (int)(v >> shift) & ((1 << type->packed) - 1),
              negative = type->kind == 'i' && bits >> (type->packed - 1);
    if (*at < count) ((uint8_t*)t->data)[*at] = (uint8_t)(negative ? bits - (1 << type->packed) : bits);
  }
}

/* Field numbers of TensorProto. */
enum {
  TC_PB_DIMS = 1,
  TC_PB_TYPE = 2,
  TC_PB_SEGMENT = 3,
  TC_PB_FLOAT = 4,
  TC_PB_INT32 = 5,
  TC_PB_STRING = 6,
  TC_PB_INT64 = 7,
  TC_PB_NAME = 8,
  TC_PB_RAW = 9,
  TC_PB_DOUBLE = 10,
  TC_PB_UINT64 = 11,
  TC_PB_LOCATION = 14
};

TC_IO int tc_pb_dims(tc_tensor* t, int wire, uint64_t value, tc_pb_span bytes) {
  if (wire == 0) {
    if (t->rank == TC_MAX_RANK) return 1;
    t->dims[t->rank++] = (int64_t)value;
  }
  while (wire == 2 && bytes.p < bytes.end) {
    if (t->rank == TC_MAX_RANK) return 1;
    t->dims[t->rank++] = (int64_t)tc_pb_varint(&bytes);
  }
  return wire != 0 && bytes.end == NULL;
}

/* The field that holds numbers of a type, but for raw data, which holds all. */
TC_IO int tc_pb_field(int dtype) {
  switch (dtype) {
    case TC_FLOAT:
    case TC_COMPLEX64: return TC_PB_FLOAT;
    case TC_DOUBLE:
    case TC_COMPLEX128: return TC_PB_DOUBLE;
    case TC_INT64: return TC_PB_INT64;
    case TC_UINT32:
    case TC_UINT64: return TC_PB_UINT64;
    default: return TC_PB_INT32;
  }
}

/* One occurrence of a field that holds data. */
TC_IO void tc_pb_data(tc_tensor* t, int field, int wire, uint64_t value, tc_pb_span bytes, int64_t* at, int64_t count) {
  const tc_dtype_info* type = tc_dtype(t->dtype);
  const size_t numbers = type->kind == 'c' ? 2 : 1; /* numbers of an element */
  tc_tensor parts = *t;
  size_t width = field == TC_PB_FLOAT ? 4 : field == TC_PB_DOUBLE ? 8 : 0;
  if (numbers == 2) {
    parts.dtype = t->dtype == TC_COMPLEX64 ? TC_FLOAT : TC_DOUBLE;
    count *= 2;
  }
  if (field == TC_PB_RAW) width = type->packed < 8 ? 1 : (size_t)tc_dtype(parts.dtype)->bytes;
  if (width == 0 && wire == 0) tc_pb_append(&parts, at, count, value);
  while (bytes.p < bytes.end) {
    if (width == 0) {
      tc_pb_append(&parts, at, count, tc_pb_varint(&bytes));
    } else {
      if ((size_t)(bytes.end - bytes.p) < width) {
        ++*at; /* a number cut short counts as one too many or stays missing: the total will not fit */
        break;
      }
      tc_pb_append(&parts, at, count, tc_pb_fixed(bytes.p, width));
      bytes.p += width;
    }
  }
}

/* Reads a TensorProto that lies in memory. 0, or 1 after a message. t->data is then the caller's to free. */
TC_IO int tc_pb_parse(tc_tensor* t, const unsigned char* file, size_t size, const char* what) {
  tc_pb_span s = {file, file + size}, bytes;
  uint64_t value;
  int field, wire;
  int64_t at = 0, count;
  t->rank = t->dtype = 0;
  while ((field = tc_pb_next(&s, &wire, &value, &bytes)) != 0) {
    if (field == TC_PB_DIMS && tc_pb_dims(t, wire, value, bytes)) return tc_fail("%s: cannot read its shape", what);
    if (field == TC_PB_TYPE) t->dtype = value < TC_DTYPES ? (int)value : 0;
    if (field == TC_PB_SEGMENT || (field == TC_PB_LOCATION && value != 0))
      return tc_fail("%s: its data is not in this file", what);
  }
  if (s.end == NULL) return tc_fail("%s: not a TensorProto", what);
  if (tc_dtype(t->dtype)->bytes == 0) return tc_fail("%s: not a tensor of numbers", what);
  count = tc_elements(t);
  if (count < 0 || (uint64_t)count > (uint64_t)size * 8)
    return tc_fail("%s: its shape needs more data than the file holds", what);
  t->data = tc_allocate(tc_bytes(t));
  for (s.p = file; (field = tc_pb_next(&s, &wire, &value, &bytes)) != 0;)
    if (field == TC_PB_RAW || field == tc_pb_field(t->dtype)) tc_pb_data(t, field, wire, value, bytes, &at, count);
  if (at == count * (tc_dtype(t->dtype)->kind == 'c' ? 2 : 1)) return 0;
  free(t->data);
  t->data = NULL;
  return tc_fail("%s: holds %lld numbers, its shape needs %lld", what, (long long)at, (long long)count);
}

TC_IO size_t tc_pb_put_varint(unsigned char* to, uint64_t v) {
  size_t n = 0;
  for (; v > 127; v >>= 7) to[n++] = (unsigned char)(v | 128);
  to[n++] = (unsigned char)v;
  return n;
}

/* Writes dims, type and raw data. */
TC_IO int tc_pb_write(const char* path, const tc_tensor* t) {
  const tc_dtype_info* type = tc_dtype(t->dtype);
  const size_t n = (size_t)tc_elements(t), per_byte = type->packed < 8 ? 8u / (size_t)type->packed : 1u;
  const size_t size = type->packed < 8 ? (n + per_byte - 1) / per_byte : tc_bytes(t);
  unsigned char head[(TC_MAX_RANK + 2) * 11], *raw = (unsigned char*)tc_allocate(size);
  tc_tensor little = *t;
  size_t used = 0;
  int bad;
  for (int i = 0; i < t->rank; i++) {
    head[used++] = TC_PB_DIMS << 3;
    used += tc_pb_put_varint(head + used, (uint64_t)t->dims[i]);
  }
  head[used++] = TC_PB_TYPE << 3;
  used += tc_pb_put_varint(head + used, (uint64_t)t->dtype);
  head[used++] = TC_PB_RAW << 3 | 2;
  used += tc_pb_put_varint(head + used, size);
  little.data = raw;
  if (type->packed < 8)
    for (size_t i = 0; i < n; i++)
      raw[i / per_byte] =
          (unsigned char)(raw[i / per_byte] | (((const uint8_t*)t->data)[i] & ((1u << type->packed) - 1u))
                                                  << (i % per_byte * (size_t)type->packed));
  else {
    memcpy(raw, t->data, size);
    if (tc_big_endian()) tc_swap_bytes(&little);
  }
  bad = tc_write_file(path, head, used, raw, size);
  free(raw);
  return bad;
}

#endif
