// SPDX-License-Identifier: 0BSD -- support text of tc-emit; do not edit
// The runtime API: errors, the device, its memory, launches; the environment variables.
#include <stdlib.h>
#include <sys/mman.h>

#include <algorithm>

#include "cuda_on_cpu_device.h"

namespace tc_cpu {
namespace {

thread_local cudaError_t last_error = cudaSuccess;

// The allocation whose mapping holds p.
const std::pair<char *const, Allocation> *allocation_of(const void *p)
{
  auto at = device().allocations.upper_bound((char *)p);
  if (at == device().allocations.begin()) return nullptr;
  --at;
  return (const char *)p < at->second.base + at->second.mapped ? &*at : nullptr;
}
bool on_device(const void *p) { return allocation_of(p) != nullptr; }
bool in_bounds(const void *p, size_t bytes)
{
  const auto *a = allocation_of(p);
  return a == nullptr || (const char *)p + bytes <= a->first + a->second.bytes;
}

// The kind must name the sides on which the memory is.
bool right_sides(const void *to, const void *from, cudaMemcpyKind kind)
{
  if (kind == cudaMemcpyDefault) return true;
  return on_device(to) == (kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice) &&
         on_device(from) == (kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice);
}

bool fits(const dim3 &grid, const dim3 &block)
{
  const bool some = grid.x >= 1 && grid.y >= 1 && grid.z >= 1 && block.x >= 1 && block.y >= 1 && block.z >= 1;
  return some && grid.x <= 0x7fffffff && grid.y <= 65535 && grid.z <= 65535 && block.x <= kMaxThreads && block.y <= kMaxThreads && block.z <= 64 &&
         (size_t)block.x * block.y * block.z <= kMaxThreads;
}

void read_order(const char *name, const char *last_word, Options::Order &order, uint64_t &seed)
{
  const char *value = getenv(name);
  if (value == nullptr) return;
  if (strcmp(value, last_word) == 0) order = Options::kReverse;
  if (strncmp(value, "random:", 7) == 0) {
    order = Options::kRandom;
    seed = strtoull(value + 7, nullptr, 10);
  }
}

}  // namespace

const Options &options()
{
  static const Options read = [] {
    Options o;
    read_order("TC_CUDA_ORDER", "reverse", o.order, o.order_seed);
    read_order("TC_CUDA_STREAM", "late", o.stream, o.stream_seed);
    const char *poison = getenv("TC_CUDA_POISON"), *protect = getenv("TC_CUDA_PROTECT");
    o.poison = poison == nullptr || *poison != '0';
    o.protect = protect != nullptr && *protect == '1';
    return o;
  }();
  return read;
}

Device &device()
{
  static Device *d = new Device;  // outlives whatever frees memory at exit
  return *d;
}

cudaError_t result(cudaError_t e)
{
  if (e == cudaSuccess) e = device().broken;
  if (e != cudaSuccess && e != cudaErrorNotReady) last_error = e;
  return e;
}

void protect_all(int how)
{
  for (const auto &[p, a] : device().allocations) mprotect(a.base + device().page, a.mapped - 2 * device().page, how);
}
DeviceWork::DeviceWork()
{
  if (device().open++ == 0 && options().protect) protect_all(PROT_READ | PROT_WRITE);
}
DeviceWork::~DeviceWork()
{
  if (--device().open == 0 && options().protect) protect_all(PROT_NONE);
}

cudaError_t enqueue(const Launch &launch, void (*threads)(const void *), const void *args, size_t bytes)
{
  const Lock lock(device().lock);
  Stream *s = resolve(launch.stream);
  const cudaError_t before = cudaGetLastError(), allowed = may_issue(s);
  if (allowed != cudaSuccess) return allowed;
  if (!fits(launch.grid, launch.block)) return cudaErrorInvalidConfiguration;
  const auto allowed_bytes = device().dynamic_limits.find(launch.kernel);
  if (launch.shared_bytes > (allowed_bytes == device().dynamic_limits.end() ? 48 << 10 : allowed_bytes->second)) return cudaErrorInvalidValue;
  const std::vector<unsigned char> copy((const unsigned char *)args, (const unsigned char *)args + bytes);
  issue(s, [=] {
    alignas(64) unsigned char aligned[4096];
    memcpy(aligned, copy.data(), copy.size());
    if (!run_grid(launch, threads, aligned, copy.size())) device().broken = cudaErrorLaunchFailure;
  });
  return before;  // as cudaGetLastError() would; a kernel that fails shows in the calls after it
}

}  // namespace tc_cpu

using namespace tc_cpu;

namespace {
struct ErrorName {
  cudaError_t error;
  const char *name, *text;
};
#define TC_ERROR(e, text) {e, #e, text}
const ErrorName kErrors[] = {
    TC_ERROR(cudaSuccess, "no error"),
    TC_ERROR(cudaErrorInvalidValue, "invalid argument"),
    TC_ERROR(cudaErrorMemoryAllocation, "out of memory"),
    TC_ERROR(cudaErrorInvalidConfiguration, "invalid configuration argument"),
    TC_ERROR(cudaErrorInvalidDevice, "invalid device ordinal"),
    TC_ERROR(cudaErrorInvalidResourceHandle, "invalid resource handle"),
    TC_ERROR(cudaErrorNotReady, "device not ready"),
    TC_ERROR(cudaErrorIllegalAddress, "an illegal memory access was encountered"),
    TC_ERROR(cudaErrorLaunchFailure, "unspecified launch failure"),
    TC_ERROR(cudaErrorStreamCaptureUnsupported, "operation not permitted when stream is capturing"),
    TC_ERROR(cudaErrorStreamCaptureInvalidated, "operation failed due to a previous error during capture"),
    TC_ERROR(cudaErrorStreamCaptureMerge, "operation would result in a merge of separate capture sequences"),
    TC_ERROR(cudaErrorStreamCaptureUnmatched, "capture was not ended in the same stream as it began"),
    TC_ERROR(cudaErrorStreamCaptureUnjoined, "capturing stream has unjoined work"),
    TC_ERROR(cudaErrorStreamCaptureIsolation, "dependency created on uncaptured work in another stream"),
    TC_ERROR(cudaErrorStreamCaptureImplicit, "operation would make the legacy stream depend on a capturing blocking stream"),
    TC_ERROR(cudaErrorCapturedEvent, "operation not permitted on an event last recorded in a capturing stream"),
    TC_ERROR(cudaErrorStreamCaptureWrongThread, "attempt to terminate a thread-local capture sequence from another thread"),
};
const ErrorName *find_error(cudaError_t e)
{
  for (const ErrorName &n : kErrors)
    if (n.error == e) return &n;
  return nullptr;
}
}  // namespace

// --- errors, the device

const char *cudaGetErrorString(cudaError_t e) { return find_error(e) ? find_error(e)->text : "unrecognized error code"; }
const char *cudaGetErrorName(cudaError_t e) { return find_error(e) ? find_error(e)->name : "unrecognized error code"; }
cudaError_t tc_cpu_set_attribute(const void *kernel, cudaFuncAttribute what, int value)
{
  const Lock lock(device().lock);
  if (what != cudaFuncAttributeMaxDynamicSharedMemorySize || value < 0 || value > (227 << 10)) return result(cudaErrorInvalidValue);
  device().dynamic_limits[kernel] = (size_t)std::max(value, 48 << 10);
  return result(cudaSuccess);
}

cudaError_t cudaGetLastError()
{
  const cudaError_t e = cudaPeekAtLastError();
  last_error = cudaSuccess;
  return e;
}
cudaError_t cudaPeekAtLastError()
{
  const Lock lock(device().lock);
  return last_error != cudaSuccess ? last_error : device().broken;
}

cudaError_t cudaGetDeviceCount(int *count)
{
  *count = 1;
  return cudaSuccess;
}
cudaError_t cudaGetDevice(int *d)
{
  *d = 0;
  return cudaSuccess;
}
cudaError_t cudaSetDevice(int d) { return d == 0 ? cudaSuccess : result(cudaErrorInvalidDevice); }
cudaError_t cudaGetDeviceProperties(cudaDeviceProp *p, int d)
{
  if (d != 0) return result(cudaErrorInvalidDevice);
  *p = {"cuda_on_cpu", kTotalMemory, 48 << 10, 227 << 10, 228 << 10, 9, 0, 4, 32, kMaxThreads, 2048, 65536, 1 << 20};
  return cudaSuccess;
}
cudaError_t cudaDeviceGetAttribute(int *value, cudaDeviceAttr attribute, int d)
{
  cudaDeviceProp p;
  const cudaError_t e = cudaGetDeviceProperties(&p, d);
  if (e != cudaSuccess) return e;
  switch (attribute) {
    case cudaDevAttrMaxThreadsPerBlock: *value = p.maxThreadsPerBlock; return cudaSuccess;
    case cudaDevAttrMaxSharedMemoryPerBlock: *value = (int)p.sharedMemPerBlock; return cudaSuccess;
    case cudaDevAttrWarpSize: *value = p.warpSize; return cudaSuccess;
    case cudaDevAttrMultiProcessorCount: *value = p.multiProcessorCount; return cudaSuccess;
    case cudaDevAttrL2CacheSize: *value = p.l2CacheSize; return cudaSuccess;
    case cudaDevAttrComputeCapabilityMajor: *value = p.major; return cudaSuccess;
    case cudaDevAttrComputeCapabilityMinor: *value = p.minor; return cudaSuccess;
    case cudaDevAttrMaxSharedMemoryPerBlockOptin: *value = (int)p.sharedMemPerBlockOptin; return cudaSuccess;
  }
  return result(cudaErrorInvalidValue);
}
cudaError_t cudaRuntimeGetVersion(int *version)
{
  *version = 13000;
  return cudaSuccess;
}
cudaError_t cudaDriverGetVersion(int *version) { return cudaRuntimeGetVersion(version); }

// --- memory

// Ends at an unreadable page and begins after one, on 256 bytes.
cudaError_t cudaMalloc(void **p, size_t bytes)
{
  const Lock lock(device().lock);
  const cudaError_t allowed = may_wait();
  if (allowed != cudaSuccess) return result(allowed);
  *p = nullptr;
  if (bytes == 0) return result(cudaSuccess);
  if (bytes > kTotalMemory - device().used) return result(cudaErrorMemoryAllocation);
  const size_t page = device().page, rounded = (bytes + 255) / 256 * 256, mapped = (rounded + page - 1) / page * page + 2 * page;
  void *base = mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (base == MAP_FAILED) return result(cudaErrorMemoryAllocation);
  char *start = (char *)base + mapped - page - rounded;
  if (options().poison) memset(start, 0xff, rounded);
  mprotect(base, page, PROT_NONE);
  mprotect((char *)base + mapped - page, page, PROT_NONE);
  device().allocations[start] = {bytes, (char *)base, mapped};
  device().used += bytes;
  if (options().protect && device().open == 0) protect_all(PROT_NONE);
  if (checker) checker->memory(start, bytes, true);
  *p = start;
  return result(cudaSuccess);
}
cudaError_t cudaFree(void *p)
{
  const Lock lock(device().lock);
  const cudaError_t allowed = may_wait();
  if (allowed != cudaSuccess) return result(allowed);
  if (p == nullptr) return result(cudaSuccess);
  wait_for_all();
  const auto at = device().allocations.find((char *)p);
  if (at == device().allocations.end()) return result(cudaErrorInvalidValue);
  if (checker) checker->memory(p, at->second.bytes, false);
  device().used -= at->second.bytes;
  munmap(at->second.base, at->second.mapped);
  device().allocations.erase(at);
  return result(cudaSuccess);
}
cudaError_t cudaMallocHost(void **p, size_t bytes, unsigned)
{
  const Lock lock(device().lock);
  const cudaError_t allowed = may_wait();
  if (allowed != cudaSuccess) return result(allowed);
  *p = aligned_alloc(256, (bytes + 255) / 256 * 256);
  return result(*p != nullptr || bytes == 0 ? cudaSuccess : cudaErrorMemoryAllocation);
}
cudaError_t cudaHostAlloc(void **p, size_t bytes, unsigned flags) { return cudaMallocHost(p, bytes, flags); }
cudaError_t cudaFreeHost(void *p)
{
  const Lock lock(device().lock);
  const cudaError_t allowed = may_wait();
  if (allowed != cudaSuccess) return result(allowed);
  wait_for_all();
  free(p);
  return result(cudaSuccess);
}
cudaError_t cudaMemGetInfo(size_t *free_bytes, size_t *total)
{
  const Lock lock(device().lock);
  *total = kTotalMemory;
  *free_bytes = kTotalMemory - device().used;
  return result(cudaSuccess);
}

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, cudaMemcpyKind kind, cudaStream_t stream)
{
  const Lock lock(device().lock);
  Stream *s = resolve(stream);
  const cudaError_t allowed = may_issue(s);
  if (allowed != cudaSuccess) return result(allowed);
  if (bytes == 0) return result(cudaSuccess);
  if (!in_bounds(to, bytes) || !in_bounds(from, bytes) || !right_sides(to, from, kind)) return result(cudaErrorInvalidValue);
  issue(s, [=] {
    memmove(to, from, bytes);
    if (checker && on_device(to)) checker->host_writes(to, bytes);
  });
  return result(cudaSuccess);
}
cudaError_t cudaMemsetAsync(void *p, int value, size_t bytes, cudaStream_t stream)
{
  const Lock lock(device().lock);
  Stream *s = resolve(stream);
  const cudaError_t allowed = may_issue(s);
  if (allowed != cudaSuccess) return result(allowed);
  if (bytes == 0) return result(cudaSuccess);
  if (!on_device(p) || !in_bounds(p, bytes)) return result(cudaErrorInvalidValue);
  issue(s, [=] {
    memset(p, value, bytes);
    if (checker) checker->host_writes(p, bytes);
  });
  return result(cudaSuccess);
}
cudaError_t cudaMemcpy(void *to, const void *from, size_t bytes, cudaMemcpyKind kind)
{
  const Lock lock(device().lock);
  cudaError_t e = may_issue(&device().legacy);
  if (e == cudaSuccess) e = may_wait();
  if (e != cudaSuccess) return result(e);
  e = cudaMemcpyAsync(to, from, bytes, kind, nullptr);
  wait_for(device().legacy.last);
  return result(e);
}
cudaError_t cudaMemset(void *p, int value, size_t bytes)
{
  const Lock lock(device().lock);
  const cudaError_t e = may_wait();
  return e != cudaSuccess ? result(e) : cudaMemsetAsync(p, value, bytes, nullptr);
}
