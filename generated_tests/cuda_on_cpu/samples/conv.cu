// A 3 x 3 convolution of f16 images, channels last, on tensor cores: rows are pixels, columns filters, the depth runs
// over (r, s, c). Four stages of tiles 128 x 64 x 32 in dynamic shared memory; borders are zeros that cp.async fills in.
#include "sample.h"
#include "tc_scalar.h"

constexpr int kImages = 1, kH = 14, kW = 14, kC = 64, kFilters = 64;
constexpr int kPixels = kImages * kH * kW, kDepth = 9 * kC;
constexpr int kBM = 128, kBN = 64, kBK = 32, kStages = 4, kThreads = 256, kLd = kBK + 8;
constexpr size_t kSharedBytes = (size_t)kStages * (kBM + kBN) * kLd * 2;
static_assert(kSharedBytes > 48 * 1024, "the case that has to ask for shared memory");

static __device__ __forceinline__ void load_stage(uint16_t *pixels, uint16_t *filters, const uint16_t *x, const uint16_t *w, int k0)
{
  const int t = (int)threadIdx.x, column = t % 4 * 8;
  const int r = k0 / (3 * kC), s = k0 / kC % 3, c = k0 % kC + column;
#pragma unroll
  for (int i = 0; i < 2; i++) {
    const int row = i * 64 + t / 4, pixel = (int)blockIdx.x * kBM + row;
    const int h = pixel / kW % kH - 1 + r, v = pixel % kW - 1 + s;
    const bool inside = pixel < kPixels && h >= 0 && h < kH && v >= 0 && v < kW;
    tc_cp_async16(pixels + row * kLd + column, x + (inside ? ((size_t)(pixel / (kH * kW) * kH + h) * kW + v) * kC + c : 0), inside);
  }
  tc_cp_async16(filters + t / 4 * kLd + column, w + (size_t)((int)blockIdx.y * kBN + t / 4) * kDepth + k0 + column);
}

static __global__ void __launch_bounds__(kThreads, 2)
conv3x3_bias_relu(uint16_t *__restrict__ y, const uint16_t *__restrict__ x, const uint16_t *__restrict__ w, const float *__restrict__ bias)
{
  uint16_t *pixels = reinterpret_cast<uint16_t *>(tc_dynamic_shared());  // [kStages][kBM][kLd]
  uint16_t *filters = pixels + kStages * kBM * kLd;                       // [kStages][kBN][kLd]
  const int lane = (int)threadIdx.x % 32, warp = (int)threadIdx.x / 32, wm = warp % 4 * 32, wn = warp / 4 * 32;
  float sum[2][4][4] = {};
#pragma unroll
  for (int s = 0; s < kStages - 1; s++) {
    load_stage(pixels + s * kBM * kLd, filters + s * kBN * kLd, x, w, s * kBK);
    tc_cp_async_commit();
  }
  for (int step = 0; step < kDepth / kBK; step++) {
    tc_cp_async_wait<kStages - 2>();
    __syncthreads();
    const int next = step + kStages - 1;
    if (next < kDepth / kBK) load_stage(pixels + next % kStages * kBM * kLd, filters + next % kStages * kBN * kLd, x, w, next * kBK);
    tc_cp_async_commit();
    const uint16_t *a = pixels + step % kStages * kBM * kLd, *b = filters + step % kStages * kBN * kLd;
#pragma unroll
    for (int k = 0; k < kBK; k += 16) {
      uint32_t fa[2][4], fb[2][4];
#pragma unroll
      for (int i = 0; i < 2; i++) tc_ldmatrix_x4(fa[i], a + (wm + i * 16 + lane % 16) * kLd + k + lane / 16 * 8);
#pragma unroll
      for (int j = 0; j < 2; j++) tc_ldmatrix_x4(fb[j], b + (wn + j * 16 + lane % 8 + lane / 16 * 8) * kLd + k + lane / 8 % 2 * 8);
#pragma unroll
      for (int i = 0; i < 2; i++)
#pragma unroll
        for (int j = 0; j < 4; j++) tc_mma_f16_k16(sum[i][j], fa[i], &fb[j / 2][j % 2 * 2]);
    }
  }
#pragma unroll
  for (int i = 0; i < 2; i++)
#pragma unroll
    for (int j = 0; j < 4; j++)
#pragma unroll
      for (int e = 0; e < 4; e++) {
        const int pixel = (int)blockIdx.x * kBM + wm + i * 16 + lane / 4 + e / 2 * 8;
        const int f = (int)blockIdx.y * kBN + wn + j * 8 + lane % 4 * 2 + e % 2;
        if (pixel < kPixels) y[(size_t)pixel * kFilters + f] = tc_f16_from_f32(tc_max_f32(sum[i][j][e] + bias[f], 0.0f));
      }
}

int main()
{
  std::vector<float> x((size_t)kPixels * kC), w((size_t)kFilters * kDepth), bias(kFilters), expected((size_t)kPixels * kFilters);
  for (auto *v : {&x, &w, &bias})
    for (float &e : *v) e = random_integer(2);  // sums are exact
  for (int pixel = 0; pixel < kPixels; pixel++)
    for (int f = 0; f < kFilters; f++) {
      float sum = bias[f];
      for (int r = 0; r < 3; r++)
        for (int s = 0; s < 3; s++) {
          const int h = pixel / kW % kH - 1 + r, v = pixel % kW - 1 + s;
          if (h < 0 || h >= kH || v < 0 || v >= kW) continue;
          const float *in = &x[((size_t)(pixel / (kH * kW) * kH + h) * kW + v) * kC], *by = &w[((size_t)(f * 3 + r) * 3 + s) * kC];
          for (int c = 0; c < kC; c++) sum += in[c] * by[c];
        }
      expected[(size_t)pixel * kFilters + f] = tc_f32_from_f16(tc_f16_from_f32(tc_max_f32(sum, 0.0f)));
    }
  const uint16_t *dx = upload(to_f16(x)), *dw = upload(to_f16(w));
  const float *dbias = upload(bias);
  uint16_t *dy = device_memory<uint16_t>(expected.size());
  CALL(tc_allow_shared(conv3x3_bias_relu, kSharedBytes));
  CALL(tc_launch(conv3x3_bias_relu, dim3((kPixels + kBM - 1) / kBM, kFilters / kBN), dim3(kThreads), kSharedBytes, nullptr, dy, dx, dw, dbias));
  return verdict("tensor core convolution", from_f16(download(dy, expected.size())), expected, 0);
}
