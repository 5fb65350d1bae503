#include "passes/graph/cut_reduction.h"

#include <algorithm>

#include "ir/axis_ranges.h"
#include "ir/loop/build.h"
#include "ir/loop/conditions.h"
#include "ir/loop/linear.h"
#include "ir/loop/op_rules.h"
#include "ir/loop/simplify.h"
#include "ir/loop/visit.h"
#include "ir/open_size.h"

namespace tc {
namespace {

/// The tests that all hold where select(test && test, select(test, x, identity), identity) reads x.
Exprs tests_of(Expr value, const Expr& identity) {
  Exprs tests;
  for (const Select* s = as<Select>(value); s && structurally_equal(s->no, identity); s = as<Select>(value)) {
    conjuncts(s->condition, tests);
    value = s->yes;
  }
  return tests;
}

/// Narrows `r`, the values of `k`, to those for which form <= most for some value of everything else.
void keep_at_most(const Linear& form, int64_t most, const Var& k, const Ranges& ranges, Range& r) {
  Linear rest;
  rest.constant = form.constant;
  int64_t step = 0;
  for (const Linear::Term& t : form.terms)
    if (const VarRef* v = as<VarRef>(t.atom); v && v->var == k)
      step = t.coefficient;
    else
      rest.add(t.atom, t.coefficient);
  const Range least = interval(rest, ranges);
  // A size without a bound has a stand-in's value here.
  if (step == 0 || step == INT64_MIN || !bounded(least) || is_open(least.max) || is_open(-least.min)) return;
  const int64_t room = most - least.min;  // step * k <= room
  if (step > 0)
    r.max = std::min(r.max, floor_div_int(room, step));
  else
    r.min = std::max(r.min, -floor_div_int(room, -step));
}

void narrow(const Expr& test, const Var& k, const Ranges& ranges, Range& r) {
  const Apply* a = as<Apply>(test);
  if (!a || a->op < Op::Lt || a->op > Op::Ge || a->args[0]->dtype != DType::I64) return;
  Linear form = linear_form(a->args[0]), negative;
  form.add(linear_form(a->args[1]), -1);
  negative.add(form, -1);
  const bool less = a->op == Op::Lt || a->op == Op::Le, equal = a->op == Op::Le || a->op == Op::Ge;
  keep_at_most(less ? form : negative, equal ? 0 : -1, k, ranges, r);
}

void cut_axis(Stage& s, Axis& k, const Expr& identity) {
  if (!k.extent.is_const() || is_open(k.extent.value) || k.extent.value < 2) return;
  Ranges ranges = ranges_of(s);
  Range inside = ranges[k.var.get()];
  for (const Expr& test : tests_of(s.values[0], identity)) narrow(test, k.var, ranges, inside);
  if (inside.min > inside.max) inside = {0, 0};  // no result has a term: what is left is the identity
  const int64_t count = inside.max - inside.min + 1;
  if (count == k.extent.value) return;
  k.extent = count;
  ranges[k.var.get()] = {0, count - 1};
  s.values[0] = simplify(substitute(s.values[0], {{k.var.get(), Expr(k.var) + Expr(inside.min)}}), ranges);
}

}  // namespace

Expr identity_at_start(const Stage& s) {
  if (s.kind != Stage::Kind::Reduce || s.scan >= 0 || !s.combiner.op) return {};
  const Expr identity = identity_of(*s.combiner.op, s.outputs[0]->dtype);
  return bool(identity) && structurally_equal(s.init[0], identity) ? identity : Expr();
}

void cut_reduction(Stage& s) {
  const Expr identity = identity_at_start(s);
  if (!identity) return;
  for (Axis& k : s.raxes) cut_axis(s, k, identity);
}

}  // namespace tc
