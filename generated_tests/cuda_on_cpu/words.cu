// Every word of tc_cuda.h and device code of the other headers, once: for compilers only, nothing here is run.
#include "tc_cuda.h"
#include "tc_scalar.h"
#include "tc_types.h"
#include "tc_rt.h"

extern "C" __global__ void vectors(float *f, int32_t *i, uint32_t *u, double *d, int64_t *l, uint16_t *h, int16_t *s, int8_t *b, uint8_t *c)
{
  float f4[4];
  int32_t i4[4];
  uint32_t u4[4];
  double d2[2];
  int64_t l2[2];
  uint16_t h8[8];
  int16_t s8[8];
  int8_t b16[16];
  uint8_t c16[16];
  tc_load4(f4, f), tc_load4(i4, i), tc_load4(u4, u), tc_load2(d2, d), tc_load2(l2, l), tc_load8(h8, h), tc_load8(s8, s), tc_load16(b16, b), tc_load16(c16, c);
  tc_store4(f + 4, f4), tc_store4(i + 4, i4), tc_store4(u + 4, u4), tc_store2(d + 2, d2), tc_store2(l + 2, l2), tc_store8(h + 8, h8), tc_store8(s + 8, s8);
  tc_store16(b + 16, b16), tc_store16(c + 16, c16);
}

extern "C" __global__ void warps(float *f, double *d, int32_t *i, int64_t *l, const float *x)
{
  uint32_t a[4], b[2];
  float c[4] = {};
  int32_t ci[4] = {};
  unsigned char *shared = tc_dynamic_shared();
  tc_cp_async4(shared, x);
  tc_cp_async8(shared + 8, x, threadIdx.x > 3);
  tc_cp_async16(shared + 16, x);
  tc_cp_async_commit();
  tc_cp_async_wait<1>();
  tc_cp_async_wait<0>();
  __syncthreads();
  tc_ldmatrix_x4(a, shared + 16 * (threadIdx.x % 32));
  tc_ldmatrix_x4_trans(a, shared);
  tc_ldmatrix_x2(b, shared);
  tc_ldmatrix_x2_trans(b, shared);
  tc_mma_f16_k16(c, a, b);
  tc_mma_bf16_k16(c, a, b);
  tc_mma_tf32_k8(c, a, b);
  tc_mma_s8_k32(ci, a, b);
  *f = tc_shuffle_xor(c[0], 1) + tc_shuffle_down(c[1], 2) + tc_shuffle_idx(c[2], 3);
  *d = tc_shuffle_xor(*d, 1) + tc_shuffle_down(*d, 2) + tc_shuffle_idx(*d, 3);
  *i = tc_shuffle_xor(ci[0], 1) + tc_shuffle_down(ci[1], 2) + tc_shuffle_idx(ci[2], 3);
  *l = tc_shuffle_xor(*l, 1) + tc_shuffle_down(*l, 2) + tc_shuffle_idx(*l, 3);
  f[2] = tc_warp_add(c[0]) + tc_warp_mul<8>(c[1]) + tc_warp_max(c[2]) + tc_warp_min<16>(c[3]);
  if (tc_any(c[0] > 1) && !tc_all(c[1] > 2)) f[1] = (float)tc_ballot(c[0] > 0);
}

extern "C" __global__ void scalars(float *f, double *d, int32_t *i, int64_t *l, uint16_t *h, uint8_t *b, int32_t *status)
{
  f[0] = tc_max_f32(f[1], tc_min_f32(f[2], tc_floor_mod_f32(f[3], 3.0f))) + tc_sigmoid_f32(f[4]) + tc_sign_f32(f[5]) + tc_floor_div_f32(f[6], 2.0f);
  d[0] = tc_max_f64(d[1], tc_min_f64(d[2], tc_floor_mod_f64(d[3], 3.0))) + tc_sigmoid_f64(d[4]) + tc_sign_f64(d[5]) + tc_floor_div_f64(d[6], 2.0);
  i[0] = tc_i32_from_f32(f[0]) + tc_i32_from_f64(d[0]) + tc_floor_div_i32(i[1], i[2]) + tc_pow_i32(i[3], i[4]) + (int32_t)tc_bits_f32_u32(f[1]);
  l[0] = tc_i64_from_f32(f[0]) + tc_i64_from_f64(d[0]) + tc_floor_mod_i64(l[1], l[2]) + tc_index(l[3], 7, status) + tc_i4_wrap(l[4]);
  h[0] = tc_f16_from_f32(tc_f32_from_f16(h[1]) + tc_f32_from_bf16(h[2]));
  h[3] = tc_bf16_from_f32(tc_f32_to_odd(d[1]));
  b[0] = tc_f8e4m3fn_from_f32(tc_f32_from_f8e5m2(b[1]) + tc_f32_from_f8e4m3fnuz(b[2]), 1);
  b[3] = tc_f4e2m1_from_f32(tc_f32_from_f8e8m0(b[4]));
}
