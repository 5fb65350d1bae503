/* SPDX-License-Identifier: 0BSD -- support text of tc-emit; do not edit */
/* What emitted CUDA code needs beside the language: launches, and one function per machine instruction that CUDA C++ has
 * no name for. Needs sm_75; where a machine lacks an instruction, the function does the same with older ones. Comes before
 * the other tc_*.h. A build with TC_CUDA_ON_CPU takes all of this from the folder cuda_on_cpu/ instead.
 *
 * Kernels for NVRTC: device code above, host code below an #ifndef __CUDACC_RTC__. */
#ifndef TC_CUDA_H
#define TC_CUDA_H

#if defined(__CUDACC_RTC__) /* no system headers */
typedef signed char        int8_t;
typedef short              int16_t;
typedef int                int32_t;
typedef long long          int64_t;
typedef unsigned char      uint8_t;
typedef unsigned short     uint16_t;
typedef unsigned int       uint32_t;
typedef unsigned long long uint64_t;
#  define INT32_MIN (-2147483647 - 1)
#  define INT64_MIN (-9223372036854775807LL - 1)
#  define INFINITY  __int_as_float(0x7f800000)
#  define NAN       __int_as_float(0x7fffffff)
#else
#  include <cuda_runtime.h>
#  include <math.h>
#  include <stddef.h>
#  include <stdint.h>
#  include <string.h>
#endif

#if defined(TC_CUDA_ON_CPU)
#  include "cuda_on_cpu_tc.h"
#else

#define TC_DEVICE static __device__ __forceinline__

/* --- launches: tc_launch(kernel, grid, block, shared_bytes, stream, arguments ...) starts a kernel and returns what
 * cudaGetLastError() says. kernel is the name of a __global__ function; shared_bytes are those of tc_dynamic_shared(). More
 * than 48 KiB of them have to be asked for first, once a kernel and device: tc_allow_shared(kernel, shared_bytes).
 *
 * From sm_90 on the blocks of a kernel may be made ready while the last ones of the kernel before it in the stream still run
 * (programmatic dependent launch). So each begins with tc_grid_dependency_wait(), behind which all that came before is done
 * and seen. What was compiled for less has no such instruction, and starts when the kernel before it has ended. */
TC_DEVICE void tc_grid_dependency_wait(void)
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}
#if !defined(__CUDACC_RTC__)
/* Starts `kernel`, a function or what NVRTC made; `early`: it has the instruction. `arguments` has the address of each. */
static inline cudaError_t tc_start(const void *kernel, bool early, dim3 grid, dim3 block, size_t shared_bytes, cudaStream_t stream, void **arguments)
{
#  if CUDART_VERSION >= 12030
  cudaLaunchAttribute attribute;
  attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  attribute.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config = {};
  config.gridDim = grid;
  config.blockDim = block;
  config.dynamicSmemBytes = shared_bytes;
  config.stream = stream;
  config.attrs = &attribute;
  config.numAttrs = early ? 1 : 0;
  return cudaLaunchKernelExC(&config, kernel, arguments);
#  else
  (void)early;
  return cudaLaunchKernel(kernel, grid, block, arguments, shared_bytes, stream);
#  endif
}
template <class T>
struct tc_parameter { typedef T type; }; /* arguments become what the kernel takes */
template <class... P>
static inline cudaError_t tc_launch(void (*kernel)(P...), dim3 grid, dim3 block, size_t shared_bytes, cudaStream_t stream,
    typename tc_parameter<P>::type... arguments)
{
  void *values[] = {(void *)&arguments..., nullptr};
  cudaFuncAttributes function;
  const bool early = cudaFuncGetAttributes(&function, (const void *)kernel) == cudaSuccess && function.ptxVersion >= 90;
  tc_start((const void *)kernel, early, grid, block, shared_bytes, stream, values);
  return cudaGetLastError();
}
template <class... P>
static inline cudaError_t tc_allow_shared(void (*kernel)(P...), size_t shared_bytes)
{
  return cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)shared_bytes);
}
#endif

#if !defined(TC_LAUNCH_ONLY) /* the host's side of a package of --jit has no use for the rest */
/* The block's shared memory of the size given to tc_launch, on 1024 bytes; its content is undefined when the block begins. */
TC_DEVICE unsigned char *tc_dynamic_shared(void)
{
  extern __shared__ __align__(1024) unsigned char tc_shared_bytes[];
  return tc_shared_bytes;
}

/* TC_SHARED_VIEW(tile, float[2][16][64], p): an array `tile` that lies at p in shared memory, on 16 bytes. What it holds is
 * undefined where it is declared, which all threads of the block do between the same two barriers. */
template <class T>
TC_DEVICE T &tc_shared_view(unsigned char *p) { return *reinterpret_cast<T *>(p); }
#define TC_SHARED_VIEW(name, type, p) auto &name = tc_shared_view<type>(p)

/* --- vectors: N neighbours of one type, 2 to 16 bytes together; p is on as many bytes */
template <int Bytes>
struct tc_word_of; /* a type of so many bytes that one instruction moves */
template <> struct tc_word_of<2> { typedef uint16_t type; };
template <> struct tc_word_of<4> { typedef uint32_t type; };
template <> struct tc_word_of<8> { typedef uint2 type; };
template <> struct tc_word_of<16> { typedef uint4 type; };
#define TC_VECTOR(N)                                                                                                        \
  template <class T>                                                                                                        \
  TC_DEVICE void tc_load##N(T *to, const T *p)                                                                              \
  {                                                                                                                         \
    typedef typename tc_word_of<N * (int)sizeof(T)>::type V;                                                                \
    const V v = *reinterpret_cast<const V *>(p);                                                                            \
    memcpy(to, &v, sizeof(V));                                                                                              \
  }                                                                                                                         \
  template <class T>                                                                                                        \
  TC_DEVICE void tc_store##N(T *p, const T *from)                                                                           \
  {                                                                                                                         \
    typedef typename tc_word_of<N * (int)sizeof(T)>::type V;                                                                \
    V v;                                                                                                                    \
    memcpy(&v, from, sizeof(V));                                                                                            \
    *reinterpret_cast<V *>(p) = v;                                                                                          \
  }
TC_VECTOR(2)
TC_VECTOR(4)
TC_VECTOR(8)
TC_VECTOR(16)
#undef TC_VECTOR

/* --- exchange inside a warp: all 32 lanes call; T is a type of 4 or 8 bytes */
template <class T>
TC_DEVICE T tc_shuffle_xor(T x, int by) { return __shfl_xor_sync(0xffffffffu, x, by); } /* x of lane ^ by */
template <class T>
TC_DEVICE T tc_shuffle_down(T x, int by) { return __shfl_down_sync(0xffffffffu, x, (unsigned)by); } /* x of lane + by, the own one past the end */
template <class T>
TC_DEVICE T tc_shuffle_up(T x, int by) { return __shfl_up_sync(0xffffffffu, x, (unsigned)by); } /* x of lane - by, the own one below lane 0 */
template <class T>
TC_DEVICE T tc_shuffle_idx(T x, int lane) { return __shfl_sync(0xffffffffu, x, lane); } /* x of lane % 32 */
TC_DEVICE uint32_t tc_ballot(bool x) { return __ballot_sync(0xffffffffu, x); } /* bit l: x of lane l */
TC_DEVICE bool tc_any(bool x) { return __any_sync(0xffffffffu, x) != 0; }
TC_DEVICE bool tc_all(bool x) { return __all_sync(0xffffffffu, x) != 0; }

/* --- copies from global to shared memory that do not pass through registers. Both sides are on the size of the copy; what
 * is not valid is filled with zeros, and its address not read. The thread sees its copies after tc_cp_async_wait, others
 * after a barrier behind that. Below sm_80 they happen at once. */
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
#  define TC_CP_ASYNC(NAME, KIND, BYTES, WORD)                                                                              \
    TC_DEVICE void NAME(void *shared, const void *global, bool valid = true)                                                \
    {                                                                                                                       \
      const unsigned to = (unsigned)__cvta_generic_to_shared(shared);                                                       \
      asm volatile("cp.async." KIND ".shared.global [%0], [%1], " #BYTES ", %2;\n" ::"r"(to), "l"(global), "r"(valid ? BYTES : 0) : "memory"); \
    }
TC_DEVICE void tc_cp_async_commit(void) { asm volatile("cp.async.commit_group;\n" ::: "memory"); } /* ends a group */
template <int Pending>
TC_DEVICE void tc_cp_async_wait(void) { asm volatile("cp.async.wait_group %0;\n" ::"n"(Pending) : "memory"); } /* for all but the newest groups */
#else
#  define TC_CP_ASYNC(NAME, KIND, BYTES, WORD)                                                                              \
    TC_DEVICE void NAME(void *shared, const void *global, bool valid = true)                                                \
    {                                                                                                                       \
      WORD v;                                                                                                               \
      memset(&v, 0, BYTES);                                                                                                 \
      if (valid) v = *static_cast<const WORD *>(global);                                                                    \
      *static_cast<WORD *>(shared) = v;                                                                                     \
    }
TC_DEVICE void tc_cp_async_commit(void) {}
template <int Pending>
TC_DEVICE void tc_cp_async_wait(void) {}
#endif
TC_CP_ASYNC(tc_cp_async4, "ca", 4, uint32_t)
TC_CP_ASYNC(tc_cp_async8, "ca", 8, uint2)
TC_CP_ASYNC(tc_cp_async16, "cg", 16, uint4)
#undef TC_CP_ASYNC

/* --- matrices of 8 x 8 elements of 16 bits from shared memory: lane 8 i + r passes the address, on 16 bytes, of row r of
 * matrix i, and gets of each matrix i the word to[i]: elements 2 (lane % 4) and the next of row lane / 4; from the
 * transposed matrix with _trans. The x2 forms take the addresses of lanes 0 to 15. */
#define TC_LDMATRIX(NAME, FORM, N, REGISTERS, SOURCE, ...)                                                                  \
  TC_DEVICE void NAME(uint32_t to[N], const void *row)                                                                      \
  {                                                                                                                         \
    const unsigned from = (unsigned)__cvta_generic_to_shared(row);                                                          \
    asm volatile("ldmatrix.sync.aligned.m8n8." FORM ".shared.b16 {" REGISTERS "}, [" SOURCE "];\n" : __VA_ARGS__ : "r"(from) : "memory"); \
  }
TC_LDMATRIX(tc_ldmatrix_x4, "x4", 4, "%0,%1,%2,%3", "%4", "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3]))
TC_LDMATRIX(tc_ldmatrix_x4_trans, "x4.trans", 4, "%0,%1,%2,%3", "%4", "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3]))
TC_LDMATRIX(tc_ldmatrix_x2, "x2", 2, "%0,%1", "%2", "=r"(to[0]), "=r"(to[1]))
TC_LDMATRIX(tc_ldmatrix_x2_trans, "x2.trans", 2, "%0,%1", "%2", "=r"(to[0]), "=r"(to[1]))
#undef TC_LDMATRIX

/* --- floats rounded to tf32, to nearest, for tc_mma_tf32_k8, which would cut them off; the split forms keep in rest, rounded,
 * what that took away */
TC_DEVICE uint32_t tc_tf32(uint32_t v)
{
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
  uint32_t to;
  asm("cvt.rna.tf32.f32 %0, %1;\n" : "=r"(to) : "f"(__uint_as_float(v)));
  return to;
#else
  return (v & 0x7fffffffu) > 0x7f800000u ? 0x7fffffffu : (v + 0x1000u) & 0xffffe000u;
#endif
}
#define TC_TF32(N)                                                                                                          \
  TC_DEVICE void tc_round_tf32_x##N(uint32_t v[N])                                                                          \
  {                                                                                                                         \
    for (int i = 0; i < N; i++) v[i] = tc_tf32(v[i]);                                                                       \
  }                                                                                                                         \
  TC_DEVICE void tc_split_tf32_x##N(uint32_t rest[N], uint32_t v[N])                                                        \
  {                                                                                                                         \
    for (int i = 0; i < N; i++) {                                                                                           \
      const uint32_t rounded = tc_tf32(v[i]);                                                                               \
      rest[i] = tc_tf32(__float_as_uint(__uint_as_float(v[i]) - __uint_as_float(rounded)));                                 \
      v[i] = rounded;                                                                                                       \
    }                                                                                                                       \
  }
TC_TF32(4)
TC_TF32(2)
#undef TC_TF32

/* --- c += a b for one tile of a warp, on tensor cores: a is 16 x K, b is K x 8, c is 16 x 8. With g = lane / 4, t = lane
 * % 4 and words of E elements (E = 1 for tf32, 2 for f16 and bf16, 4 for int8; K = 8 E):
 *   a[0] row g, elements t E ...; a[1] row g + 8; a[2], a[3] the same rows, elements (t + 4) E ...
 *   b[0] column g, elements t E ...; b[1] elements (t + 4) E ...
 *   c[0], c[1] row g, columns 2 t and 2 t + 1; c[2], c[3] row g + 8
 * On sm_75, bf16 and tf32 are slow: there are no tensor cores for them. */
#define TC_MMA(NAME, T, C, INSTRUCTION)                                                                                     \
  TC_DEVICE void NAME(T c[4], const uint32_t a[4], const uint32_t b[2])                                                     \
  {                                                                                                                         \
    asm volatile("mma.sync.aligned." INSTRUCTION " {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};\n"                 \
                 : "+" C(c[0]), "+" C(c[1]), "+" C(c[2]), "+" C(c[3])                                                       \
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));                                       \
  }
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
TC_MMA(tc_mma_f16_k16, float, "f", "m16n8k16.row.col.f32.f16.f16.f32")
TC_MMA(tc_mma_bf16_k16, float, "f", "m16n8k16.row.col.f32.bf16.bf16.f32")
TC_MMA(tc_mma_tf32_k8, float, "f", "m16n8k8.row.col.f32.tf32.tf32.f32")
TC_MMA(tc_mma_s8_k32, int32_t, "r", "m16n8k32.row.col.s32.s8.s8.s32")
TC_MMA(tc_mma_u8_k32, int32_t, "r", "m16n8k32.row.col.s32.u8.u8.s32")
TC_MMA(tc_mma_s8u8_k32, int32_t, "r", "m16n8k32.row.col.s32.s8.u8.s32")
TC_MMA(tc_mma_u8s8_k32, int32_t, "r", "m16n8k32.row.col.s32.u8.s8.s32")
#else
TC_DEVICE void tc_mma_f16_k16(float c[4], const uint32_t a[4], const uint32_t b[2]) /* in two steps of half the depth */
{
#pragma unroll
  for (int k = 0; k < 2; k++)
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5}, {%6}, {%0,%1,%2,%3};\n"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                 : "r"(a[2 * k]), "r"(a[2 * k + 1]), "r"(b[k]));
}
#  define TC_MMA_BYTES(NAME, TYPES)                                                                                         \
    TC_DEVICE void NAME(int32_t c[4], const uint32_t a[4], const uint32_t b[2]) /* in four steps of 8 x 8 x 16 */           \
    {                                                                                                                       \
      _Pragma("unroll") for (int i = 0; i < 4; i++)                                                                         \
        asm volatile("mma.sync.aligned.m8n8k16.row.col.s32." TYPES ".s32 {%0,%1}, {%2}, {%3}, {%0,%1};\n"                   \
                     : "+r"(c[i % 2 * 2]), "+r"(c[i % 2 * 2 + 1])                                                           \
                     : "r"(a[i]), "r"(b[i / 2]));                                                                           \
    }
TC_MMA_BYTES(tc_mma_s8_k32, "s8.s8")
TC_MMA_BYTES(tc_mma_u8_k32, "u8.u8")
TC_MMA_BYTES(tc_mma_s8u8_k32, "s8.u8")
TC_MMA_BYTES(tc_mma_u8s8_k32, "u8.s8")
#  undef TC_MMA_BYTES
/* bf16 and tf32 without tensor cores: words come from the lanes that have them */
#define TC_MMA_BY_SHUFFLES(NAME, PRODUCT)                                                                                   \
  TC_DEVICE void NAME(float c[4], const uint32_t a[4], const uint32_t b[2])                                                 \
  {                                                                                                                         \
    const int lane = (int)(threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z)) % 32;                       \
    _Pragma("unroll") for (int i = 0; i < 8; i++) {                                                                         \
      const uint32_t a0 = tc_shuffle_idx(a[i / 4 * 2], lane / 4 * 4 + i % 4), a1 = tc_shuffle_idx(a[i / 4 * 2 + 1], lane / 4 * 4 + i % 4); \
      const uint32_t b0 = tc_shuffle_idx(b[i / 4], lane % 4 * 8 + i % 4), b1 = tc_shuffle_idx(b[i / 4], lane % 4 * 8 + 4 + i % 4);         \
      c[0] += PRODUCT(a0, b0);                                                                                              \
      c[1] += PRODUCT(a0, b1);                                                                                              \
      c[2] += PRODUCT(a1, b0);                                                                                              \
      c[3] += PRODUCT(a1, b1);                                                                                              \
    }                                                                                                                       \
  }
#define TC_PRODUCT_BF16(x, y) (__uint_as_float(x << 16) * __uint_as_float(y << 16) + __uint_as_float(x & 0xffff0000u) * __uint_as_float(y & 0xffff0000u))
#define TC_PRODUCT_TF32(x, y) (__uint_as_float(x & 0xffffe000u) * __uint_as_float(y & 0xffffe000u))
TC_MMA_BY_SHUFFLES(tc_mma_bf16_k16, TC_PRODUCT_BF16)
TC_MMA_BY_SHUFFLES(tc_mma_tf32_k8, TC_PRODUCT_TF32)
#undef TC_PRODUCT_TF32
#undef TC_PRODUCT_BF16
#undef TC_MMA_BY_SHUFFLES
#endif
#undef TC_MMA

/* --- Hopper: products of a warp group, four warps whose first is a multiple of four (wgmma). Each warp adds to its own 16
 * rows of sums, in pieces of 16 x 8 that lie in registers as those of tc_mma: sums[4 j] .. sums[4 j + 3] of columns 8 j ..
 * 8 j + 7; left is its own first of 16 rows, which follow those of the warp before, right the first of N rows, one for each
 * column, and both begin at the 32 bytes of them that are multiplied. Rows are 128 bytes, tiles lie on 1024, and the chunk
 * of 16 bytes number c of row r lies at c ^ r % 8.
 *   publish   before the barrier behind which others multiply what this thread has stored in shared memory
 *   begin     before the first of several products
 *   commit    behind them: they are a group
 *   wait<N>   until all groups but the newest N are done: until then nobody may touch their factors
 *   end       until all are: the thread's sums are there
 * That needs sm_90a, as nvcc calls it. What is compiled for anything else takes mma.sync, which is right, and slow. */
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
TC_DEVICE void tc_wgmma_publish(void) { asm volatile("fence.proxy.async.shared::cta;\n" ::: "memory"); }
TC_DEVICE void tc_wgmma_begin(void) { asm volatile("wgmma.fence.sync.aligned;\n" ::: "memory"); }
TC_DEVICE void tc_wgmma_commit(void) { asm volatile("wgmma.commit_group.sync.aligned;\n" ::: "memory"); }
template <int Pending>
TC_DEVICE void tc_wgmma_wait(void) { asm volatile("wgmma.wait_group.sync.aligned %0;\n" ::"n"(Pending) : "memory"); }
TC_DEVICE void tc_wgmma_hold(float &sum) { asm volatile("" : "+f"(sum)::"memory"); } /* nothing reads it before */
TC_DEVICE void tc_wgmma_hold(int32_t &sum) { asm volatile("" : "+r"(sum)::"memory"); }
template <int Pieces, class T>
TC_DEVICE void tc_wgmma_end(T *sums)
{
  tc_wgmma_wait<0>();
#pragma unroll
  for (int i = 0; i < 4 * Pieces; i++) tc_wgmma_hold(sums[i]);
}
/* Where a matrix begins: its address, and from eight rows to the next eight, in 16 bytes; swizzled by 128 bytes. */
TC_DEVICE uint64_t tc_wgmma_matrix(const void *rows, int before)
{
  const uint32_t begin = (uint32_t)__cvta_generic_to_shared(rows) - (uint32_t)before * 128u;
  return (uint64_t)1 << 62 | (uint64_t)64 << 32 | (uint64_t)1 << 16 | (uint64_t)((begin & 0x3ffffu) >> 4);
}
#  define TC_TEN(T)         "%" #T "0,%" #T "1,%" #T "2,%" #T "3,%" #T "4,%" #T "5,%" #T "6,%" #T "7,%" #T "8,%" #T "9,"
#  define TC_REGISTERS_64   TC_TEN() TC_TEN(1) TC_TEN(2) "%30,%31"
#  define TC_REGISTERS_128  TC_TEN() TC_TEN(1) TC_TEN(2) TC_TEN(3) TC_TEN(4) TC_TEN(5) "%60,%61,%62,%63"
#  define TC_REGISTERS_256  TC_TEN() TC_TEN(1) TC_TEN(2) TC_TEN(3) TC_TEN(4) TC_TEN(5) TC_TEN(6) TC_TEN(7) TC_TEN(8) TC_TEN(9) TC_TEN(10) TC_TEN(11) "%120,%121,%122,%123,%124,%125,%126,%127"
#  define TC_SUMS_4(C, I)   C(sums[I]), C(sums[I + 1]), C(sums[I + 2]), C(sums[I + 3])
#  define TC_SUMS_16(C, I)  TC_SUMS_4(C, I), TC_SUMS_4(C, I + 4), TC_SUMS_4(C, I + 8), TC_SUMS_4(C, I + 12)
#  define TC_SUMS_64(C)     TC_SUMS_16(C, 0), TC_SUMS_16(C, 16)
#  define TC_SUMS_128(C)    TC_SUMS_64(C), TC_SUMS_16(C, 32), TC_SUMS_16(C, 48)
#  define TC_SUMS_256(C)    TC_SUMS_128(C), TC_SUMS_16(C, 64), TC_SUMS_16(C, 80), TC_SUMS_16(C, 96), TC_SUMS_16(C, 112)
#  define TC_WGMMA(NAME, N, T, C, A, B, DEPTH, TYPES, REST)                                                                  \
    TC_DEVICE void NAME##_n##N(T *sums, const void *left, const void *right)                                                 \
    {                                                                                                                        \
      const uint64_t a = tc_wgmma_matrix(left, (int)threadIdx.x / 32 % 4 * 16), b = tc_wgmma_matrix(right, 0);               \
      asm volatile("wgmma.mma_async.sync.aligned.m64n" #N DEPTH TYPES " {" TC_REGISTERS_##N "}, " A ", " B ", " REST ";\n"  \
                   : TC_SUMS_##N(C)                                                                                          \
                   : "l"(a), "l"(b));                                                                                        \
    }
#  define TC_WGMMA_ALL(NAME, T, C, MULTIPLY, DEPTH, TYPES, REST)                                                             \
    TC_WGMMA(NAME, 64, T, C, "%32", "%33", DEPTH, TYPES, REST)                                                               \
    TC_WGMMA(NAME, 128, T, C, "%64", "%65", DEPTH, TYPES, REST)                                                              \
    TC_WGMMA(NAME, 256, T, C, "%128", "%129", DEPTH, TYPES, REST)
#else
TC_DEVICE void tc_wgmma_publish(void) {}
TC_DEVICE void tc_wgmma_begin(void) {}
TC_DEVICE void tc_wgmma_commit(void) {}
template <int Pending>
TC_DEVICE void tc_wgmma_wait(void) {}
template <int Pieces, class T>
TC_DEVICE void tc_wgmma_end(T *) {}
#  define TC_WGMMA(NAME, N, T, MULTIPLY)                                                                                     \
    TC_DEVICE void NAME##_n##N(T *sums, const void *left, const void *right)                                                 \
    {                                                                                                                        \
      const int lane = (int)threadIdx.x % 32, chunk = (int)(__cvta_generic_to_shared(right) % 128 / 16);                     \
      const unsigned char *const a_rows = static_cast<const unsigned char *>(left) - chunk * 16;                             \
      const unsigned char *const b_rows = static_cast<const unsigned char *>(right) - chunk * 16;                            \
      uint32_t a[4];                                                                                                         \
      tc_ldmatrix_x4(a, a_rows + lane % 16 * 128 + ((chunk + lane / 16) ^ lane % 8) * 16);                                   \
      _Pragma("unroll") for (int j = 0; j < N / 8; j++)                                                                      \
      {                                                                                                                      \
        uint32_t b[2];                                                                                                       \
        tc_ldmatrix_x2(b, b_rows + (j * 8 + lane % 8) * 128 + ((chunk + lane / 8 % 2) ^ lane % 8) * 16);                     \
        MULTIPLY(sums + 4 * j, a, b);                                                                                        \
      }                                                                                                                      \
    }
#  define TC_WGMMA_ALL(NAME, T, C, MULTIPLY, DEPTH, TYPES, REST)                                                             \
    TC_WGMMA(NAME, 64, T, MULTIPLY) TC_WGMMA(NAME, 128, T, MULTIPLY) TC_WGMMA(NAME, 256, T, MULTIPLY)
#endif
TC_WGMMA_ALL(tc_wgmma_f16, float, "+f", tc_mma_f16_k16, "k16", ".f32.f16.f16", "1, 1, 1, 0, 0")
TC_WGMMA_ALL(tc_wgmma_bf16, float, "+f", tc_mma_bf16_k16, "k16", ".f32.bf16.bf16", "1, 1, 1, 0, 0")
TC_WGMMA_ALL(tc_wgmma_s8, int32_t, "+r", tc_mma_s8_k32, "k32", ".s32.s8.s8", "1")
TC_WGMMA_ALL(tc_wgmma_u8, int32_t, "+r", tc_mma_u8_k32, "k32", ".s32.u8.u8", "1")
TC_WGMMA_ALL(tc_wgmma_s8u8, int32_t, "+r", tc_mma_s8u8_k32, "k32", ".s32.s8.u8", "1")
TC_WGMMA_ALL(tc_wgmma_u8s8, int32_t, "+r", tc_mma_u8s8_k32, "k32", ".s32.u8.s8", "1")
#undef TC_WGMMA_ALL
#undef TC_WGMMA

#endif
#undef TC_DEVICE
#endif

#if !defined(TC_LAUNCH_ONLY)
/* --- reductions over a warp, or over groups of Lanes neighbours: all lanes call, and all get the result. Of numbers and
 * NaN, min and max are NaN. */
#if defined(TC_CUDA_ON_CPU) /* messages name the caller's line */
#  define TC_CALLED_AT , TC_CUDA_HERE
#  define TC_CALLER , file, line
#else
#  define TC_CALLED_AT
#  define TC_CALLER
#endif
#define TC_WARP_REDUCTION(NAME, COMBINED)                                                                                   \
  template <int Lanes = 32, class T>                                                                                        \
  static __device__ __forceinline__ T NAME(T x TC_CALLED_AT)                                                                \
  {                                                                                                                         \
    _Pragma("unroll") for (int across = Lanes / 2; across > 0; across /= 2) {                                               \
      const T y = tc_shuffle_xor(x, across TC_CALLER);                                                                      \
      x = COMBINED;                                                                                                         \
    }                                                                                                                       \
    return x;                                                                                                               \
  }
TC_WARP_REDUCTION(tc_warp_add, x + y)
TC_WARP_REDUCTION(tc_warp_mul, x *y)
TC_WARP_REDUCTION(tc_warp_max, x < y ? y : y <= x ? x : x + y)
TC_WARP_REDUCTION(tc_warp_min, y < x ? y : x <= y ? x : x + y)
#undef TC_WARP_REDUCTION
#undef TC_CALLER
#undef TC_CALLED_AT
#endif
#endif
