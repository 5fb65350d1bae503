// relu(a b + bias) in single precision: tiles of 128 x 128 x 16 in shared memory, two of them in turn, filled by cp.async
// (a transposed on its way), 8 x 8 outputs a thread.
#include "sample.h"
#include "tc_scalar.h"

constexpr int kM = 256, kN = 256, kK = 128, kTile = 128, kDepth = 16, kThreads = 256;
constexpr int kLd = kTile + 4;

static __device__ __forceinline__ void load_tile(float *a_tile, float *b_tile, const float *a, const float *b, int k0)
{
  const int t = (int)threadIdx.x;
#pragma unroll
  for (int i = 0; i < kTile * kDepth / kThreads; i++) {
    const int e = i * kThreads + t, m = e / kDepth, k = e % kDepth;
    tc_cp_async4(a_tile + k * kLd + m, a + (size_t)m * kK + k0 + k);
  }
#pragma unroll
  for (int i = 0; i < kDepth * kTile / 4 / kThreads; i++) {
    const int e = i * kThreads + t, k = e / (kTile / 4), n = e % (kTile / 4) * 4;
    tc_cp_async16(b_tile + k * kTile + n, b + (size_t)(k0 + k) * kN + n);
  }
  tc_cp_async_commit();
}

static __global__ void __launch_bounds__(kThreads, 2)
matmul_bias_relu(float *__restrict__ c, const float *__restrict__ a, const float *__restrict__ b, const float *__restrict__ bias)
{
  __shared__ __align__(16) float a_tile[2][kDepth * kLd];
  __shared__ __align__(16) float b_tile[2][kDepth * kTile];
  const int tx = (int)threadIdx.x % 16, ty = (int)threadIdx.x / 16;
  const int row0 = (int)blockIdx.y * kTile, column0 = (int)blockIdx.x * kTile;
  a += (size_t)row0 * kK;
  b += column0;
  float sum[8][8] = {};
  load_tile(a_tile[0], b_tile[0], a, b, 0);
  for (int k0 = 0; k0 < kK; k0 += kDepth) {
    const int turn = k0 / kDepth % 2;
    tc_cp_async_wait<0>();
#if BUG != 1  // no barrier around the tiles
    __syncthreads();
#endif
    if (k0 + kDepth < kK) load_tile(a_tile[1 - turn], b_tile[1 - turn], a, b, k0 + kDepth);
#pragma unroll
    for (int k = 0; k < kDepth; k++) {
      float ra[8], rb[8];
#pragma unroll
      for (int h = 0; h < 2; h++) {
        tc_load4(ra + 4 * h, a_tile[turn] + k * kLd + h * 64 + ty * 4);
        tc_load4(rb + 4 * h, b_tile[turn] + k * kTile + h * 64 + tx * 4);
      }
#pragma unroll
      for (int i = 0; i < 8; i++)
#pragma unroll
        for (int j = 0; j < 8; j++) sum[i][j] = fmaf(ra[i], rb[j], sum[i][j]);
    }
  }
#pragma unroll
  for (int i = 0; i < 8; i++)
#pragma unroll
    for (int h = 0; h < 2; h++) {
      const int row = row0 + i / 4 * 64 + ty * 4 + i % 4, column = column0 + h * 64 + tx * 4;
      float v[4];
      tc_load4(v, bias + column);
#pragma unroll
      for (int l = 0; l < 4; l++) v[l] = tc_max_f32(sum[i][4 * h + l] + v[l], 0.0f);
      tc_store4(c + (size_t)row * kN + column, v);
    }
}

int main()
{
  std::vector<float> a(kM * kK), b(kK * kN), bias(kN), expected(kM * kN);
  for (auto *v : {&a, &b, &bias})
    for (float &e : *v) e = random_float();
  for (int i = 0; i < kM; i++) {
    for (int k = 0; k < kK; k++)
      for (int j = 0; j < kN; j++) expected[i * kN + j] = fmaf(a[i * kK + k], b[k * kN + j], expected[i * kN + j]);
    for (int j = 0; j < kN; j++) expected[i * kN + j] = tc_max_f32(expected[i * kN + j] + bias[j], 0.0f);
  }
  const float *da = upload(a), *db = upload(b), *dbias = upload(bias);
  float *dc = device_memory<float>(kM * kN);
  CALL(tc_launch(matmul_bias_relu, dim3(kN / kTile, kM / kTile), dim3(kThreads), 0, nullptr, dc, da, db, dbias));
  return verdict("tiled sgemm", download(dc, kM * kN), expected, 0);
}
