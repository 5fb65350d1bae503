// SPDX-License-Identifier: 0BSD -- support text of tc-emit; do not edit
// The language of CUDA for a plain C++17 compiler: a kernel launch runs block after block on the calling thread, or on
// the one that waits for it. Inside a block every CUDA thread runs until it meets a barrier, an operation of its warp, or
// the end; only threads that wait have a stack of their own, so that a kernel without barriers is a loop of calls.
//
// This header is small, since every .cu file includes it; cuda_on_cpu.cc has the scheduler, cuda_on_cpu_runtime.cc the
// runtime API, cuda_on_cpu_check.cc the checks of memory accesses. Environment variables, read once:
//   TC_CUDA_ORDER   = forward | reverse | random:SEED   order of blocks, and of threads inside a block
//   TC_CUDA_STREAM  = early | late | random:SEED        when work that waits in a stream really runs
//   TC_CUDA_POISON  = 1 | 0    shared memory before each block and fresh device memory are filled with 0xff (NaN)
//   TC_CUDA_PROTECT = 0 | 1    device memory cannot be touched by host code
#ifndef TC_CUDA_ON_CPU_H
#define TC_CUDA_ON_CPU_H
#ifndef TC_CUDA_ON_CPU
#  define TC_CUDA_ON_CPU 1
#endif
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

// --- words of the language
#define __global__
#define __device__
#define __host__
#define __constant__ __attribute__((section("tc_cuda_constant")))
#define __shared__ static __attribute__((section("tc_cuda_shared")))  // one block runs at a time
#define __forceinline__ inline __attribute__((always_inline))
#define __launch_bounds__(...)
#define __grid_constant__
#define __align__(n) __attribute__((aligned(n)))

struct uint3 {
  unsigned x, y, z;
};
struct dim3 {
  unsigned x, y, z;
  constexpr dim3(unsigned a = 1, unsigned b = 1, unsigned c = 1) : x(a), y(b), z(c) {}
};
#define TC_CUDA_VECTOR(T, NAME, BYTES)              \
  struct alignas(2 * BYTES) NAME##2 { T x, y; };    \
  struct alignas(4 * BYTES) NAME##4 { T x, y, z, w; }
TC_CUDA_VECTOR(float, float, 4);
TC_CUDA_VECTOR(int, int, 4);
TC_CUDA_VECTOR(unsigned, uint, 4);
#undef TC_CUDA_VECTOR

extern "C" unsigned char __start_tc_cuda_shared[] __attribute__((weak, visibility("hidden")));
extern "C" unsigned char __stop_tc_cuda_shared[] __attribute__((weak, visibility("hidden")));
extern "C" const unsigned char __start_tc_cuda_constant[] __attribute__((weak, visibility("hidden")));
extern "C" const unsigned char __stop_tc_cuda_constant[] __attribute__((weak, visibility("hidden")));

enum cudaError_t : int;

namespace tc_cpu {

// The running CUDA thread, and the threads of its block that have not begun.
struct Now {
  uint3 thread, block;
  dim3 block_size, grid;
  int linear;   // number of the thread in its block
  int count;    // threads of the block
  int started;  // threads that have begun; not beside linear, as storing both at once is slower
  bool ready;          // a thread that waited can go on: nobody begins before it
  int order[1024];    // in which threads begin
  uint3 index[1024];  // threadIdx by linear number
  unsigned char *dynamic_shared;
};
extern Now now;

struct Stream;
struct Launch {
  const char *name;
  const void *kernel;
  dim3 grid, block;
  size_t shared_bytes;
  Stream *stream;
  unsigned char *shared_begin, *shared_end;  // __shared__ variables of the module
  const unsigned char *constant_begin, *constant_end;
};
// Puts a launch into its stream and returns what cudaGetLastError() says behind it. `threads` runs threads of a block
// until one of them waits; args are copied.
cudaError_t enqueue(const Launch &launch, void (*threads)(const void *args), const void *args, size_t bytes);

inline bool begin_thread()
{
  if (now.ready || now.started == now.count) return false;
  now.linear = now.order[now.started++];
  now.thread = now.index[now.linear];
  return true;
}

template <class T>
struct Same {
  using type = T;
};
template <auto Kernel, class... P>
cudaError_t launch_kernel(const Launch &launch, void (*)(P...), typename Same<P>::type... p)
{
  const auto threads = [p...] {
    while (begin_thread()) Kernel(p...);
  };
  using Threads = decltype(threads);
  static_assert(sizeof threads <= 4096, "the parameters of a kernel are limited to 4 KiB");
  return enqueue(launch, [](const void *args) { (*static_cast<Threads *>(args))(); }, &threads, sizeof threads);
}

// --- what the words below are made of; file and line are those of the caller
void barrier(const char *file, int line);
int barrier_count(int predicate, const char *file, int line);  // a barrier, and how many threads said yes
void warp_barrier(unsigned mask, const char *file, int line);
uint64_t shuffle(unsigned mask, uint64_t value, int from_lane, const char *file, int line);
unsigned ballot(unsigned mask, bool vote, const char *file, int line);
void atomic_hook(const void *p, void *old, size_t bytes, const char *file, int line);  // checks, then loads
void store_hidden(void *p, const void *from, size_t bytes);  // without checks
void copy16(void *to, const void *from);                     // the same for 16 bytes
void checked_access(const void *p, size_t bytes, bool write, const char *file, int line);
// An array of shared memory begins, on bytes that may have been another's: what it holds is undefined from here on.
void begin_view(unsigned char *p, size_t bytes, const char *name, const char *file, int line);
[[noreturn]] void misaligned(const void *p, size_t bytes, const char *file, int line);

inline void check_aligned(const void *p, size_t bytes, const char *file, int line)
{
  if ((uintptr_t)p % bytes != 0) misaligned(p, bytes, file, line);
}
inline int lane() { return now.linear % 32; }

template <class T>
T shuffle_of(unsigned mask, T value, int from_lane, const char *file, int line)
{
  static_assert(sizeof(T) <= 8, "shuffles carry up to 8 bytes");
  uint64_t word = 0;
  memcpy(&word, &value, sizeof value);
  word = shuffle(mask, word, from_lane, file, line);
  memcpy(&value, &word, sizeof value);
  return value;
}
// The lane `offset` away, or the own one if that is not in the same group of `width` lanes.
inline int lane_near(int lane_wanted, int width) { return lane_wanted >= 0 && lane_wanted / width == lane() / width ? lane_wanted : lane(); }

template <class T, class F>
T atomic_update(T *p, F f, const char *file, int line)
{
  T old, next;
  atomic_hook(p, &old, sizeof(T), file, line);
  next = f(old);
  store_hidden(p, &next, sizeof(T));
  return old;
}

}  // namespace tc_cpu

static constexpr const uint3 &threadIdx = tc_cpu::now.thread, &blockIdx = tc_cpu::now.block;
static constexpr const dim3 &blockDim = tc_cpu::now.block_size, &gridDim = tc_cpu::now.grid;
static constexpr int warpSize = 32;

// --- barriers, warps
#define TC_CUDA_HERE const char *file = __builtin_FILE(), int line = __builtin_LINE()
inline void __syncthreads(TC_CUDA_HERE) { tc_cpu::barrier(file, line); }
inline int __syncthreads_count(int p, TC_CUDA_HERE) { return tc_cpu::barrier_count(p != 0, file, line); }
inline int __syncthreads_or(int p, TC_CUDA_HERE) { return tc_cpu::barrier_count(p != 0, file, line) != 0; }
inline int __syncthreads_and(int p, TC_CUDA_HERE) { return tc_cpu::barrier_count(p == 0, file, line) == 0; }
inline void __syncwarp(unsigned mask = ~0u, TC_CUDA_HERE) { tc_cpu::warp_barrier(mask, file, line); }
inline void __threadfence() {}
inline void __threadfence_block() {}
template <class T>
T __shfl_sync(unsigned mask, T v, int from, int width = 32, TC_CUDA_HERE)
{
  return tc_cpu::shuffle_of(mask, v, (tc_cpu::lane() & -width) + (from & (width - 1)), file, line);
}
template <class T>
T __shfl_xor_sync(unsigned mask, T v, int by, int width = 32, TC_CUDA_HERE)
{
  return tc_cpu::shuffle_of(mask, v, tc_cpu::lane_near(tc_cpu::lane() ^ by, width), file, line);
}
template <class T>
T __shfl_down_sync(unsigned mask, T v, int by, int width = 32, TC_CUDA_HERE)
{
  return tc_cpu::shuffle_of(mask, v, tc_cpu::lane_near(tc_cpu::lane() + by, width), file, line);
}
template <class T>
T __shfl_up_sync(unsigned mask, T v, int by, int width = 32, TC_CUDA_HERE)
{
  return tc_cpu::shuffle_of(mask, v, tc_cpu::lane_near(tc_cpu::lane() - by, width), file, line);
}
inline unsigned __ballot_sync(unsigned mask, int p, TC_CUDA_HERE) { return tc_cpu::ballot(mask, p != 0, file, line); }
inline int __any_sync(unsigned mask, int p, TC_CUDA_HERE) { return tc_cpu::ballot(mask, p != 0, file, line) != 0; }
inline int __all_sync(unsigned mask, int p, TC_CUDA_HERE) { return tc_cpu::ballot(mask, p == 0, file, line) == 0; }

// --- atomics: whole by themselves, since threads take turns
template <class T>
T atomicAdd(T *p, typename tc_cpu::Same<T>::type v, TC_CUDA_HERE)
{
  return tc_cpu::atomic_update(p, [v](T old) { return T(old + v); }, file, line);
}
template <class T>
T atomicMax(T *p, typename tc_cpu::Same<T>::type v, TC_CUDA_HERE)
{
  return tc_cpu::atomic_update(p, [v](T old) { return old < v ? v : old; }, file, line);
}
template <class T>
T atomicMin(T *p, typename tc_cpu::Same<T>::type v, TC_CUDA_HERE)
{
  return tc_cpu::atomic_update(p, [v](T old) { return v < old ? v : old; }, file, line);
}
template <class T>
T atomicOr(T *p, typename tc_cpu::Same<T>::type v, TC_CUDA_HERE)
{
  return tc_cpu::atomic_update(p, [v](T old) { return T(old | v); }, file, line);
}
template <class T>
T atomicAnd(T *p, typename tc_cpu::Same<T>::type v, TC_CUDA_HERE)
{
  return tc_cpu::atomic_update(p, [v](T old) { return T(old & v); }, file, line);
}
template <class T>
T atomicExch(T *p, typename tc_cpu::Same<T>::type v, TC_CUDA_HERE)
{
  return tc_cpu::atomic_update(p, [v](T) { return v; }, file, line);
}
template <class T>
T atomicCAS(T *p, typename tc_cpu::Same<T>::type expected, typename tc_cpu::Same<T>::type v, TC_CUDA_HERE)
{
  return tc_cpu::atomic_update(p, [=](T old) { return old == expected ? v : old; }, file, line);
}

// --- arithmetic that CUDA names and C does not
template <class T>
T __ldg(const T *p) { return *p; }
inline int __float_as_int(float x) { int y; memcpy(&y, &x, 4); return y; }
inline unsigned __float_as_uint(float x) { unsigned y; memcpy(&y, &x, 4); return y; }
inline float __int_as_float(int x) { float y; memcpy(&y, &x, 4); return y; }
inline float __uint_as_float(unsigned x) { float y; memcpy(&y, &x, 4); return y; }
inline int __popc(unsigned x) { return __builtin_popcount(x); }
inline int __ffs(int x) { return __builtin_ffs(x); }
inline int __clz(int x) { return x != 0 ? __builtin_clz((unsigned)x) : 32; }
inline float rsqrtf(float x) { return 1.0f / sqrtf(x); }
inline double rsqrt(double x) { return 1.0 / sqrt(x); }
inline float __expf(float x) { return expf(x); }
inline float __logf(float x) { return logf(x); }
inline float __fdividef(float a, float b) { return a / b; }
inline float __saturatef(float x) { return x > 0 ? x < 1 ? x : 1 : 0; }
inline int __dp4a(int a, int b, int c)
{
  for (int i = 0; i < 32; i += 8) c += (int8_t)(a >> i) * (int8_t)(b >> i);
  return c;
}

#endif
