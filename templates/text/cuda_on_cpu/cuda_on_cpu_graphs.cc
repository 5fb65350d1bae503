// SPDX-License-Identifier: 0BSD -- support text of tc-emit; do not edit
// The runtime API: captures and graphs. A graph is the list of operations that a stream captured; a launch of it is one
// operation of its stream, which runs copies of them.
#include <algorithm>

#include "cuda_on_cpu_device.h"

struct tc_cpu_graph_exec {
  tc_cpu::Graph graph;
};

using namespace tc_cpu;

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
  end_capture(c);
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
