// SPDX-License-Identifier: 0BSD -- support text of tc-emit; do not edit
// Asynchronous copies, ldmatrix and mma.sync. Layouts are those of the PTX manual; tc_cuda.h repeats them.
#include "cuda_on_cpu_tc.h"

#include <vector>

#include "cuda_on_cpu_parts.h"

// The same bits with any vectors: products of these types are exact in double.
#if defined(__x86_64__) && defined(__GLIBC__) && !defined(__clang__)
#  define TC_CPU_CLONES __attribute__((target_clones("default", "avx2", "avx512f")))
#else
#  define TC_CPU_CLONES
#endif

namespace tc_cpu {
namespace {

// --- copies

struct Copy {
  void *to;
  const void *from;
  int bytes;
  bool valid;
  const char *file;
  int line;
};
struct Copies {  // of one thread: list[done...], cut into groups by ends[ended...]
  uint32_t block = 0;
  std::vector<Copy> list;
  std::vector<size_t> ends;
  size_t done = 0, ended = 0;
};

Copies &my_copies()
{
  static std::vector<Copies> copies(kMaxThreads);
  Copies &c = copies[(size_t)now.linear];
  if (c.block != ticks.block || (c.ended == c.ends.size() && c.done == c.list.size())) {
    c.list.clear();
    c.ends.clear();
    c.done = c.ended = 0;
    c.block = ticks.block;
  }
  return c;
}

void finish(const Copy &k)
{
  if (checker) {
    checker->access(k.to, (size_t)k.bytes, true, false, k.file, k.line);
    if (k.valid) checker->access(k.from, (size_t)k.bytes, false, false, k.file, k.line);
  }
  if (!k.valid)
    memset(k.to, 0, (size_t)k.bytes);
  else if (k.bytes == 16)
    memcpy(k.to, k.from, 16);
  else
    memcpy(k.to, k.from, (size_t)k.bytes);
}

// --- ldmatrix

struct LdMatrix {
  const unsigned char *row;
  uint32_t *to;
  int matrices;
  bool transposed;
};

void ldmatrix_all(void **args, unsigned)
{
  for (int lane = 0; lane < 32; lane++) {
    const LdMatrix &l = *(const LdMatrix *)args[lane];
    for (int i = 0; i < l.matrices; i++) {
      const auto row = [&](int r) { return ((const LdMatrix *)args[8 * i + r])->row; };
      uint16_t pair[2];
      if (l.transposed) {
        memcpy(&pair[0], row(lane % 4 * 2) + lane / 4 * 2, 2);
        memcpy(&pair[1], row(lane % 4 * 2 + 1) + lane / 4 * 2, 2);
      } else {
        memcpy(pair, row(lane / 4) + lane % 4 * 4, 4);
      }
      memcpy(&l.to[i], pair, 4);
    }
  }
}

// --- mma

template <class T>
struct Mma {
  T *c;
  const uint32_t *a, *b;
};

// Words of a, 16 rows of 8, and of b, 8 columns of 8.
template <class T>
void gather(void **args, uint32_t *a, uint32_t *b)
{
  for (int lane = 0; lane < 32; lane++) {
    const Mma<T> &m = *(const Mma<T> *)args[lane];
    const int g = lane / 4, t = lane % 4;
    a[g * 8 + t] = m.a[0];
    a[(g + 8) * 8 + t] = m.a[1];
    a[g * 8 + t + 4] = m.a[2];
    a[(g + 8) * 8 + t + 4] = m.a[3];
    b[g * 8 + t] = m.b[0];
    b[g * 8 + t + 4] = m.b[1];
  }
}
// c[16][8], to or from the lanes
template <class T, class Sum>
void exchange(void **args, Sum *c, bool out)
{
  for (int lane = 0; lane < 32; lane++) {
    T *own = ((const Mma<T> *)args[lane])->c;
    for (int i = 0; i < 4; i++) {
      Sum &x = c[(lane / 4 + i / 2 * 8) * 8 + lane % 4 * 2 + i % 2];
      if (out)
        own[i] = (T)x;
      else
        x = own[i];
    }
  }
}

TC_CPU_CLONES void multiply(const double *a, const double *b, double *c, int depth)
{
  for (int r = 0; r < 16; r += 4) {  // four rows at a time, for additions that do not wait for each other
    double sum[4][8];
    memcpy(sum, c + r * 8, sizeof sum);
    for (int k = 0; k < depth; k++)
      for (int i = 0; i < 4; i++)
        for (int n = 0; n < 8; n++) sum[i][n] += a[(r + i) * depth + k] * b[k * 8 + n];
    memcpy(c + r * 8, sum, sizeof sum);
  }
}
TC_CPU_CLONES void multiply_integers(const int16_t *a, const int16_t *b, int32_t *c)
{
  for (int r = 0; r < 16; r++)
    for (int k = 0; k < 32; k++)
      for (int n = 0; n < 8; n++) c[r * 8 + n] += a[r * 32 + k] * b[k * 8 + n];
}

float from_bits(uint32_t bits)
{
  float x;
  memcpy(&x, &bits, 4);
  return x;
}
// Steps over arrays, which compilers turn into vectors.
TC_CPU_CLONES void unpack_f16(const uint32_t *words, int n, double *to)
{
  uint16_t h[256];
  uint32_t bits[256];
  float x[256];
  memcpy(h, words, (size_t)n * 4);
  for (int i = 0; i < 2 * n; i++) bits[i] = (uint32_t)(h[i] & 0x7fff) << 13;
  memcpy(x, bits, (size_t)n * 8);
  for (int i = 0; i < 2 * n; i++) x[i] *= 5.192296858534828e33f;  // 2^112: the exponents' difference
  memcpy(bits, x, (size_t)n * 8);
  for (int i = 0; i < 2 * n; i++) bits[i] |= (0 - (uint32_t)((h[i] & 0x7c00) == 0x7c00)) & 0x7f800000u;  // infinity, NaN
  for (int i = 0; i < 2 * n; i++) bits[i] |= (uint32_t)(h[i] & 0x8000) << 16;
  memcpy(x, bits, (size_t)n * 8);
  for (int i = 0; i < 2 * n; i++) to[i] = x[i];
}
void unpack_bf16(const uint32_t *words, int n, double *to)
{
  for (int i = 0; i < 2 * n; i++) to[i] = from_bits(i % 2 == 0 ? words[i / 2] << 16 : words[i / 2] & 0xffff0000u);
}
void unpack_tf32(const uint32_t *words, int n, double *to)
{
  for (int i = 0; i < n; i++) to[i] = from_bits(words[i] & 0xffffe000u);  // the low 13 bits do not count
}

template <int Elements, void (*Unpack)(const uint32_t *, int, double *)>
void mma_all(void **args, unsigned)
{
  constexpr int depth = 8 * Elements;
  uint32_t a_words[128], b_words[64];
  alignas(64) double a[16 * depth], columns[8 * depth], b[depth * 8], c[128];
  gather<float>(args, a_words, b_words);
  Unpack(a_words, 128, a);
  Unpack(b_words, 64, columns);
  for (int k = 0; k < depth; k++)
    for (int n = 0; n < 8; n++) b[k * 8 + n] = columns[n * depth + k];
  exchange<float>(args, c, false);
  multiply(a, b, c, depth);
  exchange<float>(args, c, true);
}
template <class A, class B>
void mma_integers_all(void **args, unsigned)
{
  uint32_t a_words[128], b_words[64];
  A a[16 * 32];
  B columns[8 * 32];
  int16_t a_wide[16 * 32], b[32 * 8];
  int32_t c[128];
  gather<int32_t>(args, a_words, b_words);
  memcpy(a, a_words, sizeof a);
  memcpy(columns, b_words, sizeof columns);
  for (int i = 0; i < 16 * 32; i++) a_wide[i] = a[i];
  for (int k = 0; k < 32; k++)
    for (int n = 0; n < 8; n++) b[k * 8 + n] = columns[n * 32 + k];
  exchange<int32_t>(args, c, false);
  multiply_integers(a_wide, b, c);
  exchange<int32_t>(args, c, true);
}

template <class T>
void mma(const char *what, T *c, const uint32_t *a, const uint32_t *b, const char *file, int line, void (*op)(void **, unsigned))
{
  Mma<T> m = {c, a, b};
  if (whole_warp() != ~0u) fail("%s at %s:%d: the warp has no 32 lanes", what, file, line);
  warp_operation(what, ~0u, &m, file, line, op);
}

// --- wgmma: at once, by the warp, from rows of 128 bytes whose chunks of 16 are exchanged

// Bytes `begin` .. begin + 15 of row r.
const unsigned char *swizzled(const unsigned char *begin, int row, int chunk)
{
  const int first = (int)((uintptr_t)begin % 128 / 16);
  return begin - first * 16 + row * 128 + ((first + chunk) ^ (row % 8)) * 16;
}

template <class T>
void wgmma_in_pieces(T *sums, const void *left, const void *right, int columns, void multiply(T *, const uint32_t *, const uint32_t *, const char *, int), const char *file, int line)
{
  const int lane = now.linear % 32;
  const unsigned char *const a_rows = (const unsigned char *)left, *const b_rows = (const unsigned char *)right;
  check_aligned(a_rows - (uintptr_t)a_rows % 128, 1024, file, line);
  check_aligned(b_rows - (uintptr_t)b_rows % 128, 1024, file, line);
  uint32_t a[4], b[2];
  ldmatrix(a, swizzled(a_rows, lane % 16, lane / 16), 4, false, file, line);
  for (int j = 0; j < columns / 8; j++) {
    ldmatrix(b, swizzled(b_rows, j * 8 + lane % 8, lane / 8 % 2), 2, false, file, line);
    multiply(sums + 4 * j, a, b, file, line);
  }
}

}  // namespace

void wgmma(float *sums, const void *left, const void *right, int columns, void multiply(float *, const uint32_t *, const uint32_t *, const char *, int), const char *file, int line)
{
  wgmma_in_pieces(sums, left, right, columns, multiply, file, line);
}
void wgmma(int32_t *sums, const void *left, const void *right, int columns, void multiply(int32_t *, const uint32_t *, const uint32_t *, const char *, int), const char *file, int line)
{
  wgmma_in_pieces(sums, left, right, columns, multiply, file, line);
}

void cp_async(void *shared, const void *global, int bytes, bool valid, const char *file, int line)
{
  check_aligned(shared, (size_t)bytes, file, line);
  if (valid) check_aligned(global, (size_t)bytes, file, line);
  my_copies().list.push_back({shared, global, bytes, valid, file, line});
}
void cp_async_commit()
{
  Copies &c = my_copies();
  c.ends.push_back(c.list.size());
}
void cp_async_wait(int pending)
{
  Copies &c = my_copies();
  for (; c.ends.size() - c.ended > (size_t)pending; c.ended++)
    for (; c.done < c.ends[c.ended]; c.done++) finish(c.list[c.done]);
}

void ldmatrix(uint32_t *to, const void *row, int matrices, bool transposed, const char *file, int line)
{
  const bool used = now.linear % 32 < 8 * matrices;
  if (used) check_aligned(row, 16, file, line);
  if (used && checker) checker->access(row, 16, false, false, file, line);
  if (whole_warp() != ~0u) fail("ldmatrix at %s:%d: the warp has no 32 lanes", file, line);
  LdMatrix l = {(const unsigned char *)row, to, matrices, transposed};
  warp_operation("ldmatrix", ~0u, &l, file, line, ldmatrix_all);
}

void mma_f16(float c[4], const uint32_t a[4], const uint32_t b[2], const char *file, int line)
{
  mma("mma f16", c, a, b, file, line, mma_all<2, unpack_f16>);
}
void mma_bf16(float c[4], const uint32_t a[4], const uint32_t b[2], const char *file, int line)
{
  mma("mma bf16", c, a, b, file, line, mma_all<2, unpack_bf16>);
}
void mma_tf32(float c[4], const uint32_t a[4], const uint32_t b[2], const char *file, int line)
{
  mma("mma tf32", c, a, b, file, line, mma_all<1, unpack_tf32>);
}
void mma_s8(int32_t c[4], const uint32_t a[4], const uint32_t b[2], const char *file, int line)
{
  mma("mma s8", c, a, b, file, line, mma_integers_all<int8_t, int8_t>);
}
void mma_u8(int32_t c[4], const uint32_t a[4], const uint32_t b[2], const char *file, int line)
{
  mma("mma u8", c, a, b, file, line, mma_integers_all<uint8_t, uint8_t>);
}
void mma_s8u8(int32_t c[4], const uint32_t a[4], const uint32_t b[2], const char *file, int line)
{
  mma("mma s8 u8", c, a, b, file, line, mma_integers_all<int8_t, uint8_t>);
}
void mma_u8s8(int32_t c[4], const uint32_t a[4], const uint32_t b[2], const char *file, int line)
{
  mma("mma u8 s8", c, a, b, file, line, mma_integers_all<uint8_t, int8_t>);
}

}  // namespace tc_cpu
