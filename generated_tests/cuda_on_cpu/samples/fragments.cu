// Every tc_mma_* on one tile against plain loops, with fragments filled as tc_cuda.h says; the other words of that header
// that no other sample uses. Integers, so that sums are exact.
#include "sample.h"

enum Kind { kF16, kBf16, kTf32, kS8 };

// a[16][k], b[8][k] (columns), c[16][8] as stored: 32-bit words of 1, 2 or 4 elements.
static __global__ void mma_tile(int kind, float *__restrict__ c, const uint32_t *__restrict__ a, const uint32_t *__restrict__ b)
{
  const int lane = (int)threadIdx.x, g = lane / 4, t = lane % 4;
  const uint32_t fa[4] = {a[g * 8 + t], a[(g + 8) * 8 + t], a[g * 8 + t + 4], a[(g + 8) * 8 + t + 4]};
  const uint32_t fb[2] = {b[g * 8 + t], b[g * 8 + t + 4]};
  float fc[4] = {1, 2, 3, 4};
  int32_t ic[4] = {1, 2, 3, 4};
  if (kind == kF16) tc_mma_f16_k16(fc, fa, fb);
  if (kind == kBf16) tc_mma_bf16_k16(fc, fa, fb);
  if (kind == kTf32) tc_mma_tf32_k8(fc, fa, fb);
  if (kind == kS8) tc_mma_s8_k32(ic, fa, fb);
  for (int i = 0; i < 4; i++) c[(g + i / 2 * 8) * 8 + t * 2 + i % 2] = kind == kS8 ? (float)ic[i] : fc[i];
}

static __global__ void exchange(float *__restrict__ y, double *__restrict__ d, int64_t *__restrict__ l, const uint16_t *__restrict__ h)
{
  const int lane = (int)threadIdx.x;
  uint16_t *tile = reinterpret_cast<uint16_t *>(tc_dynamic_shared());
  uint16_t eight[8];
  tc_load8(eight, h + 8 * lane);
  tc_store8(tile + 8 * lane, eight);
  if (lane < 8) tc_cp_async8(tile + 256 + 4 * lane, h + 4 * lane, lane < 4);
  tc_cp_async_commit();
  tc_cp_async_wait<0>();
  __syncthreads();
  uint32_t pair[2];
  tc_ldmatrix_x2_trans(pair, tile + lane % 16 * 8);
  y[lane] = (float)(pair[0] & 0xffff) + 1000.0f * (float)(pair[1] >> 16);
  y[32 + lane] = tile[256 + lane];
  y[64 + lane] = tc_shuffle_down((float)lane, 5);
  y[96 + lane] = (float)tc_ballot(lane % 3 == 0) * (tc_any(lane == 7) ? 1.0f : 0.0f) * (tc_all(lane >= 0) ? 1.0f : 0.0f);
  double two[2] = {tc_shuffle_idx(0.5 + lane, 31 - lane), (double)warpSize};
  tc_store2(d + 2 * lane, two);
  int64_t longs[2] = {tc_shuffle_xor((int64_t)lane << 40, 3), __popc((unsigned)lane)};
  tc_store2(l + 2 * lane, longs);
}

static uint32_t encode(int kind, float x)
{
  uint32_t bits;
  memcpy(&bits, &x, 4);
  return kind == kF16 ? tc_f16_from_f32(x) : kind == kBf16 ? tc_bf16_from_f32(x) : kind == kTf32 ? bits : (uint32_t)(uint8_t)(int8_t)x;
}

static int run_mma(int kind, const char *name)
{
  const int per_word = kind == kTf32 ? 1 : kind == kS8 ? 4 : 2, depth = 8 * per_word;
  std::vector<float> a(16 * depth), b(8 * depth), expected(128);
  std::vector<uint32_t> wa(128), wb(64);
  for (int i = 0; i < 16 * depth; i++) {
    a[i] = random_integer(50);
    wa[i / per_word] |= encode(kind, a[i]) << (i % per_word * (32 / per_word) & 31);
  }
  for (int i = 0; i < 8 * depth; i++) {
    b[i] = random_integer(50);
    wb[i / per_word] |= encode(kind, b[i]) << (i % per_word * (32 / per_word) & 31);
  }
  for (int r = 0; r < 16; r++)
    for (int n = 0; n < 8; n++) {
      expected[r * 8 + n] = (float)(1 + r / 8 * 2 + n % 2);
      for (int k = 0; k < depth; k++) expected[r * 8 + n] += a[r * depth + k] * b[n * depth + k];
    }
  const uint32_t *da = upload(wa), *db = upload(wb);
  float *dc = device_memory<float>(128);
  CALL(tc_launch(mma_tile, dim3(1), dim3(32), 0, nullptr, kind, dc, da, db));
  return verdict(name, download(dc, 128), expected, 0);
}

static int run_exchange()
{
  std::vector<uint16_t> h(256);
  for (int i = 0; i < 256; i++) h[i] = (uint16_t)i;
  const uint16_t *dh = upload(h);
  float *y = device_memory<float>(128);
  double *d = device_memory<double>(64);
  int64_t *l = device_memory<int64_t>(64);
  CALL(tc_launch(exchange, dim3(1), dim3(32), 1024, nullptr, y, d, l, dh));
  std::vector<float> expected(256), got = download(y, 128);
  const std::vector<double> doubles = download(d, 64);
  const std::vector<int64_t> longs = download(l, 64);
  got.insert(got.end(), doubles.begin(), doubles.end());
  for (int64_t x : longs) got.push_back((float)x);
  for (int i = 0; i < 32; i++) {
    // word 0 holds rows 2 (i % 4) and the next of column i / 4 of the first matrix, word 1 those of the second
    expected[i] = (float)(16 * (i % 4) + i / 4) + 1000.0f * (float)(64 + 16 * (i % 4) + 8 + i / 4);
    expected[32 + i] = i < 16 ? (float)i : 0.0f;
    expected[64 + i] = (float)(i + 5 < 32 ? i + 5 : i);
    expected[96 + i] = (float)0x49249249u;
    expected[128 + 2 * i] = 31.5f - (float)i;
    expected[129 + 2 * i] = 32;
    expected[192 + 2 * i] = (float)((int64_t)(i ^ 3) << 40);
    expected[193 + 2 * i] = (float)((i & 1) + (i >> 1 & 1) + (i >> 2 & 1) + (i >> 3 & 1) + (i >> 4 & 1));
  }
  return verdict("exchange inside a warp", got, expected, 0);
}

int main()
{
  return run_mma(kF16, "mma f16") | run_mma(kBf16, "mma bf16") | run_mma(kTf32, "mma tf32") | run_mma(kS8, "mma s8") | run_exchange();
}
