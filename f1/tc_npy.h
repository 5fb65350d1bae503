/* SPDX-License-Identifier: 0BSD -- support text of tc-emit; do not edit */
/* NumPy's .npy files, versions 1 to 3, either byte order, C and Fortran order. `what` names the file in messages. */
#ifndef TC_NPY_H
#define TC_NPY_H
#include "tc_io.h"

/* The value of a key of the header's dictionary, or NULL. */
TC_IO const char* tc_npy_key(const char* header, const char* key) {
  const char* at = strstr(header, key);
  if (at == NULL) return NULL;
  at += strlen(key);
  while (*at == ' ' || *at == ':') at++;
  return at;
}

TC_IO int tc_npy_header(tc_tensor* t, const char* header, int* fortran, int* swap, const char* what) {
  const char *descr = tc_npy_key(header, "'descr'"), *order = tc_npy_key(header, "'fortran_order'"),
             *shape = tc_npy_key(header, "'shape'");
  if (descr == NULL || order == NULL || shape == NULL || descr[0] != '\'' || descr[1] == '\0' || *shape != '(')
    return tc_fail("%s: not an array of numbers that NumPy wrote", what);
  t->dtype = 0;
  for (int d = 1; d < TC_DTYPES; d++) {
    const char* npy = tc_dtype(d)->npy;
    if (npy != NULL && strncmp(descr + 2, npy, strlen(npy)) == 0 && descr[2 + strlen(npy)] == '\'') t->dtype = d;
  }
  if (t->dtype == 0) return tc_fail("%s: element type %.8s is not one that ONNX has", what, descr);
  *swap = (descr[1] == '>' && !tc_big_endian()) || (descr[1] == '<' && tc_big_endian());
  *fortran = strncmp(order, "True", 4) == 0;
  t->rank = 0;
  for (shape++; *shape != ')';) {
    char* end;
    const long long extent = strtoll(shape, &end, 10);
    if (end == shape || t->rank == TC_MAX_RANK) return tc_fail("%s: cannot read its shape", what);
    t->dims[t->rank++] = extent;
    for (shape = end; *shape == ',' || *shape == ' '; shape++) {
    }
  }
  return 0;
}

/* Elements of `from`, the first index fastest, into row-major order. */
TC_IO void tc_npy_from_fortran(tc_tensor* t, const unsigned char* from) {
  const size_t width = (size_t)tc_dtype(t->dtype)->bytes;
  const int64_t n = tc_elements(t);
  int64_t index[TC_MAX_RANK] = {0};
  for (int64_t i = 0; i < n; i++) {
    int64_t at = 0;
    for (int d = t->rank - 1; d >= 0; d--) at = at * t->dims[d] + index[d];
    memcpy((unsigned char*)t->data + (size_t)i * width, from + (size_t)at * width, width);
    for (int d = t->rank - 1; d >= 0 && ++index[d] == t->dims[d]; d--) index[d] = 0;
  }
}

/* Reads a .npy file that lies in memory. 0, or 1 after a message. t->data is then the caller's to free. */
TC_IO int tc_npy_parse(tc_tensor* t, const unsigned char* file, size_t size, const char* what) {
  size_t start = 10, length;
  char* header;
  int fortran = 0, swap = 0, bad;
  if (size < 12 || memcmp(file, "\x93NUMPY", 6) != 0) return tc_fail("%s: not a .npy file", what);
  length = file[8] | (size_t)file[9] << 8;
  if (file[6] > 1) {
    start = 12;
    length |= (size_t)file[10] << 16 | (size_t)file[11] << 24;
  }
  if (length > size - start) return tc_fail("%s: cut short", what);
  header = (char*)tc_allocate(length + 1);
  memcpy(header, file + start, length);
  bad = tc_npy_header(t, header, &fortran, &swap, what);
  free(header);
  if (bad) return 1;
  start += length;
  if (tc_elements(t) < 0) return tc_fail("%s: its shape is too large", what);
  if (size - start != tc_bytes(t))
    return tc_fail("%s: holds %zu bytes of data, its shape needs %zu", what, size - start, tc_bytes(t));
  t->data = tc_allocate(tc_bytes(t));
  if (fortran)
    tc_npy_from_fortran(t, file + start);
  else
    memcpy(t->data, file + start, tc_bytes(t));
  if (swap) tc_swap_bytes(t);
  return 0;
}

TC_IO int tc_npy_write(const char* path, const tc_tensor* t) {
  char head[128 + TC_MAX_RANK * 24];
  const tc_dtype_info* type = tc_dtype(t->dtype);
  const char order = type->bytes == 1 ? '|' : tc_big_endian() ? '>' : '<';
  size_t used = 10, padded;
  used += (size_t)snprintf(head + used, sizeof head - used, "{'descr': '%c%s', 'fortran_order': False, 'shape': (",
                           order, type->npy);
  for (int i = 0; i < t->rank; i++)
    used += (size_t)snprintf(head + used, sizeof head - used, "%lld%s", (long long)t->dims[i],
                             i + 1 < t->rank ? ", "
                             : t->rank == 1  ? ","
                                             : "");
  used += (size_t)snprintf(head + used, sizeof head - used, "), }");
  padded = (used + 1 + 63) / 64 * 64;
  memset(head + used, ' ', padded - used - 1);
  head[padded - 1] = '\n';
  memcpy(head, "\x93NUMPY\x01", 7);
  head[7] = 0;
  head[8] = (char)((padded - 10) & 255);
  head[9] = (char)((padded - 10) >> 8);
  return tc_write_file(path, head, padded, t->data, tc_bytes(t));
}

#endif
