// SPDX-License-Identifier: 0BSD -- support text of tc-emit; do not edit
// The runtime API: streams and events. Work in streams is a list of operations, each with those it has to
// wait for. TC_CUDA_STREAM says when one runs: early, at once; late, when the host waits for it, the newest of those that
// may run first; random, in any legal order. A program whose results depend on it lacks a wait.
#include <time.h>

#include <algorithm>

#include "cuda_on_cpu_device.h"

namespace tc_cpu {
namespace {

void execute(Op &op)
{
  if (op.done) return;
  op.done = true;
  op.after.clear();
  if (device().broken != cudaSuccess) return;
  const DeviceWork open;
  op.run();
}

void forget_done()
{
  auto &p = device().pending;
  p.erase(std::remove_if(p.begin(), p.end(), [](const OpPtr &o) { return o->done; }), p.end());
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

void break_capture(Stream *s)
{
  if (s->capture) s->capture->broken = true;
}

// Whoever waits for an event of a capture breaks that.
bool refuse_captured(cudaEvent_t event)
{
  if (event->capture) event->capture->broken = true;
  return event->capture != nullptr;
}

double milliseconds()
{
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

}  // namespace

void collect(const OpPtr &op, std::set<Op *> &seen, std::vector<OpPtr> &ops)
{
  if (op == nullptr || op->done || !seen.insert(op.get()).second) return;
  for (const OpPtr &a : op->after) collect(a, seen, ops);
  ops.push_back(op);
}

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
void end_capture(std::shared_ptr<Capture> c)
{
  for (Stream *member : c->streams) {
    member->capture = nullptr;
    member->last = nullptr;
    member->joined.clear();
  }
  device().captures.erase(std::find(device().captures.begin(), device().captures.end(), c));
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

}  // namespace tc_cpu

using namespace tc_cpu;

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
  if (s->capture) end_capture(s->capture);
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
  cudaGetLastError();
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
  if (refuse_captured(event)) return result(cudaErrorCapturedEvent);
  wait_for(event->op);
  return result(cudaSuccess);
}
cudaError_t cudaEventQuery(cudaEvent_t event)
{
  const Lock lock(device().lock);
  if (refuse_captured(event)) return result(cudaErrorCapturedEvent);
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
