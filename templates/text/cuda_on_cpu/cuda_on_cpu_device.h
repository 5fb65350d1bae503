// SPDX-License-Identifier: 0BSD -- support text of tc-emit; do not edit
// The simulated device: what the files of the runtime API share. All of it is used with Device::lock held.
#ifndef TC_CUDA_ON_CPU_DEVICE_H
#define TC_CUDA_ON_CPU_DEVICE_H
#include <unistd.h>

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

#include "cuda_on_cpu_parts.h"

namespace tc_cpu {

struct Op {  // a piece of work and those that come before it
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
  std::map<const void *, size_t> dynamic_limits;  // shared memory that kernels may have, where it was asked for
  size_t page = (size_t)sysconf(_SC_PAGESIZE), used = 0;
  int open = 0;  // device work in progress
  cudaError_t broken = cudaSuccess;
  Random random{options().stream_seed};
};
Device &device();

constexpr size_t kTotalMemory = (size_t)8 << 30;
using Lock = std::lock_guard<std::recursive_mutex>;

// What a call returns: e, or the failure of a kernel before it. Kept for cudaGetLastError().
cudaError_t result(cudaError_t e);

// While one exists, device memory may be touched.
struct DeviceWork {
  DeviceWork();
  ~DeviceWork();
};
void protect_all(int how);  // PROT_NONE, or PROT_READ | PROT_WRITE

// The stream that a handle means; a null one is the legacy stream.
Stream *resolve(Stream *s);
bool known(Stream *s);

// Puts work behind all that is in a stream, or into the graph that it captures.
OpPtr issue(Stream *s, std::function<void()> run);
// Appends op and all that has to come before it to ops, if not done and not in seen; those that come first, first.
void collect(const OpPtr &op, std::set<Op *> &seen, std::vector<OpPtr> &ops);
// Runs those of ops that are not done, in an order that the streams allow.
void run_all(const std::vector<OpPtr> &ops);
void wait_for(const OpPtr &op);
void wait_for_all();
// Takes the streams out of a capture. By value: the last of them may hold the only reference.
void end_capture(std::shared_ptr<Capture> c);

// What a call that puts work into s has to return instead, if it is not allowed to.
cudaError_t may_issue(Stream *s);
// The same for calls that wait, allocate or free.
cudaError_t may_wait();

}  // namespace tc_cpu
#endif
