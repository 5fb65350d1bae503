/* SPDX-License-Identifier: 0BSD -- support text of tc-emit; do not edit */
/* NumPy's .npz archives: zip files whose members are stored (numpy.savez) or deflated (numpy.savez_compressed). */
#ifndef TC_NPZ_H
#define TC_NPZ_H
#include "tc_npy.h"

/* --- inflate, RFC 1951 */
typedef struct {
  const unsigned char *in, *in_end;
  unsigned char* out;
  size_t used, room;
  uint32_t bits; /* read but not yet taken, lowest first */
  int count;
  int bad; /* input or output ran out, or a code does not exist */
} tc_inflater;

/* A canonical Huffman code: how many codes each length has, and the symbols in the order of their codes. */
typedef struct {
  uint16_t lengths[16];
  uint16_t symbols[288];
} tc_huffman;

TC_IO unsigned tc_take_bits(tc_inflater* z, int n) {
  unsigned v;
  while (z->count < n) {
    if (z->in == z->in_end) {
      z->bad = 1;
      return 0;
    }
    z->bits |= (uint32_t)*z->in++ << z->count;
    z->count += 8;
  }
  v = z->bits & ((1u << n) - 1u);
  z->bits >>= n;
  z->count -= n;
  return v;
}

TC_IO void tc_huffman_make(tc_huffman* h, const uint8_t* length, int symbols) {
  uint16_t next[16] = {0};
  memset(h->lengths, 0, sizeof h->lengths);
  for (int s = 0; s < symbols; s++) h->lengths[length[s]]++;
  h->lengths[0] = 0;
  for (int l = 1; l < 15; l++) next[l + 1] = (uint16_t)(next[l] + h->lengths[l]);
  for (int s = 0; s < symbols; s++)
    if (length[s] != 0) h->symbols[next[length[s]]++] = (uint16_t)s;
}

/* Reads one code, a bit at a time: codes of one length are consecutive numbers. */
TC_IO unsigned tc_huffman_take(tc_inflater* z, const tc_huffman* h) {
  unsigned code = 0, first = 0, index = 0;
  for (int l = 1; l < 16; l++) {
    const unsigned codes = h->lengths[l];
    code |= tc_take_bits(z, 1);
    if (code - first < codes) return h->symbols[index + code - first];
    index += codes;
    first = (first + codes) << 1;
    code <<= 1;
  }
  z->bad = 1;
  return 0;
}

TC_IO void tc_inflate_stored(tc_inflater* z) {
  unsigned length;
  z->bits = 0;
  z->count = 0;
  if (z->in_end - z->in < 4) {
    z->bad = 1;
    return;
  }
  length = (unsigned)(z->in[0] | z->in[1] << 8);
  z->in += 4;
  if ((size_t)(z->in_end - z->in) < length || z->room - z->used < length) {
    z->bad = 1;
    return;
  }
  memcpy(z->out + z->used, z->in, length);
  z->in += length;
  z->used += length;
}

/* Lengths and distances of matches: base value and extra bits by code. */
TC_IO void tc_inflate_coded(tc_inflater* z, const tc_huffman* literals, const tc_huffman* distances) {
  while (!z->bad) {
    const unsigned symbol = tc_huffman_take(z, literals);
    unsigned length, code, distance;
    if (symbol == 256 || z->bad) return;
    if (symbol < 256) {
      if (z->used == z->room)
        z->bad = 1;
      else
        z->out[z->used++] = (unsigned char)symbol;
      continue;
    }
    code = symbol - 257;
    if (code < 8)
      length = code + 3;
    else if (code < 28)
      length = ((4 + code % 4) << (code / 4 - 1)) + 3 + tc_take_bits(z, (int)code / 4 - 1);
    else
      length = 258;
    code = tc_huffman_take(z, distances);
    distance = code < 4    ? code + 1
               : code < 30 ? ((2 + code % 2) << (code / 2 - 1)) + 1 + tc_take_bits(z, (int)code / 2 - 1)
                           : 0;
    if (symbol > 285 || distance == 0 || distance > z->used || z->room - z->used < length) {
      z->bad = 1;
      return;
    }
    for (; length > 0; length--, z->used++) z->out[z->used] = z->out[z->used - distance];
  }
}

/* Reads the two codes of a block that brings its own, which are themselves coded. */
TC_IO void tc_inflate_codes(tc_inflater* z, tc_huffman* literals, tc_huffman* distances) {
  static const uint8_t order[19] = {16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15};
  uint8_t length[320] = {0};
  const int n_literals = (int)tc_take_bits(z, 5) + 257, n_distances = (int)tc_take_bits(z, 5) + 1,
            n_codes = (int)tc_take_bits(z, 4) + 4;
  for (int i = 0; i < n_codes; i++) length[order[i]] = (uint8_t)tc_take_bits(z, 3);
  tc_huffman_make(literals, length, 19);
  memset(length, 0, sizeof length);
  for (int i = 0; i < n_literals + n_distances && !z->bad;) {
    const unsigned symbol = tc_huffman_take(z, literals);
    int repeat = 1;
    uint8_t value = (uint8_t)symbol;
    if (symbol > 15) value = symbol == 16 && i > 0 ? length[i - 1] : 0;
    if (symbol == 16) repeat = 3 + (int)tc_take_bits(z, 2);
    if (symbol == 17) repeat = 3 + (int)tc_take_bits(z, 3);
    if (symbol == 18) repeat = 11 + (int)tc_take_bits(z, 7);
    if (i + repeat > n_literals + n_distances || n_literals > 286) z->bad = 1;
    for (; repeat > 0 && !z->bad; repeat--) length[i++] = value;
  }
  tc_huffman_make(literals, length, n_literals);
  tc_huffman_make(distances, length + n_literals, n_distances);
}

/* 1 if `size` bytes of deflated data fill `out` exactly. */
TC_IO int tc_inflate(const unsigned char* in, size_t size, unsigned char* out, size_t room) {
  tc_inflater z = {in, in + size, out, 0, room, 0, 0, 0};
  tc_huffman literals, distances;
  unsigned last = 0;
  while (!last && !z.bad) {
    unsigned kind;
    last = tc_take_bits(&z, 1);
    kind = tc_take_bits(&z, 2);
    if (kind == 0) {
      tc_inflate_stored(&z);
    } else if (kind == 1) {
      uint8_t length[288];
      for (int s = 0; s < 288; s++) length[s] = s < 144 ? 8 : s < 256 ? 9 : s < 280 ? 7 : 8;
      tc_huffman_make(&literals, length, 288);
      memset(length, 5, 30);
      tc_huffman_make(&distances, length, 30);
      tc_inflate_coded(&z, &literals, &distances);
    } else if (kind == 2) {
      tc_inflate_codes(&z, &literals, &distances);
      tc_inflate_coded(&z, &literals, &distances);
    } else {
      z.bad = 1;
    }
  }
  return !z.bad && z.used == room;
}

/* --- zip */
TC_IO size_t tc_zip_number(const unsigned char* p, int bytes) {
  size_t v = 0;
  while (bytes-- > 0) v = v << 8 | p[bytes];
  return v;
}

/* The central directory's entry of a member, or NULL; *entries is set to the number of members. */
TC_IO const unsigned char* tc_zip_find(const unsigned char* file, size_t size, const char* member, size_t* entries) {
  const unsigned char *end = file + size, *p = size < 22 ? NULL : end - 22;
  *entries = 0;
  while (p != NULL && memcmp(p, "PK\5\6", 4) != 0) p = p > file && end - p < 70000 ? p - 1 : NULL;
  if (p == NULL || tc_zip_number(p + 16, 4) > size) return NULL;
  *entries = tc_zip_number(p + 10, 2);
  p = file + tc_zip_number(p + 16, 4);
  for (size_t i = 0; i < *entries; i++) {
    size_t name;
    if (end - p < 46 || memcmp(p, "PK\1\2", 4) != 0) return NULL;
    name = tc_zip_number(p + 28, 2);
    if ((size_t)(end - p) - 46 < name) return NULL;
    if (name == strlen(member) && memcmp(p + 46, member, name) == 0) return p;
    name += 46 + tc_zip_number(p + 30, 2) + tc_zip_number(p + 32, 2);
    if ((size_t)(end - p) < name) return NULL;
    p += name;
  }
  return NULL;
}

/* Reads the .npy file that an entry names. `what` is for messages. */
TC_IO int tc_npz_parse(tc_tensor* t, const unsigned char* file, size_t size, const unsigned char* entry,
                       const char* what) {
  const size_t method = tc_zip_number(entry + 10, 2), packed = tc_zip_number(entry + 20, 4),
               plain = tc_zip_number(entry + 24, 4), local = tc_zip_number(entry + 42, 4);
  size_t start;
  unsigned char* data;
  int bad;
  if (packed == 0xffffffffu || plain == 0xffffffffu)
    return tc_fail("%s: archives of 4 GiB and more are not read", what);
  if (local > size || size - local < 30) return tc_fail("%s: broken archive", what);
  start = local + 30 + tc_zip_number(file + local + 26, 2) + tc_zip_number(file + local + 28, 2);
  if (start > size || size - start < packed) return tc_fail("%s: broken archive", what);
  if (method == 0 && packed == plain) return tc_npy_parse(t, file + start, plain, what);
  if (method != 8 || plain / 1100 > packed) return tc_fail("%s: stored in a way that is not read", what);
  data = (unsigned char*)tc_allocate(plain);
  bad = tc_inflate(file + start, packed, data, plain) ? tc_npy_parse(t, data, plain, what)
                                                      : tc_fail("%s: broken archive", what);
  free(data);
  return bad;
}

#endif
