// softmax(q k^T / 8) v of heads with 64 elements, f16, in one pass over tiles of 64 keys: the scores' accumulators are the
// first operand of the second product. Four warps of 16 queries a block.
#include "sample.h"
#include "tc_scalar.h"

constexpr int kHeads = 2, kLength = 128, kD = 64, kTile = 64, kThreads = 128, kLd = kD + 8;

static __device__ __forceinline__ uint32_t pack(float a, float b) { return tc_f16_from_f32(a) | (uint32_t)tc_f16_from_f32(b) << 16; }

static __device__ __forceinline__ void load_tile(uint16_t *to, const uint16_t *from)
{
#pragma unroll
  for (int i = 0; i < 4; i++) {
    const int row = i * 16 + (int)threadIdx.x / 8, column = (int)threadIdx.x % 8 * 8;
    tc_cp_async16(to + row * kLd + column, from + (size_t)row * kD + column);
  }
}

static __global__ void __launch_bounds__(kThreads)
attention(uint16_t *__restrict__ o, const uint16_t *__restrict__ q, const uint16_t *__restrict__ k, const uint16_t *__restrict__ v)
{
  __shared__ __align__(16) uint16_t q_tile[kTile * kLd];
  __shared__ __align__(16) uint16_t k_tile[2][kTile * kLd];
  __shared__ __align__(16) uint16_t v_tile[2][kTile * kLd];
  const int lane = (int)threadIdx.x % 32, warp = (int)threadIdx.x / 32;
  const size_t head = (size_t)blockIdx.y * kLength * kD;
  load_tile(q_tile, q + head + (size_t)blockIdx.x * kTile * kD);
  load_tile(k_tile[0], k + head);
  load_tile(v_tile[0], v + head);
  tc_cp_async_commit();
  uint32_t fq[4][4];
  float sum[8][4] = {}, top[2] = {-1e30f, -1e30f}, total[2] = {0.0f, 0.0f};
  const float scale = 0.125f * 1.44269504f;  // in base 2
  for (int tile = 0; tile < kLength / kTile; tile++) {
    tc_cp_async_wait<0>();
    __syncthreads();
    if (tile + 1 < kLength / kTile) {
      load_tile(k_tile[(tile + 1) % 2], k + head + (size_t)(tile + 1) * kTile * kD);
      load_tile(v_tile[(tile + 1) % 2], v + head + (size_t)(tile + 1) * kTile * kD);
    }
    tc_cp_async_commit();
    if (tile == 0) {
#pragma unroll
      for (int i = 0; i < 4; i++) tc_ldmatrix_x4(fq[i], q_tile + (warp * 16 + lane % 16) * kLd + i * 16 + lane / 16 * 8);
    }
    float s[8][4] = {};
#pragma unroll
    for (int i = 0; i < 4; i++)
#pragma unroll
      for (int j = 0; j < 8; j++) {
        uint32_t fk[2];
        tc_ldmatrix_x2(fk, k_tile[tile % 2] + (j * 8 + lane % 8) * kLd + i * 16 + lane / 8 % 2 * 8);
        tc_mma_f16_k16(s[j], fq[i], fk);
      }
#pragma unroll
    for (int h = 0; h < 2; h++) {  // rows lane / 4 and 8 below
      float largest = top[h];
#pragma unroll
      for (int j = 0; j < 8; j++) largest = tc_max_f32(largest, tc_max_f32(s[j][2 * h], s[j][2 * h + 1]));
      largest = tc_max_f32(largest, tc_shuffle_xor(largest, 1));
      largest = tc_max_f32(largest, tc_shuffle_xor(largest, 2));
      const float rescale = exp2f((top[h] - largest) * scale);
      top[h] = largest;
      total[h] *= rescale;
#pragma unroll
      for (int j = 0; j < 8; j++)
#pragma unroll
        for (int e = 2 * h; e < 2 * h + 2; e++) {
          sum[j][e] *= rescale;
          s[j][e] = exp2f((s[j][e] - largest) * scale);
          total[h] += s[j][e];
        }
    }
#pragma unroll
    for (int i = 0; i < 4; i++) {
      const uint32_t fp[4] = {pack(s[2 * i][0], s[2 * i][1]), pack(s[2 * i][2], s[2 * i][3]), pack(s[2 * i + 1][0], s[2 * i + 1][1]),
                              pack(s[2 * i + 1][2], s[2 * i + 1][3])};
#pragma unroll
      for (int j = 0; j < 4; j++) {
        uint32_t fv[4];
        tc_ldmatrix_x4_trans(fv, v_tile[tile % 2] + (i * 16 + lane % 16) * kLd + j * 16 + lane / 16 * 8);
        tc_mma_f16_k16(sum[2 * j], fp, fv);
        tc_mma_f16_k16(sum[2 * j + 1], fp, fv + 2);
      }
    }
  }
#pragma unroll
  for (int h = 0; h < 2; h++) {
    total[h] += tc_shuffle_xor(total[h], 1);
    total[h] += tc_shuffle_xor(total[h], 2);
    const size_t row = head + (size_t)((int)blockIdx.x * kTile + warp * 16 + lane / 4 + 8 * h) * kD;
#pragma unroll
    for (int j = 0; j < 8; j++)
#pragma unroll
      for (int e = 0; e < 2; e++) o[row + (size_t)(j * 8 + lane % 4 * 2 + e)] = tc_f16_from_f32(sum[j][2 * h + e] / total[h]);
  }
}

int main()
{
  const size_t n = (size_t)kHeads * kLength * kD;
  std::vector<float> q(n), k(n), v(n), expected(n);
  for (auto *m : {&q, &k, &v}) {
    for (float &e : *m) e = 2 * random_float();
    *m = from_f16(to_f16(*m));
  }
  for (int h = 0; h < kHeads; h++)
    for (int i = 0; i < kLength; i++) {
      const size_t head = (size_t)h * kLength * kD, row = head + (size_t)i * kD;
      std::vector<double> s(kLength);
      double largest = -1e30, total = 0;
      for (int j = 0; j < kLength; j++) {
        for (int d = 0; d < kD; d++) s[j] += (double)q[row + d] * k[head + (size_t)j * kD + d] * 0.125;
        largest = fmax(largest, s[j]);
      }
      for (double &e : s) total += e = exp(e - largest);
      for (int d = 0; d < kD; d++) {
        double sum = 0;
        for (int j = 0; j < kLength; j++) sum += s[j] * v[head + (size_t)j * kD + d];
        expected[row + d] = (float)(sum / total);
      }
    }
  const uint16_t *dq = upload(to_f16(q)), *dk = upload(to_f16(k)), *dv = upload(to_f16(v));
  uint16_t *out = device_memory<uint16_t>(n);
  CALL(tc_launch(attention, dim3(kLength / kTile, kHeads), dim3(kThreads), 0, nullptr, out, dq, dk, dv));
  return verdict("attention", from_f16(download(out, n)), expected, 2e-3);
}
