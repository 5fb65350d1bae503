// lower_kernel: the loop passes that turn a schedule into printable form, one after the other.
#include "passes/loop/lower_kernel.h"

#include "ir/loop/build.h"
#include "ir/loop/simplify.h"
#include "ir/loop/visit.h"
#include "passes/loop/assign_names.h"
#include "passes/loop/common_subexpr.h"
#include "passes/loop/flatten_buffers.h"
#include "passes/loop/hoist_invariants.h"
#include "passes/loop/hoist_pointers.h"
#include "passes/loop/infer_fragment.h"
#include "passes/loop/initial_values.h"
#include "passes/loop/kernel_interface.h"
#include "passes/loop/launch_hints.h"
#include "passes/loop/launches.h"
#include "passes/loop/lower_index_math.h"
#include "passes/loop/lower_lanes.h"
#include "passes/loop/merge_shared_memory.h"
#include "passes/loop/name_values.h"
#include "passes/loop/narrow_types.h"
#include "passes/loop/partition_loops.h"
#include "passes/loop/place_scratch.h"
#include "passes/loop/split_host_device.h"
#include "passes/loop/vectorize_loops.h"

namespace tc {
namespace {

constexpr int64_t kScratchAlign = 64, kCudaScratchAlign = 256;  // bytes

// What does not depend on where scratch memory lives.
Stmt shared_work(const Stmt& s, BufferMap& flat) {
  Stmt body = lower_narrow_types(partition_loops(s));
  body = simplify(hoist_invariants(common_subexpr(body)));
  return hoist_pointers(flatten_buffers(body, flat));
}

// Chunks are counted in int (tc_parallel.h). Where there are more, no memory holds the tensor anyway: one thread.
Stmt countable_chunks(const Stmt& body) {
  return rewrite(body, {}, [](const Stmt& s) -> Stmt {
    const For* f = as<For>(s);
    if (!f || f->kind != ForKind::Parallel) return {};
    const std::optional<int64_t> chunks = as_const_int(f->extent);
    return chunks && *chunks > INT32_MAX ? loop(f->var, f->extent, f->body, ForKind::Serial, f->begin) : Stmt();
  });
}

// The host's loops around a launch, as if they were loops of blocks: the passes know the numbers, and cut nothing
// there.
Stmt with_turns(const DeviceFunction& f) {
  Stmt s = f.body;
  for (size_t i = f.turns.size(); i-- > 0;)
    s = loop(f.turns[i].var, f.turns[i].extent, s, ForKind::BlockZ, f.turns[i].begin);
  return s;
}

Stmt without_turns(Stmt s, DeviceFunction& f) {
  for (For& t : f.turns) {
    const For* k = as<For>(s);
    check(k && k->kind == ForKind::BlockZ, "the host's loops are outermost");
    t.var = k->var;
    s = k->body;
  }
  return s;
}

}  // namespace

Kernel lower_kernel(const Scheduled& s) {
  KernelInterface io(s);
  Kernel k;
  BufferMap flat;
  PlacedScratch placed = place_scratch(shared_work(lower_lanes(countable_chunks(io.body())), flat), kScratchAlign);
  const Stmt body = name_values(lower_index_math(placed.body));
  k.scratch_bytes = placed.bytes;
  k.can_fail = raises_status(body);
  k.makes_strings = makes_strings(body);
  k.body = substitute_buffers(assign_names(body, io.names()), io.flatten(flat));
  io.finish(k, placed.scratch);
  return k;
}

// The launches are cut apart first: what the passes share and move stays inside of one function of the device.
Kernel lower_cuda_kernel(const Scheduled& s) {
  KernelInterface io(s);
  Kernel k;
  BufferMap flat;
  const Stmt threads = synchronise(infer_fragment(simplify(io.body())));
  const Stmt whole = vectorize_loops(flatten_buffers(threads, flat));
  PlacedScratch placed = place_scratch(substitute_buffers(whole, io.flatten(flat)), kCudaScratchAlign);
  SplitFunction split = split_host_device(io.name_views(placed.body, flat), io.buffers());
  for (DeviceFunction& f : split.device) {
    const Stmt printable = name_values(lower_index_math(shared_work(with_turns(f), flat)));
    const MergedShared merged = merge_shared_memory(without_turns(printable, f));
    const Stmt& body = merged.body;
    f.dynamic_shared = merged.dynamic_bytes;
    f.can_fail = raises_status(body);
    k.can_fail = k.can_fail || f.can_fail;
    f.body = assign_names(body, io.names());
    set_launch_hints(f);
    set_initial_values(f);
  }
  k.scratch_bytes = placed.bytes;
  k.body = split.host;
  k.device = std::move(split.device);
  io.finish(k, placed.scratch);
  return k;
}

}  // namespace tc
