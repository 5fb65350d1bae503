// Sums along one axis in which every result is the one before it joined with a value: CumSum, CumProd.
//
//   for rows, 4 at a time:                            the axis lies innermost: one row's sums wait for each other,
//     sum[r] = first[r], y[r, 0] = sum[r]             those of several do not
//     for i in 1 .. n:
//       sum[r] = sum[r] + next[r, i], y[r, i] = sum[r]
//
//   for outer axes:                                   others lie inside: vectors along the last of them
//     y[0, v] = first[v]
//     for i in 1 .. n:
//       y[i, v] = y[i - 1, v] + next[i, v]
//
// The definition has the axis in front and moves it to its place afterwards; here results are written where they belong. Each
// sum is taken in the definition's order.
#include <algorithm>

#include "ir/loop/build.h"
#include "ir/loop/simplify.h"
#include "ir/loop/visit.h"
#include "support/text.h"
#include "templates/cpu/template.h"
#include "templates/match/axes.h"
#include "templates/match/prefix.h"

namespace tc {
namespace {

constexpr int64_t kRows = 4, kShortestVector = 8;

/// The place of the axis in the result: `var`, or as far from its end.
struct Place {
  Var var;
  bool backwards = false;
};

struct PrefixSums {
  Canonical c;  // of what joins; axes without that of the steps
  Op op = Op::Add;
  Expr first, next, out_index;  // over the axes and `step`
  Var step;
  int64_t steps = 0;
  std::vector<Axis> outer, inner;
  Buffer sum;   // rank 0
  Expr stored;  // what is stored of it
};

// Where each axis of the scan lies in the stage that moves them; false if it does more than that.
bool follow_axes(const Stage& scan, const Stage& moved, const Load& l, Place& place, VarMap& to) {
  int64_t covered = 1;
  for (size_t d = 0; d < l.index.size(); d++) {
    const int64_t n = scan.axes[d].extent.value;
    if (d > 0 && n == 1) {
      to[scan.axes[d].var.get()] = Expr(0);
      continue;
    }
    const auto is_axis = [&](const Axis& a) { return a.extent.value == n && uses_var(l.index[d], a.var); };
    const auto axis = std::find_if(moved.axes.begin(), moved.axes.end(), is_axis);
    const auto f = axis == moved.axes.end() ? std::nullopt : affine_in(l.index[d], {axis->var});
    const auto rest = f ? as_const_int(f->rest) : std::nullopt;
    const bool forwards = rest == 0 && f->coefficients[0] == 1;
    if (!forwards && !(d == 0 && rest == n - 1 && f->coefficients[0] == -1)) return false;
    if (std::any_of(to.begin(), to.end(), [&](const auto& t) { return uses_var(t.second, axis->var); })) return false;
    to[scan.axes[d].var.get()] = l.index[d];
    if (d == 0) place = {axis->var, !forwards};
    covered *= n;
  }
  return covered == points(moved.axes);
}

std::optional<PrefixSums> match(const TemplateArgs& a) {
  const std::vector<Stage>& stages = a.fn.stages;
  const auto prefix = stages.empty() || stages.size() > 2 ? std::nullopt : match_prefix(stages[0]);
  if (!prefix || a.fn.outputs.size() != 1 || a.fn.outputs[0] != stages.back().outputs[0]) return {};
  const Stage &scan = stages[0], &last = stages.back();
  PrefixSums p;
  p.op = prefix->op;
  p.steps = scan.axes[0].extent.value;
  p.sum = make_buffer("sum", scan.outputs[0]->dtype, {}, Scope::Register);
  p.stored = load(p.sum, {});
  Place place{scan.axes[0].var};
  VarMap to;
  if (stages.size() == 2) {
    const auto reads = loads_of(last.values[0]);
    if (last.kind != Stage::Kind::Compute || last.scan >= 0 || reads.size() != 1) return {};
    if (reads[0]->buffer != scan.outputs[0] || !follow_axes(scan, last, *reads[0], place, to)) return {};
    p.stored = with_reduced(last.values[0], scan.outputs[0], p.stored);
  }
  TensorFn joined{a.fn.inputs, {last}, a.fn.outputs};
  Stage& terms = joined.stages[0];
  terms.scan = -1;
  terms.values = {substitute(select(eq(Expr(scan.axes[0].var), 0), prefix->first, prefix->next), to)};
  const auto c = p.steps > 1 ? canonicalize(joined) : std::nullopt;
  const Select* k = c && !c->border ? as<Select>(c->epilogue) : nullptr;
  if (!k) return {};
  p.c = *c;
  p.step = make_var(place.var->name);
  const Expr at = place.backwards ? Expr(p.steps - 1) - Expr(p.step) : Expr(p.step);
  const VarMap walked{{place.var.get(), at}};
  p.first = substitute(k->yes, walked), p.next = substitute(k->no, walked),
  p.out_index = substitute(c->out_index, walked);
  bool behind = false;
  for (const Axis& x : c->axes) {
    (behind ? p.inner : p.outer).push_back(x);
    if (x.var == place.var) (behind ? p.inner : p.outer).pop_back(), behind = true;
  }
  if (!behind || uses_any(p.stored, c->axes)) return {};
  if (a.options.open_axes.empty())
    for (auto* axes : {&p.outer, &p.inner}) merge_axes(*axes, {&p.first, &p.next}, {&p.out_index});
  return p;
}

class Builder {
 public:
  explicit Builder(const PrefixSums& p) : p_(p) {}

  // The loops around `body`, of which threads share the outermost.
  static Stmt around(const std::vector<Axis>& axes, Stmt body, bool parallel) {
    for (size_t d = axes.size(); d-- > 0;)
      body = loop(axes[d].var, axes[d].extent, body, d == 0 && parallel ? ForKind::Parallel : ForKind::Serial);
    return body;
  }

  Stmt vectors(const std::vector<Axis>& axes, const Axis& lane, bool parallel) const {
    auto row = [&](const Expr& value, const Expr& step) {
      return loop(lane.var, lane.extent, store(p_.c.out, {at(p_.out_index, step)}, value), ForKind::Vector);
    };
    const Var step = make_var(p_.step->name);
    const Expr before = load(p_.c.out, {at(p_.out_index, Expr(step) - Expr(1))});
    const Stmt next = row(apply(p_.op, {before, at(p_.next, step)}), step);
    return around(axes, seq({row(at(p_.first, 0), 0), from_second(step, next)}), parallel);
  }

  // So many sequences along `tile` at a time.
  Stmt registers(const std::vector<Axis>& axes, const Axis& tile, int64_t height, bool parallel) const {
    const int64_t whole = tile.extent.value / height, rest = tile.extent.value % height;
    const Var o = make_var(tile.var->name + "_o");
    const ForKind kind = parallel && axes.empty() ? ForKind::Parallel : ForKind::Serial;
    const Stmt full =
        whole == 1 ? sums(tile.var, height, 0) : loop(o, whole, sums(tile.var, height, Expr(o) * Expr(height)), kind);
    const Stmt last = rest > 0 ? sums(tile.var, rest, Expr(whole * height)) : Stmt();
    return around(axes, seq({full, last}), parallel);
  }

  // The sums of sequences base .. base + height - 1 along `tile`; of the only one where there is no such axis.
  Stmt sums(const Var& tile, int64_t height, const Expr& base) const {
    const Buffer sum = make_buffer("sum", p_.sum->dtype, height == 1 ? Shape{} : Shape{Dim(height)}, Scope::Register);
    auto each = [&](const Expr& value, const Expr& step, std::optional<Op> join) {
      const Var r = make_var("r");
      const Exprs mine = height == 1 ? Exprs{} : Exprs{Expr(r)};
      const Expr sequence = height == 1 ? base : base + Expr(r);
      auto here = [&](const Expr& e) {
        const Expr point = tile ? substitute(e, {{tile.get(), sequence}}) : e;
        return at(point, step);
      };
      const Expr stored = with_reduced(p_.stored, p_.sum, load(sum, mine));
      const Stmt s = seq({store(sum, mine, here(value), join), store(p_.c.out, {here(p_.out_index)}, stored)});
      return height == 1 ? s : loop(r, height, s, ForKind::Unroll);
    };
    const Var step = make_var(p_.step->name);
    return alloc(sum, seq({each(p_.first, 0, {}), from_second(step, each(p_.next, step, p_.op))}));
  }

 private:
  Expr at(const Expr& e, const Expr& step) const { return simplify(substitute(e, {{p_.step.get(), step}})); }
  Stmt from_second(const Var& step, const Stmt& body) const {
    return loop(step, p_.steps - 1, body, ForKind::Serial, 1);
  }

  const PrefixSums& p_;
};

}  // namespace

std::optional<Scheduled> schedule_prefix_sums(const TemplateArgs& a) {
  const auto p = match(a);
  if (!p) return {};
  std::vector<Axis> axes = p->outer;
  axes.insert(axes.end(), p->inner.begin(), p->inner.end());
  const int64_t sequences = points(axes);
  const bool lanes = !p->inner.empty() && axes.back().extent.value >= kShortestVector;
  if (lanes && !as<Load>(p->stored)) return {};  // the results are no sums
  const bool pays = sequences * p->steps >= kParallelThreshold;
  Scheduled s;
  const Builder loops(*p);
  const Axis innermost = axes.empty() ? Axis{nullptr, Dim(1)} : axes.back();
  if (!axes.empty()) axes.pop_back();
  const int64_t n = innermost.extent.value, height = p->inner.empty() ? std::min(kRows, n) : n;
  const int64_t outermost = !axes.empty() ? axes[0].extent.value : lanes ? 1 : n / height;
  const bool parallel = a.plan.flag("parallel", pays, outermost > 1, "there is nothing to share");
  s.body = lanes           ? loops.vectors(axes, innermost, parallel)
           : innermost.var ? loops.registers(axes, innermost, height, parallel)
                           : loops.sums(nullptr, 1, 0);
  s.description = lanes ? "vectors across the sums"
                        : to_text(height) + (height == 1 ? " sum" : " sums at a time") + " in registers";
  bind_operands(s, p->c);
  s.family = "prefix_sums";
  return s;
}

}  // namespace tc
