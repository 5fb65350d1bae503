#include "templates/match/prefix.h"

#include <algorithm>

#include "ir/loop/build.h"
#include "ir/loop/linear.h"
#include "ir/loop/op_rules.h"
#include "ir/loop/simplify.h"
#include "ir/loop/visit.h"
#include "templates/match/axes.h"

namespace tc {
namespace {

// Is it out[i - 1, the same indices]?
bool is_before(const Expr& e, const Stage& s) {
  const Load* l = as<Load>(e);
  if (!l || l->buffer != s.outputs[0]) return false;
  for (size_t k = 0; k < s.axes.size(); k++) {
    const Linear index = linear_form(l->index[k] - Expr(s.axes[k].var));
    if (!index.is_constant() || index.constant != (k == 0 ? -1 : 0)) return false;
  }
  return true;
}

/// The place of the axis in the result: `var`, or as far from its end.
struct Place {
  Var var;
  bool backwards = false;
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

}  // namespace

std::optional<Prefix> match_prefix(const Stage& s) {
  if (s.scan < 0 || s.kind != Stage::Kind::Compute || s.outputs.size() != 1 || s.axes.empty()) return {};
  const Select* choice = as<Select>(s.values[0]);
  const Apply* begins = choice ? as<Apply>(choice->condition) : nullptr;
  const VarRef* step = begins && begins->op == Op::Eq ? as<VarRef>(begins->args[0]) : nullptr;
  const Apply* join = choice ? as<Apply>(choice->no) : nullptr;
  if (!step || step->var != s.axes[0].var || !is_const(begins->args[1], 0) || !join || join->args.size() != 2)
    return {};
  const Buffer& out = s.outputs[0];
  if (!identity_of(join->op, out->dtype) || !is_before(join->args[0], s)) return {};
  if (uses_buffer(choice->yes, out) || uses_buffer(join->args[1], out)) return {};
  return Prefix{join->op, choice->yes, join->args[1]};
}

std::optional<PrefixRows> match_prefix_rows(const TensorFn& fn, bool merges) {
  const std::vector<Stage>& stages = fn.stages;
  const auto prefix = stages.empty() || stages.size() > 2 ? std::nullopt : match_prefix(stages[0]);
  if (!prefix || fn.outputs.size() != 1 || fn.outputs[0] != stages.back().outputs[0]) return {};
  const Stage &scan = stages[0], &last = stages.back();
  PrefixRows p;
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
  TensorFn joined{fn.inputs, {last}, fn.outputs};
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
  if (merges)
    for (auto* axes : {&p.outer, &p.inner}) merge_axes(*axes, {&p.first, &p.next}, {&p.out_index});
  return p;
}

}  // namespace tc
