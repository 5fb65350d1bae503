// Recognises windows that lie along the vectors, and finds what a row of positions holds.
#include <algorithm>

#include "ir/loop/build.h"
#include "ir/loop/op_rules.h"
#include "ir/loop/simplify.h"
#include "ir/loop/visit.h"
#include "templates/cpu/lanes.h"
#include "templates/cpu/window_rows.h"
#include "templates/match/axes.h"

namespace tc {
namespace {

constexpr int64_t kLongestRow = 1 << 20;  // positions
constexpr int64_t kWidestStride = 16;     // from there on a result's taps are rows of their own

// The stride of the results in the loads, and the taps that move along the same row.
bool find_steps(WindowRows& w) {
  w.stride = 0;
  for (const Load* l : loads_of(w.c.value)) {
    if (l->index.size() != 1) return false;
    const auto f = affine_in(l->index[0], {w.n.var});
    if (!f) return false;
    if (f->coefficients[0] == 0) continue;
    if (w.stride != 0) continue;  // the others are compared later
    w.stride = f->coefficients[0];
    for (const Axis& r : w.c.raxes) {
      const auto g = affine_in(l->index[0], {r.var});
      if (!g) return false;
      const int64_t step = g->coefficients[0];
      if (step < 1 || step >= w.stride * w.n.extent.value || (w.k.var && step >= w.dilation)) continue;
      w.k = r;
      w.dilation = step;
    }
  }
  for (const Axis& r : w.c.raxes)
    if (r.var != w.k.var) w.across.push_back(r);
  return w.stride >= 1;
}

// e as times * position + rest; null if the results and their taps move it in another way.
struct OfPosition {
  int64_t times = 0;
  Expr rest;
};
std::optional<OfPosition> of_position(const Expr& e, const WindowRows& w) {
  std::vector<Var> vars = {w.n.var};
  if (w.k.var) vars.push_back(w.k.var);
  const auto f = affine_in(e, vars);
  if (!f || f->coefficients[0] % w.stride != 0) return {};
  const int64_t times = f->coefficients[0] / w.stride;
  if (w.k.var && f->coefficients[1] != times * w.dilation) return {};
  return OfPosition{times, f->rest};
}

bool uses_row(const Expr& e, const WindowRows& w) { return uses_var(e, w.n.var) || (w.k.var && uses_var(e, w.k.var)); }

// A comparison that every tap has to meet: of positions, which narrows begin .. end, or of rows and taps across.
bool add_condition(WindowRows& w, const Expr& e) {
  const Apply* k = as<Apply>(e);
  if (!k) return false;
  if (k->op == Op::And) return add_condition(w, k->args[0]) && add_condition(w, k->args[1]);
  if (!uses_row(e, w)) return w.conditions.push_back(e), true;
  const bool less = k->op == Op::Lt || k->op == Op::Le, strict = k->op == Op::Lt || k->op == Op::Gt;
  if ((!less && k->op != Op::Gt && k->op != Op::Ge) || k->args[0]->dtype != DType::I64) return false;
  // d = large - small; d > 0 or d >= 0
  const auto d = of_position(k->args[less ? 1 : 0] - k->args[less ? 0 : 1], w);
  const auto rest = d ? as_const_int(simplify(d->rest)) : std::nullopt;
  if (!rest || (d->times != 1 && d->times != -1)) return false;
  const int64_t least = strict ? 1 : 0;
  if (d->times == 1)
    w.begin = std::max(w.begin, least - *rest);
  else
    w.end = std::min(w.end, *rest - least + 1);
  return true;
}

// What is joined, over positions; conditions aside.
bool find_value(WindowRows& w) {
  Expr e = w.c.value;
  w.end = w.length();
  if (const Select* s = as<Select>(e)) {
    const auto no = as_const_number(s->no), none = as_const_number(identity_of(w.c.combine, e->dtype));
    if (!no || !none || *no != *none || !add_condition(w, s->condition)) return false;
    e = s->yes;
  }
  bool ok = true;
  w.position = make_var("p");
  w.value = rewrite(e, [&](const Expr& x) -> Expr {
    const Load* l = as<Load>(x);
    if (!l || !uses_row(l->index[0], w)) return {};
    const auto at = of_position(l->index[0], w);
    ok = ok && at && at->times == 1;
    return ok ? load(l->buffer, {at->rest + Expr(w.position)}) : Expr();
  });
  return ok && !uses_row(w.value, w) && has_vector_form(w.value, w.position);
}

// Whether results are joined from a few neighbours each, one after the other, with nothing across: then rows of taps
// are the longer ones, or there is little to do.
bool is_short_row(const WindowRows& w) {
  const bool apart = w.stride >= w.taps() * w.dilation && w.across.empty();
  return apart && (w.stride > 4 || w.n.extent.value < kMaxLanes);
}

// Whether all taps of a result in vectors, as they lie, take no more steps than two passes: a step is a load and a
// join; a position is stored as well, and its loops begin and end.
bool direct_is_better(const WindowRows& w) {
  if (w.stride != 1 || !has_vector_form(w.c.value, w.n.var)) return false;
  const int64_t across = points(w.across);
  return across * w.taps() <= across + w.taps() + 3;
}

}  // namespace

std::optional<WindowRows> match_window_rows(const TemplateArgs& a) {
  if (!a.canonical || !a.canonical->value || a.canonical->raxes.empty()) return {};
  WindowRows w;
  w.c = *a.canonical;
  const Op op = w.c.combine;
  if (op != Op::Max && op != Op::Min && (op != Op::Add || a.options.strict_fp)) return {};
  if (w.c.value->dtype != DType::F32 || !has_lanes(w.c.out->dtype)) return {};
  const auto n = unit_axis(w.c);
  if (!n) return {};
  w.n = *n;
  merge_axes(w.c.raxes, {&w.c.value}, {});
  if (!find_steps(w) || w.stride > kWidestStride || w.length() > kLongestRow || (w.stride == 1 && !w.k.var)) return {};
  if (!find_value(w) || w.begin >= w.end || is_short_row(w) || direct_is_better(w)) return {};
  if (!has_vector_form(w.c.epilogue, w.n.var) || !has_vector_form(w.c.init, w.n.var)) return {};
  for (const Axis& x : w.c.axes)
    if (x.var != n->var) w.rows.push_back(x);
  std::vector<Expr*> values = {&w.value, &w.c.epilogue, &w.c.init};
  for (Expr& e : w.conditions) values.push_back(&e);
  merge_axes(w.rows, values, {&w.c.out_index});
  return w;
}

}  // namespace tc
