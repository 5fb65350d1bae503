// SPDX-License-Identifier: 0BSD -- support text of tc-emit; do not edit
// tc_cuda.h on a CPU; that file says what each function does. Beyond it: copies of tc_cp_async happen as late as they may,
// at the wait, so that one that is missing leaves the poison in shared memory; sums of tc_mma are exact, rounded once.
#ifndef TC_CUDA_ON_CPU_TC_H
#define TC_CUDA_ON_CPU_TC_H
#include "cuda_on_cpu.h"
#include "cuda_on_cpu_api.h"

#define tc_launch(kernel, ...) (tc_cpu::launch_named<kernel>(#kernel, __VA_ARGS__))

namespace tc_cpu {
template <auto Kernel, class... A>
cudaError_t launch_named(const char *name, dim3 grid, dim3 block, size_t shared_bytes, cudaStream_t stream, A... arguments)
{
  const Launch launch = {name, (const void *)Kernel, grid, block, shared_bytes, stream, __start_tc_cuda_shared, __stop_tc_cuda_shared, __start_tc_cuda_constant, __stop_tc_cuda_constant};
  return launch_kernel<Kernel>(launch, Kernel, arguments...);
}

void cp_async(void *shared, const void *global, int bytes, bool valid, const char *file, int line);
void cp_async_commit();
void cp_async_wait(int pending);
void ldmatrix(uint32_t *to, const void *row, int matrices, bool transposed, const char *file, int line);
void mma_f16(float c[4], const uint32_t a[4], const uint32_t b[2], const char *file, int line);
void mma_bf16(float c[4], const uint32_t a[4], const uint32_t b[2], const char *file, int line);
void mma_tf32(float c[4], const uint32_t a[4], const uint32_t b[2], const char *file, int line);
void mma_s8(int32_t c[4], const uint32_t a[4], const uint32_t b[2], const char *file, int line);
void mma_u8(int32_t c[4], const uint32_t a[4], const uint32_t b[2], const char *file, int line);
void mma_s8u8(int32_t c[4], const uint32_t a[4], const uint32_t b[2], const char *file, int line);
void mma_u8s8(int32_t c[4], const uint32_t a[4], const uint32_t b[2], const char *file, int line);
void wgmma(float *sums, const void *left, const void *right, int columns, void multiply(float *, const uint32_t *, const uint32_t *, const char *, int), const char *file, int line);
void wgmma(int32_t *sums, const void *left, const void *right, int columns, void multiply(int32_t *, const uint32_t *, const uint32_t *, const char *, int), const char *file, int line);
}  // namespace tc_cpu

template <class... P>
cudaError_t tc_allow_shared(void (*kernel)(P...), size_t shared_bytes)
{
  return cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)shared_bytes);
}

inline void tc_grid_dependency_wait() {}  // kernels run one after the other
inline unsigned char *tc_dynamic_shared() { return tc_cpu::now.dynamic_shared; }
template <class T>
T &tc_shared_view(unsigned char *p, const char *name, TC_CUDA_HERE)
{
  tc_cpu::check_aligned(p, 16, file, line);
  tc_cpu::begin_view(p, sizeof(T), name, file, line);
  return *reinterpret_cast<T *>(p);
}
#define TC_SHARED_VIEW(name, type, p) auto &name = tc_shared_view<type>(p, #name)

namespace tc_cpu {
#if defined(TC_CUDA_CHECK)
inline void load16(void *to, const void *p, const char *file, int line)
{
  check_aligned(p, 16, file, line);
  checked_access(p, 16, false, file, line);
  copy16(to, p);
}
inline void store16(void *p, const void *from, const char *file, int line)
{
  check_aligned(p, 16, file, line);
  checked_access(p, 16, true, file, line);
  copy16(p, from);
}
template <int Bytes>
void load_small(void *to, const void *p, const char *file, int line)
{
  check_aligned(p, Bytes, file, line);
  checked_access(p, Bytes, false, file, line);
  store_hidden(to, p, Bytes);
}
template <int Bytes>
void store_small(void *p, const void *from, const char *file, int line)
{
  check_aligned(p, Bytes, file, line);
  checked_access(p, Bytes, true, file, line);
  store_hidden(p, from, Bytes);
}
#else
template <int Bytes>
void load_small(void *to, const void *p, const char *file, int line)
{
  check_aligned(p, Bytes, file, line);
  memcpy(to, p, Bytes);
}
template <int Bytes>
void store_small(void *p, const void *from, const char *file, int line)
{
  check_aligned(p, Bytes, file, line);
  memcpy(p, from, Bytes);
}
struct alignas(16) Vector16 {
  uint64_t low, high;
} __attribute__((may_alias));
inline void load16(void *to, const void *p, const char *file, int line)
{
  check_aligned(p, 16, file, line);
  const Vector16 v = *(const Vector16 *)p;
  memcpy(to, &v, 16);
}
inline void store16(void *p, const void *from, const char *file, int line)
{
  Vector16 v;
  check_aligned(p, 16, file, line);
  memcpy(&v, from, 16);
  *(Vector16 *)p = v;
}
#endif
}  // namespace tc_cpu
#define TC_VECTOR(N)                                                                        \
  template <class T>                                                                        \
  inline void tc_load##N(T *to, const T *p, TC_CUDA_HERE)                                   \
  {                                                                                         \
    if constexpr (N * sizeof(T) == 16)                                                      \
      tc_cpu::load16(to, p, file, line);                                                    \
    else                                                                                    \
      tc_cpu::load_small<N * (int)sizeof(T)>(to, p, file, line);                            \
  }                                                                                         \
  template <class T>                                                                        \
  inline void tc_store##N(T *p, const T *from, TC_CUDA_HERE)                                \
  {                                                                                         \
    if constexpr (N * sizeof(T) == 16)                                                      \
      tc_cpu::store16(p, from, file, line);                                                 \
    else                                                                                    \
      tc_cpu::store_small<N * (int)sizeof(T)>(p, from, file, line);                         \
  }
TC_VECTOR(2)
TC_VECTOR(4)
TC_VECTOR(8)
TC_VECTOR(16)
#undef TC_VECTOR

template <class T>
T tc_shuffle_xor(T x, int by, TC_CUDA_HERE) { return __shfl_xor_sync(~0u, x, by, 32, file, line); }
template <class T>
T tc_shuffle_down(T x, int by, TC_CUDA_HERE) { return __shfl_down_sync(~0u, x, by, 32, file, line); }
template <class T>
T tc_shuffle_up(T x, int by, TC_CUDA_HERE) { return __shfl_up_sync(~0u, x, by, 32, file, line); }
template <class T>
T tc_shuffle_idx(T x, int lane, TC_CUDA_HERE) { return __shfl_sync(~0u, x, lane, 32, file, line); }
inline uint32_t tc_ballot(bool x, TC_CUDA_HERE) { return tc_cpu::ballot(~0u, x, file, line); }
inline bool tc_any(bool x, TC_CUDA_HERE) { return tc_cpu::ballot(~0u, x, file, line) != 0; }
inline bool tc_all(bool x, TC_CUDA_HERE) { return tc_cpu::ballot(~0u, !x, file, line) == 0; }

inline void tc_cp_async4(void *s, const void *g, bool valid = true, TC_CUDA_HERE) { tc_cpu::cp_async(s, g, 4, valid, file, line); }
inline void tc_cp_async8(void *s, const void *g, bool valid = true, TC_CUDA_HERE) { tc_cpu::cp_async(s, g, 8, valid, file, line); }
inline void tc_cp_async16(void *s, const void *g, bool valid = true, TC_CUDA_HERE) { tc_cpu::cp_async(s, g, 16, valid, file, line); }
inline void tc_cp_async_commit() { tc_cpu::cp_async_commit(); }
template <int Pending>
void tc_cp_async_wait() { tc_cpu::cp_async_wait(Pending); }

inline void tc_ldmatrix_x4(uint32_t to[4], const void *row, TC_CUDA_HERE) { tc_cpu::ldmatrix(to, row, 4, false, file, line); }
inline void tc_ldmatrix_x4_trans(uint32_t to[4], const void *row, TC_CUDA_HERE) { tc_cpu::ldmatrix(to, row, 4, true, file, line); }
inline void tc_ldmatrix_x2(uint32_t to[2], const void *row, TC_CUDA_HERE) { tc_cpu::ldmatrix(to, row, 2, false, file, line); }
inline void tc_ldmatrix_x2_trans(uint32_t to[2], const void *row, TC_CUDA_HERE) { tc_cpu::ldmatrix(to, row, 2, true, file, line); }

inline void tc_mma_f16_k16(float c[4], const uint32_t a[4], const uint32_t b[2], TC_CUDA_HERE) { tc_cpu::mma_f16(c, a, b, file, line); }
inline void tc_mma_bf16_k16(float c[4], const uint32_t a[4], const uint32_t b[2], TC_CUDA_HERE) { tc_cpu::mma_bf16(c, a, b, file, line); }
inline uint32_t tc_tf32(uint32_t v) { return (v & 0x7fffffffu) > 0x7f800000u ? 0x7fffffffu : (v + 0x1000u) & 0xffffe000u; }
template <int N>
void tc_round_tf32(uint32_t *v) { for (int i = 0; i < N; i++) v[i] = tc_tf32(v[i]); }
template <int N>
void tc_split_tf32(uint32_t *rest, uint32_t *v)
{
  for (int i = 0; i < N; i++) {
    const uint32_t high = tc_tf32(v[i]);
    rest[i] = tc_tf32(__float_as_uint(__uint_as_float(v[i]) - __uint_as_float(high)));
    v[i] = high;
  }
}
inline void tc_round_tf32_x4(uint32_t v[4]) { tc_round_tf32<4>(v); }
inline void tc_round_tf32_x2(uint32_t v[2]) { tc_round_tf32<2>(v); }
inline void tc_split_tf32_x4(uint32_t rest[4], uint32_t v[4]) { tc_split_tf32<4>(rest, v); }
inline void tc_split_tf32_x2(uint32_t rest[2], uint32_t v[2]) { tc_split_tf32<2>(rest, v); }
inline void tc_mma_tf32_k8(float c[4], const uint32_t a[4], const uint32_t b[2], TC_CUDA_HERE) { tc_cpu::mma_tf32(c, a, b, file, line); }
inline void tc_mma_s8_k32(int32_t c[4], const uint32_t a[4], const uint32_t b[2], TC_CUDA_HERE) { tc_cpu::mma_s8(c, a, b, file, line); }
inline void tc_mma_u8_k32(int32_t c[4], const uint32_t a[4], const uint32_t b[2], TC_CUDA_HERE) { tc_cpu::mma_u8(c, a, b, file, line); }
inline void tc_mma_s8u8_k32(int32_t c[4], const uint32_t a[4], const uint32_t b[2], TC_CUDA_HERE) { tc_cpu::mma_s8u8(c, a, b, file, line); }
inline void tc_mma_u8s8_k32(int32_t c[4], const uint32_t a[4], const uint32_t b[2], TC_CUDA_HERE) { tc_cpu::mma_u8s8(c, a, b, file, line); }

inline void tc_wgmma_publish() {}
inline void tc_wgmma_begin() {}
inline void tc_wgmma_commit() {}
template <int Pending>
void tc_wgmma_wait() {}
template <int Pieces, class T>
void tc_wgmma_end(T *) {}
#define TC_WGMMA(TYPES, T, MULTIPLY)                                                                                                                                            \
  inline void tc_wgmma_##TYPES##_n64(T *sums, const void *left, const void *right, TC_CUDA_HERE) { tc_cpu::wgmma(sums, left, right, 64, tc_cpu::MULTIPLY, file, line); }   \
  inline void tc_wgmma_##TYPES##_n128(T *sums, const void *left, const void *right, TC_CUDA_HERE) { tc_cpu::wgmma(sums, left, right, 128, tc_cpu::MULTIPLY, file, line); } \
  inline void tc_wgmma_##TYPES##_n256(T *sums, const void *left, const void *right, TC_CUDA_HERE) { tc_cpu::wgmma(sums, left, right, 256, tc_cpu::MULTIPLY, file, line); }
TC_WGMMA(f16, float, mma_f16)
TC_WGMMA(bf16, float, mma_bf16)
TC_WGMMA(s8, int32_t, mma_s8)
TC_WGMMA(u8, int32_t, mma_u8)
TC_WGMMA(s8u8, int32_t, mma_s8u8)
TC_WGMMA(u8s8, int32_t, mma_u8s8)
#undef TC_WGMMA

#endif
