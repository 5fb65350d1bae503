// The mean of rows: a block a row, a tree in shared memory with a barrier a level, the total by atomics.
#include "sample.h"

constexpr int kRows = 64, kColumns = 2048, kThreads = 256;

static __global__ void __launch_bounds__(kThreads) mean_rows(float *__restrict__ y, float *__restrict__ total, const float *__restrict__ x)
{
  __shared__ float part[kThreads];
  const int t = (int)threadIdx.x;
  const float *row = x + (size_t)blockIdx.x * kColumns;
  float sum = 0.0f;
  for (int c = t; c < kColumns; c += kThreads) sum += row[c];
  part[t] = sum;
  __syncthreads();
  for (int half = kThreads / 2; half > 0; half /= 2) {
    if (t < half) part[t] += part[t + half];
#if BUG != 1  // no barrier between the levels of the tree
    __syncthreads();
#endif
  }
  if (t == 0) {
    y[blockIdx.x] = part[0] / kColumns;
    atomicAdd(total, part[0]);
  }
}

int main()
{
  std::vector<float> x((size_t)kRows * kColumns), expected(kRows + 1);
  for (float &e : x) e = random_integer(8);  // every order of the sums gives the same bits
  for (int r = 0; r < kRows; r++) {
    float sum = 0;
    for (int c = 0; c < kColumns; c++) sum += x[(size_t)r * kColumns + c];
    expected[r] = sum / kColumns;
    expected[kRows] += sum;
  }
  const float *dx = upload(x);
  float *dy = device_memory<float>(kRows + 1);
  CALL(cudaMemset(dy, 0, (kRows + 1) * 4));
  CALL(tc_launch(mean_rows, dim3(kRows), dim3(kThreads), 0, nullptr, dy, dy + kRows, dx));
  return verdict("block reduction", download(dy, kRows + 1), expected, 0);
}
