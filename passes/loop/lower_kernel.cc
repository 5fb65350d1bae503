// The lists of loop passes, and lower_kernel, which runs them.
#include "passes/loop/lower_kernel.h"

#include <algorithm>

#include "ir/loop/build.h"
#include "ir/loop/simplify.h"
#include "ir/loop/visit.h"
#include "passes/analysis/nest.h"
#include "passes/loop/assign_names.h"
#include "passes/loop/common_subexpr.h"
#include "passes/loop/dead_stores.h"
#include "passes/loop/end_sums.h"
#include "passes/loop/flatten_buffers.h"
#include "passes/loop/guard_threads.h"
#include "passes/loop/hide_addresses.h"
#include "passes/loop/hoist_invariants.h"
#include "passes/loop/hoist_pointers.h"
#include "passes/loop/index_width.h"
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
#include "passes/loop/outline_chunks.h"
#include "passes/loop/partition_loops.h"
#include "passes/loop/plan_scratch.h"
#include "passes/loop/round_to_bytes.h"
#include "passes/loop/split_host_device.h"
#include "passes/loop/sums_in_registers.h"
#include "passes/loop/trim_loops.h"
#include "passes/loop/trust_sizes.h"
#include "passes/loop/vector_registers.h"
#include "passes/loop/vectorize_loops.h"

namespace tc {
namespace {

constexpr int64_t kScratchAlign = 64, kCudaScratchAlign = 256;  // bytes

Stmt simplified(const Stmt& s) { return simplify(s); }
Stmt partitioned(const Stmt& s) { return partition_loops(s); }

// More chunks than any tensor has whose size is known: a size without an upper bound counts them. They become a number that
// threads can share, and that can be counted in int (tc_parallel.h).
Stmt countable_chunks(const Stmt& body) {
  constexpr int64_t kMost = 1 << 22, kChunks = 64;
  return rewrite(body, {}, [](const Stmt& s) -> Stmt {
    const For* f = as<For>(s);
    const auto chunks = f && f->kind == ForKind::Parallel ? as_const_int(f->extent) : std::nullopt;
    if (!chunks || *chunks <= kMost) return {};
    if (*chunks % kChunks != 0 || !is_const(f->begin, 0))
      return *chunks > INT32_MAX ? loop(f->var, f->extent, f->body, ForKind::Serial, f->begin) : Stmt();
    const Var share = make_var("share");
    const int64_t each = *chunks / kChunks;
    return loop(share, kChunks, loop(f->var, each, f->body, ForKind::Serial, Expr(share) * each), ForKind::Parallel);
  });
}

// Is it nothing but loops of chunks, one after the other?
bool only_chunks(const Stmt& s) {
  if (const For* f = as<For>(s)) return f->kind == ForKind::Parallel;
  if (const Alloc* k = as<Alloc>(s)) return only_chunks(k->body);
  if (const Comment* k = as<Comment>(s)) return only_chunks(k->body);
  const Seq* k = as<Seq>(s);
  return k && std::all_of(k->list.begin(), k->list.end(), only_chunks);
}

// The chunks of a Parallel loop run wherever they like, in a function of their own. One inside of another loop, or of a
// condition, is a loop like any other: what is around it may need what it wrote, and its function would not know where
// that is. But a loop around nothing else (the images of a batch, each in several steps that threads share) stays around them.
Stmt outermost_chunks(const Stmt& body) {
  auto serial = [](const Stmt& s) {
    return rewrite(s, {}, [](const Stmt& x) -> Stmt {
      const For* f = as<For>(x);
      return f && f->kind == ForKind::Parallel ? loop(f->var, f->extent, f->body, ForKind::Serial, f->begin) : Stmt();
    });
  };
  return rewrite(body, {}, [&](const Stmt& s) -> Stmt {
    if (const For* f = as<For>(s); f && is_const(f->extent, 1)) return {};  // no loop
    if (const For* f = as<For>(s)) {
      if (f->kind == ForKind::Serial && only_chunks(f->body)) return {};
      const Stmt inner = serial(f->body);
      return inner.same_as(f->body) ? Stmt() : loop(f->var, f->extent, inner, f->kind, f->begin);
    }
    if (const While* w = as<While>(s)) return while_loop(w->condition, serial(w->body));
    if (const If* k = as<If>(s))
      return if_then(k->condition, serial(k->then), k->otherwise ? serial(k->otherwise) : Stmt());
    return {};
  });
}

// The host's loops around a launch, as if they were loops of blocks: the passes know the numbers, and cut nothing
// there.
void enter_host_loops(Lowering& l) {
  const std::vector<For>& loops = l.device->host_loops;
  for (size_t i = loops.size(); i-- > 0;)
    l.body = loop(loops[i].var, loops[i].extent, l.body, ForKind::BlockZ, loops[i].begin);
}

void leave_host_loops(Lowering& l) {
  for (For& t : l.device->host_loops) {
    const For* k = as<For>(l.body);
    check(k && k->kind == ForKind::BlockZ, "the host's loops are outermost");
    t.var = k->var;
    l.host_loops.push_back(t.var);
    l.body = Stmt(k->body);
  }
}

template <Stmt (*Pass)(const Stmt&)>
void rewrite_body(Lowering& l) {
  l.body = Pass(l.body);
}

// What is live is told by the ranges of loops, which copies of one have each of its own.
void tell_loops_apart(Lowering& l) {
  if (!l.io->live().empty()) l.body = bind_once(l.body);
}

void trim_launches(Lowering& l) {
  tell_loops_apart(l);
  l.grids = trim_grids(l.body, l.io->live());
  l.body = guard_threads(l.body, l.io->live(), l.grids);
  l.grid_params = l.io->buffers();
}
void trim(Lowering& l) {
  tell_loops_apart(l);
  l.body = trim_loops(l.body, l.io->live());
}

void flatten(Lowering& l) { l.body = flatten_buffers(l.body, l.flat); }

// Every parameter and its views become one flat buffer.
void merge_views(Lowering& l) {
  l.body = substitute_buffers(l.body, l.io->flatten(l.flat));
  l.visible = l.io->buffers();
}

template <int64_t Align>
void plan(Lowering& l) {
  PlannedScratch planned = plan_scratch(l.body, Align);
  l.body = planned.body;
  l.scratch = planned.scratch;
  l.scratch_bytes = planned.bytes;
}

void merge_shared(Lowering& l) {
  const MergedShared merged = merge_shared_memory(l.body);
  l.body = merged.body;
  l.device->dynamic_shared = merged.dynamic_bytes;
}

void choose_index_width(Lowering& l) { l.kernel->wide_index = needs_wide_index(*l.kernel); }
void drop_checked_bounds(Lowering& l) {
  if (l.kernel->device.empty()) l.body = trust_sizes(l.body, *l.kernel);
  for (DeviceFunction& f : l.kernel->device) f.body = trust_sizes(f.body, *l.kernel);
}
void choose_vector_registers(Lowering& l) {
  l.kernel->body = l.body = with_places_by_formula(l.body);
  find_vector_registers(*l.kernel);
}
void find_parts(Lowering& l) { outline_chunks(*l.kernel); }

void name_variables(Lowering& l) { l.body = assign_names(l.body, l.io->names()); }

}  // namespace

namespace {

// Rows that stand in several lists.
constexpr LoopPass kSimplify{"simplify", rewrite_body<simplified>, "simplifies indices and conditions"};
constexpr LoopPass kDeadStores{"dead_stores", rewrite_body<dead_stores>, "removes local sums that nobody reads"};
constexpr LoopPass kPartitionLoops{"partition_loops", rewrite_body<partitioned>,
                                   "cuts loops where their conditions are decided"};
constexpr LoopPass kEndSums{"end_sums", rewrite_body<end_sums>, "ends sums behind the last element that is there"};
constexpr LoopPass kNarrowTypes{"lower_narrow_types", rewrite_body<lower_narrow_types>,
                                "computes narrow types as f32 or i32"};
constexpr LoopPass kCommonSubexpr{"common_subexpr", rewrite_body<common_subexpr>, "computes equal expressions once"};
constexpr LoopPass kHoistInvariants{"hoist_invariants", rewrite_body<hoist_invariants>,
                                    "moves out of loops what is the same in every iteration"};
constexpr LoopPass kFlattenBuffers{"flatten_buffers", flatten, "gives buffers in memory one axis"};
constexpr LoopPass kHoistPointers{"hoist_pointers", rewrite_body<hoist_pointers>,
                                  "makes base pointers of the common part of indices"};
constexpr LoopPass kLowerIndexMath{"lower_index_math", rewrite_body<lower_index_math>,
                                   "turns floor divisions into C's / and %"};
constexpr LoopPass kNameValues{"name_values", rewrite_body<name_values>,
                               "gives the steps of long expressions a name each"};
constexpr LoopPass kAssignNames{"assign_names", name_variables, "makes names unique"};
constexpr LoopPass kMergeViews{"merge_views", merge_views, "makes one buffer of a parameter and its views"};
constexpr std::string_view kPlanScratch = "gives temporaries their place in the scratch memory";

}  // namespace

const std::vector<LoopPass>& c_loop_passes() {
  static const std::vector<LoopPass> list = {
      {"countable_chunks", rewrite_body<countable_chunks>, "gives threads a number of chunks that can be counted"},
      {"outermost_chunks", rewrite_body<outermost_chunks>, "runs chunks inside of another loop in its thread"},
      {"lower_lanes", rewrite_body<lower_lanes>, "makes vectors of loops of kind Vector"},
      kPartitionLoops,
      kEndSums,
      kDeadStores,
      {"sums_in_registers", rewrite_body<sums_in_registers>, "keeps short rows of sums in registers"},
      kNarrowTypes,
      {"round_to_bytes", rewrite_body<round_to_bytes>, "quantises vectors in few operations, without divisions"},
      kCommonSubexpr,
      kHoistInvariants,
      kSimplify,
      {"trim_loops", trim, "ends loops behind the sizes that are chosen at run time"},
      kFlattenBuffers,
      kHoistPointers,
      {"hide_addresses", rewrite_body<hide_addresses>, "has rows that overlap read anew in every iteration"},
      {"plan_scratch", plan<kScratchAlign>, kPlanScratch},
      kLowerIndexMath,
      kNameValues,
      kAssignNames,
      kMergeViews,
  };
  return list;
}

const std::vector<LoopPass>& cuda_loop_passes() {
  static const std::vector<LoopPass> list = {
      kSimplify,
      kDeadStores,
      {"infer_fragment", rewrite_body<infer_fragment>, "finds which lane of a warp has which element of a tile"},
      {"synchronise", rewrite_body<synchronise>, "lowers exchanges between threads and places barriers"},
      {"trim_grids", trim_launches, "counts the blocks that sizes chosen at run time need"},
      kFlattenBuffers,
      {"vectorize_loops", rewrite_body<vectorize_loops>, "makes accesses of 16 bytes of loops of kind Vector"},
      kMergeViews,
      {"plan_scratch", plan<kCudaScratchAlign>, kPlanScratch},
  };
  return list;
}

const std::vector<LoopPass>& device_loop_passes() {
  static const std::vector<LoopPass> list = {
      {"enter_host_loops", enter_host_loops, "shows the host's loops around a launch to the passes"},
      kPartitionLoops,
      kEndSums,
      kDeadStores,
      kNarrowTypes,
      kCommonSubexpr,
      kHoistInvariants,
      kSimplify,
      kFlattenBuffers,
      kHoistPointers,
      kLowerIndexMath,
      kNameValues,
      {"leave_host_loops", leave_host_loops, "makes parameters of the host's loop variables"},
      {"merge_shared_memory", merge_shared, "gives the same bytes to shared arrays that live one after the other"},
      kAssignNames,
  };
  return list;
}

const std::vector<LoopPass>& last_loop_passes() {
  static const std::vector<LoopPass> list = {
      {"index_width", choose_index_width, "counts in int64_t where int is too narrow"},
      {"trust_sizes", drop_checked_bounds, "does not hold a size within bounds that the run has checked"},
      {"vector_registers", choose_vector_registers, "finds the registers that hold vectors"},
      {"outline_chunks", find_parts, "finds what parallel loops need of what is around them"},
  };
  return list;
}

void finish_kernel(Kernel& k, LoopPassRunner& passes) {
  std::vector<Buffer> visible;
  for (const Param& p : k.params) visible.push_back(p.buffer);
  Lowering l{.body = k.body, .visible = std::move(visible), .kernel = &k};
  passes.run(last_loop_passes(), l, k.name);
  k.body = l.body;
}

Kernel lower_kernel(const Scheduled& s, const std::string& title, LoopPassRunner& passes) {
  KernelInterface io(s);
  Lowering l{.body = io.body(), .visible = io.visible(), .io = &io};
  passes.run(c_loop_passes(), l, title);
  Kernel k;
  k.scratch_bytes = l.scratch_bytes;
  k.can_fail = raises_status(l.body);
  k.makes_strings = makes_strings(l.body);
  k.body = l.body;
  io.finish(k, l.scratch);
  return k;
}

namespace {

// In terms of the parameters, of which those are flat by now that the loops read.
GridSizes flat_grids(const Lowering& l) {
  GridSizes sizes;
  const std::vector<Buffer> params = l.io->buffers();
  for (const auto& [block, size] : l.grids)
    sizes[block] = rewrite(size, [&](const Expr& e) -> Expr {
      const Load* k = as<Load>(e);
      if (!k) return {};
      const auto at = std::find(l.grid_params.begin(), l.grid_params.end(), k->buffer) - l.grid_params.begin();
      const Buffer& b = params.at(size_t(at));
      return load(b, Exprs(b->shape.size(), Expr(int64_t(0))));
    });
  return sizes;
}

}  // namespace

// The launches are cut apart first: what the passes share and move stays inside of one function of the device.
Kernel lower_cuda_kernel(const Scheduled& s, const std::string& title, LoopPassRunner& passes) {
  KernelInterface io(s);
  Lowering whole{.body = io.body(), .visible = io.visible(), .io = &io};
  passes.run(cuda_loop_passes(), whole, title);
  SplitFunction split = split_host_device(io.name_views(whole.body, whole.flat), io.buffers(), flat_grids(whole));
  Kernel k;
  for (DeviceFunction& f : split.device) {
    Lowering l{.body = f.body, .visible = f.params, .flat = whole.flat, .io = &io, .device = &f};
    passes.run(device_loop_passes(), l, title + ", " + f.name);
    whole.flat = l.flat;
    f.body = l.body;
    f.can_fail = raises_status(f.body);
    k.can_fail = k.can_fail || f.can_fail;
    set_launch_hints(f);
    set_initial_values(f);
  }
  drop_unread_params(split);
  k.scratch_bytes = whole.scratch_bytes;
  k.body = split.host;
  k.device = std::move(split.device);
  io.finish(k, whole.scratch);
  return k;
}

}  // namespace tc
