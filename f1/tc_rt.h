/* SPDX-License-Identifier: 0BSD -- support text of tc-emit; do not edit */
/* The weights blob and its checks; indexes that come from data. */
#ifndef TC_RT_H
#define TC_RT_H
#if !defined(__CUDACC_RTC__) /* NVRTC has no system headers: tc_cuda.h, included before, names the types */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* First 64 bytes of a weights blob. */
typedef struct {
  char magic[8];       /* "TCWEIGHT" */
  uint32_t byte_order; /* 0x01020304 as the writer stored it */
  uint32_t version;
  uint64_t bytes;   /* of the blob, header included */
  uint64_t layout;  /* hash of shapes, types and packing that the code expects */
  uint64_t content; /* tc_xxh64 of what follows the header */
  uint8_t reserved[24];
} tc_weights_header;

/* 1 if the blob is of this byte order and version, and packed for the code whose layout id is given. */
static inline int tc_weights_match(const void* weights, size_t bytes, uint64_t layout) {
  tc_weights_header h;
  if (bytes < sizeof h) return 0;
  memcpy(&h, weights, sizeof h);
  return memcmp(h.magic, "TCWEIGHT", 8) == 0 && h.byte_order == UINT32_C(0x01020304) && h.version == 1 &&
         h.bytes == bytes && h.layout == layout;
}

static inline uint64_t tc_read_le8(const unsigned char* p) {
  const uint16_t one = 1;
  unsigned char low;
  uint64_t v;
  memcpy(&low, &one, 1);
  memcpy(&v, p, 8);
  if (low == 1) return v;
  v = 0;
  for (int i = 7; i >= 0; i--) v = v << 8 | p[i];
  return v;
}
static inline uint64_t tc_rotate(uint64_t x, int by) { return x << by | x >> (64 - by); }

/* XXH64 of a block of memory, seed 0: the same on every machine. */
static inline uint64_t tc_xxh64(const void* data, size_t bytes) {
  const uint64_t p1 = UINT64_C(0x9E3779B185EBCA87), p2 = UINT64_C(0xC2B2AE3D27D4EB4F),
                 p3 = UINT64_C(0x165667B19E3779F9), p4 = UINT64_C(0x85EBCA77C2B2AE63),
                 p5 = UINT64_C(0x27D4EB2F165667C5);
  const unsigned char *p = (const unsigned char*)data, *end = p + bytes;
  uint64_t h = p5;
  if (bytes >= 32) {
    uint64_t lane[4] = {p1 + p2, p2, 0, 0 - p1};
    for (; end - p >= 32; p += 32)
      for (int i = 0; i < 4; i++) lane[i] = tc_rotate(lane[i] + tc_read_le8(p + 8 * i) * p2, 31) * p1;
    h = tc_rotate(lane[0], 1) + tc_rotate(lane[1], 7) + tc_rotate(lane[2], 12) + tc_rotate(lane[3], 18);
    for (int i = 0; i < 4; i++) h = (h ^ tc_rotate(lane[i] * p2, 31) * p1) * p1 + p4;
  }
  h += bytes;
  for (; end - p >= 8; p += 8) h = tc_rotate(h ^ tc_rotate(tc_read_le8(p) * p2, 31) * p1, 27) * p1 + p4;
  for (; end - p >= 4; p += 4)
    h = tc_rotate(h ^ (p[0] | (uint64_t)p[1] << 8 | (uint64_t)p[2] << 16 | (uint64_t)p[3] << 24) * p1, 23) * p2 + p3;
  for (; p < end; p++) h = tc_rotate(h ^ *p * p5, 11) * p1;
  h = (h ^ h >> 33) * p2;
  h = (h ^ h >> 29) * p3;
  return h ^ h >> 32;
}

/* 1 if the content of a blob that tc_weights_match accepted is what its writer stored. */
static inline int tc_weights_intact(const void* weights) {
  tc_weights_header h;
  memcpy(&h, weights, sizeof h);
  return tc_xxh64((const unsigned char*)weights + sizeof h, (size_t)h.bytes - sizeof h) == h.content;
}

#endif /* not NVRTC: the rest is for device code, too */

#if defined(__CUDACC__)
#define TC_RT static __host__ __device__ inline
#else
#define TC_RT static inline
#endif

/* An index that comes from data: negative ones count from the end. One that is out of range raises *status, which run()
 * then reports, and gives 0, so that nothing outside the tensor is touched. */
TC_RT int64_t tc_index(int64_t i, int64_t extent, int32_t* status) {
  if (i < 0) i += extent;
  if (i >= 0 && i < extent) return i;
#if defined(__CUDA_ARCH__) || defined(TC_CUDA_ON_CPU)
  atomicExch(status, 1); /* threads that find one each write the same, and still must not race */
#else
  *status = 1;
#endif
  return 0;
}

#endif
