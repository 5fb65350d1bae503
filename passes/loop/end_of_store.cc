#include "passes/loop/end_of_store.h"

#include <algorithm>
#include <numeric>

#include "ir/loop/build.h"

namespace tc {
namespace {

/// The n of floor_div(v, n).
std::optional<int64_t> divided(const Expr& e, const Var& v) {
  const Apply* a = as<Apply>(e);
  if (!a || a->op != Op::FloorDiv) return std::nullopt;
  const VarRef* r = as<VarRef>(a->args[0]);
  const auto n = as_const_int(a->args[1]);
  return r && r->var == v && n && *n > 0 ? n : std::nullopt;
}

/// Rounded up. What divides does so without a division.
Expr ceil_div(Linear l, int64_t n) {
  int64_t common = n;  // of n and all coefficients
  for (const Linear::Term& t : l.terms) common = std::gcd(common, t.coefficient);
  for (Linear::Term& t : l.terms) t.coefficient /= common;
  l.constant = -floor_div_int(-l.constant, common);
  n /= common;
  if (n == 1) return to_expr(l);
  Linear up = l;
  up.constant += n - 1;
  const bool may_be_negative = l.terms.size() > 1 || up.constant < 0;
  const Expr e = to_expr(up);
  return floor_div(may_be_negative ? max(e, Expr(0)) : e, Expr(n));
}

/// How a store moves from one iteration to the next.
struct StoreStep {
  int64_t by = 0;     // units of the axis
  int64_t group = 1;  // so many iterations are one step
  bool vectors = false;
  bool is_of(const Linear::Term& t, const Var& v) {
    const VarRef* r = as<VarRef>(t.atom);
    const auto n = divided(t.atom, v);
    if (vector_number(t.atom) == v.get())
      vectors = true;
    else if (n)
      group = *n;
    else if (!r || r->var != v)
      return false;
    return true;
  }
};

/// Does the term lead from within one element of the axis to within another, in steps that may end inside of one?
bool crosses_elements(const Linear::Term& t, int64_t unit, const Ranges& ranges) {
  const Range r = interval(t.atom, ranges);
  return t.coefficient > 0 && unit % t.coefficient != 0 && t.coefficient % unit != 0 &&
         r.max > (unit - 1) / t.coefficient;
}

}  // namespace

std::optional<Expr> end_of_store(const For& f, const Expr& number, const LiveCoordinate& c, const LiveStores& stores,
                                 const std::function<bool(const Expr&)>& stands, bool& exact) {
  StoreStep step;
  Linear others;
  for (const Linear::Term& t : c.at.terms) {
    if (!step.is_of(t, f.var))
      others.add(t.atom, t.coefficient);
    else if (step.by != 0)
      return std::nullopt;
    else
      step.by = t.coefficient;
  }
  const std::optional<int64_t> elements = elements_of_vectors(f.extent);
  if (step.by <= 0 || step.vectors != elements.has_value()) return std::nullopt;
  // Within one element of the axis there is nothing behind the last.
  const auto extent = elements ? elements : as_const_int(f.extent);
  const bool crosses = std::any_of(others.terms.begin(), others.terms.end(), [&](const Linear::Term& t) {
    return stands(t.atom) && crosses_elements(t, c.unit, stores.ranges);
  });
  if (extent && !crosses && checked_mul(step.by, *extent / step.group) <= c.unit) return std::nullopt;
  const bool whole = step.by % c.unit == 0;  // elements of the axis
  Linear needed, inside;                     // unit * n - what stands still in the loop
  needed.add(number, c.unit);
  for (const Linear::Term& t : others.terms) {
    if (stands(t.atom) && (!whole || t.coefficient % c.unit == 0))
      needed.add(t.atom, -t.coefficient);
    else
      inside.add(t.atom, t.coefficient);
  }
  const int64_t rest = stores.least(inside);
  if (rest == INT64_MIN) return std::nullopt;
  needed.constant -= c.at.constant + rest;
  exact = exact && step.by == c.unit && step.group == 1 && !step.vectors;
  const Expr groups = ceil_div(needed, step.by);
  return step.group == 1 ? groups : groups * Expr(step.group);
}

}  // namespace tc
