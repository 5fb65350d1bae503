// What has no canonical form. A formula gets a thread per result; stages that advance together, a block that goes
// through the steps with a barrier after every stage; loops that no formula says run in a single thread, unless their
// iterations are independent: then these have a thread each, which goes through the other loops in order.
#include <algorithm>

#include "ir/loop/build.h"
#include "ir/loop/visit.h"
#include "passes/analysis/dependence.h"
#include "passes/analysis/nest.h"
#include "support/text.h"
#include "templates/cuda/template.h"

namespace tc {
namespace {

// Takes the loops over `axes` off a nest: what is left is the code at a point.
Stmt without_loops(Stmt s, const std::vector<Axis>& axes, size_t from) {
  for (size_t k = from; k < axes.size(); k++) {
    const For* f = as<For>(s);
    check(f && f->var == axes[k].var, "the plain loops of a stage are its axes");
    s = f->body;
  }
  return s;
}

// Around the plain loops: the temporaries.
Stmt inside_allocs(Stmt s, std::vector<Buffer>& allocs) {
  while (const Alloc* a = as<Alloc>(s)) {
    allocs.push_back(a->buffer);
    s = a->body;
  }
  return s;
}

Stmt with_allocs(Stmt s, const std::vector<Buffer>& allocs) {
  for (size_t i = allocs.size(); i > 0; i--) s = alloc(allocs[i - 1], s);
  return s;
}

bool defines(const std::vector<Stage>& stages, const Buffer& b) {
  for (const Stage& s : stages)
    if (std::find(s.outputs.begin(), s.outputs.end(), b) != s.outputs.end()) return true;
  return false;
}

// Does every access of the group's own values, along axis k, stay at the point itself?
bool is_pointwise(const TensorFn& fn, size_t k) {
  for (const Stage& s : fn.stages) {
    if (k >= s.axes.size() || s.axes[k].extent.value != fn.stages[0].axes[k].extent.value) return false;
    bool own = true;
    auto look = [&](const Expr& e) {
      walk(e, [&](const Expr& x) {
        const Load* l = as<Load>(x);
        if (!l || !defines(fn.stages, l->buffer)) return true;
        const VarRef* v = k < l->index.size() ? as<VarRef>(l->index[k]) : nullptr;
        own = own && v && v->var == s.axes[k].var;
        return own;
      });
    };
    for (const Expr& e : s.values) look(e);
    for (const Expr& e : s.init) look(e);
    if (!own) return false;
  }
  return true;
}

// The group's stages at one step, their axes of `shared` renamed to the first stage's, the others over the threads.
struct ScanParts {
  const TensorFn& fn;
  std::vector<size_t> shared;  // axes that are the same in all stages, and never read across
  std::vector<Axis> rest(const Stage& s) const {
    std::vector<Axis> list;
    for (size_t k = 1; k < s.axes.size(); k++)
      if (std::find(shared.begin(), shared.end(), k) == shared.end()) list.push_back(s.axes[k]);
    return list;
  }
  std::vector<Axis> outer() const {
    std::vector<Axis> list;
    for (const size_t k : shared) list.push_back(fn.stages[0].axes[k]);
    return list;
  }
  Stmt point(const Stage& s, const Stmt& nest) const {
    VarMap same;
    for (const size_t k : shared) same[s.axes[k].var.get()] = Expr(fn.stages[0].axes[k].var);
    return substitute(without_loops(nest, s.axes, 1), same);
  }
};

// Loops of blocks and threads, or shared memory around them.
bool is_launch(const Stmt& s) {
  const For* f = as<For>(s);
  const Alloc* a = as<Alloc>(s);
  return has_device_loops(s) && (f || (a && a->buffer->scope == Scope::Shared));
}

// Steps that make launches of plain loops, one after the other; the threads of each are a number of the plan.
class Launches {
 public:
  Launches(Schedule& s, const PlanEntry& plan, bool apart) : s_(s), plan_(plan), apart_(apart) {}

  // `s`: loops of the schedule, as they are before the first step. Launches stay as they are.
  void of(const Stmt& s) {
    if (is_launch(s)) return;
    if (const Seq* q = as<Seq>(s)) {
      for (const Stmt& x : q->list) of(x);
      return;
    }
    if (const Comment* c = as<Comment>(s)) return of(c->body);
    if (const Alloc* a = as<Alloc>(s)) {  // what several launches share lies in memory that outlives them
      if (a->buffer->scope != Scope::Workspace) s_.set_scope(a->buffer, Scope::Workspace);
      return of(a->body);
    }
    // Independent iterations get a thread each, past loops whose are not; the rest runs in one thread.
    std::vector<Var> free, order;
    int64_t n = 1;
    Stmt body = s;
    for (const For* f = as<For>(body); f && f->kind != ForKind::Vector; f = as<For>(body)) {
      const auto extent = as_const_int(f->extent);
      if (!extent || !is_const(f->begin, 0)) break;
      const bool independent = conflicts(s, f->var, {}).empty();
      (independent ? free : order).push_back(f->var);
      if (independent) n = checked_mul(n, *extent);
      body = f->body;
    }
    std::vector<Buffer> own;
    if (free.empty() || !fits_a_thread(body, own)) return;
    order.insert(order.begin(), free.begin(), free.end());
    const int64_t threads = decide_threads(plan_, n, "threads" + (count_++ == 0 ? "" : to_text(int64_t(count_))));
    s_.attempt([&](Schedule& launch) {
      launch.reorder(order);
      for (const Buffer& b : own) launch.set_scope(b, Scope::Stack);
      bind_points(launch, free, threads, apart_);
    });
  }

 private:
  // `own`: what becomes the thread's.
  static bool fits_a_thread(const Stmt& s, std::vector<Buffer>& own) {
    bool fits = true;
    walk(s, [&](const Stmt& x) {
      const Alloc* a = as<Alloc>(x);
      if (!a) return true;
      fits = fits && num_elements(static_dims(a->buffer->shape)) * info(a->buffer->dtype).bytes <= kThreadBytes;
      if (a->buffer->scope == Scope::Workspace) own.push_back(a->buffer);
      return true;
    });
    return fits;
  }

  Schedule& s_;
  const PlanEntry& plan_;
  const bool apart_;
  size_t count_ = 0;
};

}  // namespace

std::optional<Scheduled> cuda_stage(const CudaArgs& a) {
  if (a.fn.stages.size() != 1 || a.fn.stages[0].kind == Stage::Kind::Nest || a.fn.stages[0].scan >= 0) return {};
  const Stage& stage = a.fn.stages[0];
  Schedule loops(a.fn, a.options);
  bind_points(loops, loops.loops(loops.buffer(stage)), decide_threads(a.plan, points(stage.axes)));
  Scheduled s = with_operands(a.fn, "per_result", "a thread per result, which reduces in the order of the definition");
  loops.hand_over(s);
  return s;
}

std::optional<Scheduled> cuda_scan(const CudaArgs& a) {
  if (a.fn.stages.empty() || a.fn.stages[0].scan < 0) return {};
  for (const Stage& s : a.fn.stages)
    if (s.scan != a.fn.stages[0].scan) return {};
  std::vector<Buffer> allocs;
  const Stmt nest = inside_allocs(lower_naive(a.fn), allocs);
  const For* steps = as<For>(nest);
  check(steps != nullptr, "a scan is a loop over its steps");
  const Seq* group = as<Seq>(steps->body);
  ScanParts parts{a.fn, {}};
  for (size_t k = 1; k < a.fn.stages[0].axes.size(); k++)
    if (is_pointwise(a.fn, k)) parts.shared.push_back(k);
  int64_t most = 1;
  bool scalar = true;  // a step is one point: no thread waits for another
  for (const Stage& s : a.fn.stages) {
    most = std::max(most, points(parts.rest(s)));
    scalar = scalar && parts.rest(s).empty();
  }
  const int64_t most_threads = std::min(kMaxBlockThreads, round_up(most, kWarp));
  const int64_t threads = scalar ? decide_threads(a.plan, points(parts.outer()))
                                 : a.plan.in_range(
                                       "threads", [&] { return most_threads; }, kWarp, most_threads, kWarp);
  const Var thread = make_var("thread"), block = make_var("block");
  Stmts step;
  for (size_t i = 0; i < a.fn.stages.size(); i++) {
    const Stage& s = a.fn.stages[i];
    const Stmt point = parts.point(s, group ? group->list.at(i) : steps->body);
    if (scalar) {
      step.push_back(point);
      continue;
    }
    step.push_back(points_by_thread(parts.rest(s), point, thread, threads));
    step.push_back(barrier(Scope::Global));
  }
  const Stmt body = loop(steps->var, steps->extent, seq(step), steps->kind, steps->begin);
  Scheduled s =
      with_operands(a.fn, "scan",
                    scalar ? "a thread per sequence, which goes through the steps"
                           : "a block per sequence, which goes through the steps; threads share a step's values");
  if (scalar) {
    s.body = with_allocs(thread_per_point(parts.outer(), body, threads), allocs);
    return s;
  }
  // One block per point of the axes that never conflict.
  Stmt launch = loop(thread, threads, body, ForKind::ThreadX);
  const std::vector<Axis> outer = parts.outer();
  const int64_t blocks = points(outer);
  if (blocks == 0) return s;
  launch = substitute(launch, point_at(outer, Expr(block)));
  s.body = with_allocs(loop(block, blocks, launch, ForKind::BlockX), allocs);
  return s;
}

void bind_independent(Schedule& s, const PlanEntry& plan, bool apart) {
  const Stmt plain = s.body();
  Launches(s, plan, apart).of(plain);
}

std::optional<Scheduled> cuda_nest(const CudaArgs& a) {
  Schedule loops(a.fn, a.options);
  bind_independent(loops, a.plan, false);
  Scheduled s = with_operands(a.fn, "nest", "independent turns of a loop in a thread each, the rest in one thread");
  loops.hand_over(s);
  return s;
}

}  // namespace tc
