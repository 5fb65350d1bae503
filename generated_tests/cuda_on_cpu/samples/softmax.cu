// Softmax of rows of 768: a warp a row, the row in registers, maximum and sum by shuffles.
#include "sample.h"
#include "tc_scalar.h"

constexpr int kRows = 512, kColumns = 768, kWarps = 8, kPerLane = kColumns / 32;

static __global__ void __launch_bounds__(kWarps * 32) softmax_rows(float *__restrict__ y, const float *__restrict__ x)
{
  const int row = (int)(blockIdx.x * kWarps + threadIdx.y), lane = (int)threadIdx.x;
  x += (size_t)row * kColumns;
  y += (size_t)row * kColumns;
  float v[kPerLane];
#pragma unroll
  for (int i = 0; i < kPerLane / 4; i++) tc_load4(v + 4 * i, x + (i * 32 + lane) * 4);
  float top = v[0];
#pragma unroll
  for (int i = 1; i < kPerLane; i++) top = tc_max_f32(top, v[i]);
#pragma unroll
  for (int d = 16; d > 0; d /= 2) top = tc_max_f32(top, tc_shuffle_xor(top, d));
  float sum = 0.0f;
#pragma unroll
  for (int i = 0; i < kPerLane; i++) sum += v[i] = expf(v[i] - top);
#pragma unroll
  for (int d = 16; d > 0; d /= 2) sum += tc_shuffle_xor(sum, d);
  const float scale = 1.0f / sum;
#pragma unroll
  for (int i = 0; i < kPerLane; i++) v[i] *= scale;
#pragma unroll
  for (int i = 0; i < kPerLane / 4; i++) tc_store4(y + (i * 32 + lane) * 4, v + 4 * i);
}

int main()
{
  const size_t n = (size_t)kRows * kColumns;
  std::vector<float> x(n), expected(n);
  for (float &e : x) e = 3 * random_float();
  for (int r = 0; r < kRows; r++) {
    const float *row = &x[(size_t)r * kColumns];
    double top = row[0], sum = 0;
    for (int c = 1; c < kColumns; c++) top = fmax(top, row[c]);
    for (int c = 0; c < kColumns; c++) sum += exp(row[c] - top);
    for (int c = 0; c < kColumns; c++) expected[(size_t)r * kColumns + c] = (float)(exp(row[c] - top) / sum);
  }
  const float *dx = upload(x);
  float *dy = device_memory<float>(n);
  CALL(tc_launch(softmax_rows, dim3(kRows / kWarps), dim3(32, kWarps), 0, nullptr, dy, dx));
  return verdict("warp softmax", download(dy, n), expected, 1e-6);
}
