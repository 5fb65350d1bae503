// Points spread over a grid: one thread a point, in memory's order, so that neighbouring threads touch neighbouring
// elements.
#include <algorithm>

#include "ir/loop/build.h"
#include "ir/loop/conditions.h"
#include "ir/loop/visit.h"
#include "support/text.h"
#include "templates/cuda/template.h"
#include "templates/sketch.h"

namespace tc {
namespace {

// `body` at point `i` of the row-major order of `axes`.
Stmt at_point(const std::vector<Axis>& axes, const Stmt& body, const Expr& i) {
  const VarMap at = point_at(axes, i);
  VarMap single;
  for (const Axis& a : axes)
    if (a.extent.value == 1) single[a.var.get()] = 0;
  Stmt s = single.empty() ? body : substitute(body, single);
  for (size_t k = axes.size(); k-- > 0;)
    if (axes[k].extent.value != 1) s = let(axes[k].var, at.at(axes[k].var.get()), s);
  return s;
}

}  // namespace

std::optional<std::array<ForKind, 3>> grid_kinds(int64_t first, int64_t second, int64_t third) {
  std::array<ForKind, 3> kinds = {ForKind::BlockX, ForKind::BlockY, ForKind::BlockZ};
  const bool long_second = second > kMaxGridYz, long_third = third > kMaxGridYz;
  if (!long_second && !long_third) return kinds;
  if ((long_second && long_third) || first > kMaxGridYz) return std::nullopt;
  std::swap(kinds[0], kinds[long_second ? 1 : 2]);
  return kinds;
}

int64_t decide_threads(const PlanEntry& plan, int64_t points, const std::string& name) {
  const int64_t most = std::min(kMaxBlockThreads, round_up(points, kWarp));
  if (points < 2)
    return plan.number(
        name, [] { return 1; }, KnobValues::only(1, "there is one point"));
  return plan.in_range(
      name, [&] { return std::min(kBlockThreads, most); }, kWarp, most, kWarp);
}

Stmt reduce_at_point(const Canonical& c, const std::string& name) {
  const Buffer acc = make_buffer(name, c.reduced->dtype, {}, Scope::Register);
  Stmt reduce = store(acc, {}, c.value, c.combine);
  for (size_t i = c.raxes.size(); i-- > 0;) reduce = loop(c.raxes[i].var, c.raxes[i].extent, reduce);
  const Expr result = substitute_buffers(c.epilogue, {{c.reduced.get(), acc}});
  return alloc(acc, seq({store(acc, {}, c.init), reduce, store(c.out, {c.out_index}, result)}));
}

Schedule point_loops(const std::vector<Axis>& axes, const Stmt& body, const ScheduleOptions& options) {
  Stmt nest = body;
  for (size_t k = axes.size(); k-- > 0;) nest = loop(axes[k].var, axes[k].extent, nest);
  return Schedule(nest, options, vars_of(axes));
}

void bind_points(Schedule& s, const std::vector<Var>& loops, int64_t threads, bool apart) {
  int64_t n = 1;
  for (const Var& v : loops) n *= *as_const_int(s.loop_of(v).extent);
  if (n < 2) return;  // in a single thread
  const auto name = [&](const std::string& wanted) { return apart ? unused_name(s, wanted) : wanted; };
  const Var i = s.fuse(loops, {{name("i")}, true});
  const auto [block, thread] =
      s.split(i, std::min(threads, round_up(n, kWarp)), Tail::Guard, {{name("block"), name("thread")}, true});
  s.bind(block, ForKind::BlockX);
  s.bind(thread, ForKind::ThreadX);
}

Stmt thread_per_point(const std::vector<Axis>& axes, const Stmt& body, int64_t threads) {
  if (points(axes) == 0) return {};
  Schedule s = point_loops(axes, body);
  bind_points(s, vars_of(axes), threads);
  return s.body();
}

Stmt points_by_thread(const std::vector<Axis>& axes, const Stmt& body, const Var& thread, int64_t threads) {
  const int64_t n = points(axes);
  if (n == 0) return {};
  const Var iteration = make_var("turn"), i = make_var("i");
  Stmt s = at_point(axes, body, Expr(i));
  if (n % threads != 0) s = if_then(Expr(i) < Expr(n), s);
  const int64_t iterations = ceil_div(n, threads);
  return loop(iteration, iterations, let(i, Expr(iteration) * Expr(threads) + Expr(thread), s));
}

Stmt pieces_by_thread(int64_t count, const Var& thread, int64_t threads, ForKind kind,
                      const std::function<Stmt(const Expr& iteration, const Expr& piece)>& body) {
  if (count <= threads) {
    const Stmt one = body(0, Expr(thread));
    return count < threads ? if_then(Expr(thread) < Expr(count), one) : one;
  }
  const Var i = make_var("i"), e = make_var("e");
  Stmt one = body(i, e);
  if (count % threads != 0) one = if_then(Expr(e) < Expr(count), one);
  return loop(i, ceil_div(count, threads), let(e, Expr(i) * Expr(threads) + Expr(thread), one), kind);
}

Stmt if_some(const Expr& condition, const Stmt& s) { return condition ? if_then(condition, s) : s; }

Buffer in_scope(const Buffer& b, Scope scope) {
  auto copy = std::make_shared<BufferDef>(*b);
  copy->scope = scope;
  return copy;
}

std::string name_of_reduction(Op op) {
  return op == Op::Add ? "sum" : op == Op::Mul ? "product" : op == Op::Max ? "max" : op == Op::Min ? "min" : "acc";
}

Stmt border_launch(const Canonical& c) {
  if (!c.border) return {};
  const Border& b = *c.border;
  std::vector<Axis> axes;
  Expr inside, index = 0;
  for (size_t d = 0; d < b.dims.size(); d++) {
    const Var v = make_var("d" + to_text(int64_t(d)));
    axes.push_back({v, Dim(b.dims[d])});
    index = index * Expr(b.dims[d]) + Expr(v);
    const int64_t end = b.begin[d] + b.interior[d];
    if (b.begin[d] > 0) inside = both(inside, Expr(v) >= Expr(b.begin[d]));
    if (end < b.dims[d]) inside = both(inside, Expr(v) < Expr(end));
  }
  if (!inside) return {};
  const Stmt fill = if_then(logical_not(inside), store(c.out, {index}, b.value));
  return comment("the border", thread_per_point(axes, fill));
}

Scheduled with_operands(const TensorFn& fn, std::string family, std::string description) {
  Scheduled s;
  s.inputs = fn.inputs;
  for (size_t i = 0; i < s.inputs.size(); i++) s.input_index.push_back(int(i));
  s.outputs = fn.outputs;
  s.family = std::move(family);
  s.description = std::move(description);
  return s;
}

}  // namespace tc
