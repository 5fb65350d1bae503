// SPDX-License-Identifier: 0BSD -- support text of tc-emit; do not edit
// Memory, streams, events and graphs. Work in streams is a list of operations, each with those it has to wait for.
// TC_CUDA_STREAM says when one runs: early, at once; late, when the host waits for it, the newest of those that may run
// first; random, in any legal order. A program whose results depend on it lacks a wait.
#include "cuda_on_cpu_parts.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

namespace tc_cpu {

struct Op {
  std::function<void()> run;
  std::vector<std::shared_ptr<Op>> after;
  bool done = false;
};
using OpPtr = std::shared_ptr<Op>;

struct Graph {
  std::vector<OpPtr> ops;
};

struct Capture {
  Graph graph;
  Stream *origin = nullptr;
  std::thread::id thread;
  cudaStreamCaptureMode mode = cudaStreamCaptureModeGlobal;
  std::vector<Stream *> streams;  // those that take part
  bool broken = false;
};

struct Stream {
  bool blocking = true;  // ordered with the legacy stream
  OpPtr last;
  std::vector<OpPtr> joined;  // by events since
  std::shared_ptr<Capture> capture;
};

struct Event {
  OpPtr op;
  std::shared_ptr<Capture> capture;  // recorded while capturing
  double ms = 0;
};

}  // namespace tc_cpu

struct tc_cpu_graph_exec {
  tc_cpu::Graph graph;
};

namespace tc_cpu {
namespace {

struct Allocation {
  size_t bytes;
  char *base;
  size_t mapped;
};

struct Device {
  std::recursive_mutex lock;
  Stream legacy;
  std::set<Stream *> streams;
  std::vector<std::shared_ptr<Capture>> captures;
  std::vector<OpPtr> pending;
  std::map<char *, Allocation> allocations;
  size_t page = (size_t)sysconf(_SC_PAGESIZE), used = 0;
  int open = 0;  // device work in progress
  cudaError_t broken = cudaSuccess;
  Random random{options().stream_seed};
};
Device &device()
{
  static Device *d = new Device;  // outlives whatever frees memory at exit
  return *d;
}
thread_local cudaError_t last_error = cudaSuccess;

using Lock = std::lock_guard<std::recursive_mutex>;

cudaError_t result(cudaError_t e)
{
  if (e == cudaSuccess) e = device().broken;
  if (e != cudaSuccess && e != cudaErrorNotReady) last_error = e;
  return e;
}

constexpr size_t kTotalMemory = (size_t)8 << 30;

void protect_all(int how)
{
  for (const auto &[p, a] : device().allocations) mprotect(a.base + device().page, a.mapped - 2 * device().page, how);
}
struct DeviceWork {
  DeviceWork()
  {
    if (device().open++ == 0 && options().protect) protect_all(PROT_READ | PROT_WRITE);
  }
  ~DeviceWork()
  {
    if (--device().open == 0 && options().protect) protect_all(PROT_NONE);
  }
};

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

// --- operations

void execute(Op &op)
{
  if (op.done) return;
  op.done = true;
  op.after.clear();
  if (device().broken != cudaSuccess) return;
  const DeviceWork open;
  op.run();
}

// Runs those of ops that are not done, in an order that the streams allow.
void run_all(const std::vector<OpPtr> &ops)
{
  for (;;) {
    std::vector<Op *> ready;
    for (const OpPtr &o : ops)
      if (!o->done && std::all_of(o->after.begin(), o->after.end(), [](const OpPtr &a) { return a->done; })) {
        ready.push_back(o.get());
        if (options().stream == Options::kForward) break;
      }
    if (ready.empty()) return;
    const Options::Order order = options().stream;
    const size_t pick = order == Options::kForward ? 0 : order == Options::kReverse ? ready.size() - 1 : device().random.next() % ready.size();
    execute(*ready[pick]);
  }
}

void collect(const OpPtr &op, std::set<Op *> &seen, std::vector<OpPtr> &ops)
{
  if (op == nullptr || op->done || !seen.insert(op.get()).second) return;
  for (const OpPtr &a : op->after) collect(a, seen, ops);
  ops.push_back(op);
}
void forget_done()
{
  auto &p = device().pending;
  p.erase(std::remove_if(p.begin(), p.end(), [](const OpPtr &o) { return o->done; }), p.end());
}
void wait_for(const OpPtr &op)
{
  std::set<Op *> seen;
  std::vector<OpPtr> ops;
  collect(op, seen, ops);
  run_all(ops);
  forget_done();
}
void wait_for_all()
{
  run_all(device().pending);
  forget_done();
}
// One step toward op; whether it is done. For queries, so that loops around them end.
bool query(const OpPtr &op)
{
  if (op == nullptr || op->done) return true;
  std::set<Op *> seen;
  std::vector<OpPtr> ops;
  collect(op, seen, ops);
  execute(*ops.front());
  forget_done();
  return false;
}

Stream *resolve(Stream *s) { return s == nullptr || s == cudaStreamLegacy ? &device().legacy : s; }
bool known(Stream *s) { return s == &device().legacy || device().streams.count(s) != 0; }

OpPtr issue(Stream *s, std::function<void()> run)
{
  auto op = std::make_shared<Op>();
  op->run = std::move(run);
  if (s->last) op->after.push_back(s->last);
  for (const OpPtr &j : s->joined) op->after.push_back(j);
  s->joined.clear();
  s->last = op;
  if (s->capture) {
    s->capture->graph.ops.push_back(op);
    return op;
  }
  if (s == &device().legacy) {
    for (Stream *other : device().streams)
      if (other->blocking && other->last && !other->capture) op->after.push_back(other->last);
  } else if (s->blocking && device().legacy.last) {
    op->after.push_back(device().legacy.last);
  }
  op->after.erase(std::remove_if(op->after.begin(), op->after.end(), [](const OpPtr &a) { return a->done; }), op->after.end());
  device().pending.push_back(op);
  if (options().stream == Options::kForward) {
    run_all(device().pending);
    forget_done();
  }
  return op;
}

void break_capture(Stream *s)
{
  if (s->capture) s->capture->broken = true;
}

// What a call that puts work into s has to return instead, if it is not allowed to.
cudaError_t may_issue(Stream *s)
{
  if (!known(s)) return cudaErrorInvalidResourceHandle;
  if (s == &device().legacy)
    for (const auto &c : device().captures)
      if (c->origin->blocking && c->mode != cudaStreamCaptureModeRelaxed) {
        c->broken = true;
        return cudaErrorStreamCaptureImplicit;
      }
  return s->capture && s->capture->broken ? cudaErrorStreamCaptureInvalidated : cudaSuccess;
}

// Calls that wait, allocate or free are refused while a capture of this thread, or a global one, goes on.
cudaError_t may_wait()
{
  for (const auto &c : device().captures)
    if (c->mode == cudaStreamCaptureModeGlobal || (c->mode == cudaStreamCaptureModeThreadLocal && c->thread == std::this_thread::get_id())) {
      c->broken = true;
      return cudaErrorStreamCaptureUnsupported;
    }
  return cudaSuccess;
}

double milliseconds()
{
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
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

}  // namespace

cudaError_t enqueue(const Launch &launch, void (*threads)(const void *), const void *args, size_t bytes)
{
  const Lock lock(device().lock);
  Stream *s = resolve(launch.stream);
  const cudaError_t before = cudaGetLastError(), allowed = may_issue(s);
  if (allowed != cudaSuccess) return allowed;
  if (!fits(launch.grid, launch.block)) return cudaErrorInvalidConfiguration;
  if (launch.shared_bytes > (227 << 10)) return cudaErrorInvalidValue;
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

// --- streams

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned flags)
{
  const Lock lock(device().lock);
  if (flags > cudaStreamNonBlocking) return result(cudaErrorInvalidValue);
  *stream = new Stream;
  (*stream)->blocking = flags != cudaStreamNonBlocking;
  device().streams.insert(*stream);
  return result(cudaSuccess);
}
cudaError_t cudaStreamCreate(cudaStream_t *stream) { return cudaStreamCreateWithFlags(stream, cudaStreamDefault); }
cudaError_t cudaStreamDestroy(cudaStream_t s)
{
  const Lock lock(device().lock);
  if (device().streams.count(s) == 0) return result(cudaErrorInvalidResourceHandle);
  if (s->capture) {  // ends the capture
    const std::shared_ptr<Capture> c = s->capture;
    for (Stream *member : c->streams) {
      member->capture = nullptr;
      member->last = nullptr;
      member->joined.clear();
    }
    device().captures.erase(std::find(device().captures.begin(), device().captures.end(), c));
  }
  wait_for(s->last);
  device().streams.erase(s);
  delete s;
  return result(cudaSuccess);
}
cudaError_t cudaStreamSynchronize(cudaStream_t stream)
{
  const Lock lock(device().lock);
  Stream *s = resolve(stream);
  if (!known(s)) return result(cudaErrorInvalidResourceHandle);
  if (s->capture) {
    break_capture(s);
    return result(cudaErrorStreamCaptureUnsupported);
  }
  if (s == &device().legacy) {
    const cudaError_t allowed = may_issue(s);
    if (allowed != cudaSuccess) return result(allowed);
    for (Stream *other : device().streams)
      if (other->blocking && !other->capture) wait_for(other->last);
  }
  wait_for(s->last);
  return result(cudaSuccess);
}
cudaError_t cudaStreamQuery(cudaStream_t stream)
{
  const Lock lock(device().lock);
  Stream *s = resolve(stream);
  if (!known(s)) return result(cudaErrorInvalidResourceHandle);
  if (s->capture) {
    break_capture(s);
    return result(cudaErrorStreamCaptureUnsupported);
  }
  return result(query(s->last) ? cudaSuccess : cudaErrorNotReady);
}
cudaError_t cudaDeviceSynchronize()
{
  const Lock lock(device().lock);
  const cudaError_t allowed = may_wait();
  if (allowed != cudaSuccess) return result(allowed);
  wait_for_all();
  return result(cudaSuccess);
}
cudaError_t cudaDeviceReset()
{
  const Lock lock(device().lock);
  wait_for_all();
  device().broken = cudaSuccess;
  last_error = cudaSuccess;
  return cudaSuccess;
}

// --- events

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned)
{
  *event = new Event;
  return cudaSuccess;
}
cudaError_t cudaEventCreate(cudaEvent_t *event) { return cudaEventCreateWithFlags(event, cudaEventDefault); }
cudaError_t cudaEventDestroy(cudaEvent_t event)
{
  const Lock lock(device().lock);
  wait_for(event->capture ? nullptr : event->op);  // its time is written by the operation
  delete event;
  return cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream)
{
  const Lock lock(device().lock);
  Stream *s = resolve(stream);
  const cudaError_t allowed = may_issue(s);
  if (allowed != cudaSuccess) return result(allowed);
  event->capture = s->capture;
  if (s->capture)
    event->op = issue(s, [] {});
  else
    event->op = issue(s, [event] { event->ms = milliseconds(); });
  return result(cudaSuccess);
}
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned)
{
  const Lock lock(device().lock);
  Stream *s = resolve(stream);
  const cudaError_t allowed = may_issue(s);
  if (allowed != cudaSuccess) return result(allowed);
  if (event->op == nullptr) return result(cudaSuccess);
  if (event->capture != s->capture) {
    if (s->capture) {  // of another capture, or from outside
      break_capture(s);
      return result(event->capture ? cudaErrorStreamCaptureMerge : cudaErrorStreamCaptureIsolation);
    }
    const auto &open = device().captures;
    if (std::find(open.begin(), open.end(), event->capture) == open.end()) return result(cudaErrorCapturedEvent);
    s->capture = event->capture;  // a capture spreads along its events
    s->capture->streams.push_back(s);
    s->last = nullptr;
    s->joined.clear();
  }
  s->joined.push_back(event->op);
  return result(cudaSuccess);
}
cudaError_t cudaEventSynchronize(cudaEvent_t event)
{
  const Lock lock(device().lock);
  if (event->capture) {
    event->capture->broken = true;
    return result(cudaErrorCapturedEvent);
  }
  wait_for(event->op);
  return result(cudaSuccess);
}
cudaError_t cudaEventQuery(cudaEvent_t event)
{
  const Lock lock(device().lock);
  if (event->capture) {
    event->capture->broken = true;
    return result(cudaErrorCapturedEvent);
  }
  return result(query(event->op) ? cudaSuccess : cudaErrorNotReady);
}
cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t from, cudaEvent_t to)
{
  const Lock lock(device().lock);
  if (from->op == nullptr || to->op == nullptr) return result(cudaErrorInvalidResourceHandle);
  if (!from->op->done || !to->op->done) return result(cudaErrorNotReady);
  *ms = (float)(to->ms - from->ms);
  return result(cudaSuccess);
}

// --- captures and graphs

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode)
{
  const Lock lock(device().lock);
  Stream *s = resolve(stream);
  if (s == &device().legacy) return result(cudaErrorStreamCaptureUnsupported);
  if (!known(s)) return result(cudaErrorInvalidResourceHandle);
  if (s->capture) return result(cudaErrorStreamCaptureUnsupported);
  wait_for(s->last);
  s->last = nullptr;
  s->joined.clear();
  s->capture = std::make_shared<Capture>();
  s->capture->origin = s;
  s->capture->thread = std::this_thread::get_id();
  s->capture->mode = mode;
  s->capture->streams = {s};
  device().captures.push_back(s->capture);
  return result(cudaSuccess);
}
cudaError_t cudaStreamEndCapture(cudaStream_t s, cudaGraph_t *graph)
{
  const Lock lock(device().lock);
  *graph = nullptr;
  if (device().streams.count(s) == 0 || !s->capture) return result(cudaErrorInvalidValue);
  const std::shared_ptr<Capture> c = s->capture;
  if (c->origin != s) {
    c->broken = true;
    return result(cudaErrorStreamCaptureUnmatched);
  }
  if (c->mode != cudaStreamCaptureModeRelaxed && c->thread != std::this_thread::get_id()) return result(cudaErrorStreamCaptureWrongThread);
  // Every operation has to come before the end of the origin.
  std::set<Op *> joined;
  std::vector<OpPtr> ops;
  collect(s->last, joined, ops);
  for (const OpPtr &j : s->joined) collect(j, joined, ops);
  const bool unjoined = joined.size() != c->graph.ops.size();
  for (Stream *member : c->streams) {
    member->capture = nullptr;
    member->last = nullptr;
    member->joined.clear();
  }
  device().captures.erase(std::find(device().captures.begin(), device().captures.end(), c));
  if (c->broken) return result(cudaErrorStreamCaptureInvalidated);
  if (unjoined) return result(cudaErrorStreamCaptureUnjoined);
  *graph = new Graph(c->graph);
  return result(cudaSuccess);
}
cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus *status)
{
  const Lock lock(device().lock);
  Stream *s = resolve(stream);
  if (!known(s)) return result(cudaErrorInvalidResourceHandle);
  *status = !s->capture ? cudaStreamCaptureStatusNone : s->capture->broken ? cudaStreamCaptureStatusInvalidated : cudaStreamCaptureStatusActive;
  return result(cudaSuccess);
}
cudaError_t cudaGraphInstantiate(cudaGraphExec_t *exec, cudaGraph_t graph, unsigned long long)
{
  if (graph == nullptr) return result(cudaErrorInvalidValue);
  *exec = new tc_cpu_graph_exec{*graph};
  return result(cudaSuccess);
}
cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream)
{
  const Lock lock(device().lock);
  Stream *s = resolve(stream);
  const cudaError_t allowed = may_issue(s);
  if (allowed != cudaSuccess) return result(allowed);
  if (exec == nullptr) return result(cudaErrorInvalidValue);
  const Graph graph = exec->graph;
  issue(s, [graph] {
    std::map<Op *, OpPtr> copies;  // a launch of its own: the graph's operations stay as they are
    std::vector<OpPtr> ops;
    for (const OpPtr &o : graph.ops) {
      auto copy = std::make_shared<Op>();
      copy->run = o->run;
      for (const OpPtr &a : o->after) copy->after.push_back(copies.at(a.get()));
      copies[o.get()] = copy;
      ops.push_back(copy);
    }
    run_all(ops);
  });
  return result(cudaSuccess);
}
cudaError_t cudaGraphDestroy(cudaGraph_t graph)
{
  delete graph;
  return cudaSuccess;
}
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec)
{
  delete exec;
  return cudaSuccess;
}
cudaError_t cudaGraphGetNodes(cudaGraph_t graph, void *nodes, size_t *count)
{
  if (nodes != nullptr) return result(cudaErrorInvalidValue);
  *count = graph->ops.size();
  return cudaSuccess;
}
