// Indices of canonical forms: sums of axes times constants, and axes that are merged. Declared in canonical.h.
#include <algorithm>
#include <set>

#include "ir/loop/build.h"
#include "ir/loop/visit.h"
#include "templates/canonical.h"

namespace tc {

int64_t Offset::of(const Var& v) const {
  const auto it = coefficient.find(v.get());
  return it == coefficient.end() ? 0 : it->second;
}

std::vector<const Load*> loads_of(const Expr& e, const Buffer& except) {
  std::vector<const Load*> list;
  std::vector<Expr> found;  // the same: text that was read has an expression for each
  std::set<const ExprNode*> seen;
  if (e)
    walk(e, [&](const Expr& x) {
      if (!seen.insert(x.get()).second) return false;
      const Load* l = as<Load>(x);
      if (!l || l->buffer == except) return true;
      const auto is_equal = [&](const Expr& other) { return structurally_equal(other, x); };
      if (std::any_of(found.begin(), found.end(), is_equal)) return false;
      found.push_back(x);
      list.push_back(l);
      return true;
    });
  return list;
}

Expr with_reduced(const Expr& e, const Buffer& reduced, const Expr& value) {
  return rewrite(e, [&](const Expr& x) -> Expr {
    const Load* l = as<Load>(x);
    return l && l->buffer == reduced ? value : Expr();
  });
}

bool uses_as_value(const Expr& e, const Var& v) {
  bool used = false;
  std::set<const ExprNode*> seen;
  walk(e, [&](const Expr& x) {
    if (used || as<Load>(x) || !seen.insert(x.get()).second) return false;
    const VarRef* r = as<VarRef>(x);
    used = used || (r && r->var == v);
    return true;
  });
  return used;
}

std::optional<Offset> offset_of(const Expr& index, const std::vector<Var>& vars) {
  const auto a = affine_in(index, vars);
  const auto rest = a ? as_const_int(a->rest) : std::nullopt;
  if (!rest) return {};
  Offset o{*rest, {}};
  for (size_t i = 0; i < vars.size(); i++)
    if (a->coefficients[i] != 0) o.coefficient[vars[i].get()] = a->coefficients[i];
  return o;
}

bool begins_on(const Offset& o, const Var& inner, int64_t n) {
  return o.of(inner) == 1 && o.constant % n == 0 &&
         std::all_of(o.coefficient.begin(), o.coefficient.end(),
                     [&](const auto& c) { return c.first == inner.get() || c.second % n == 0; });
}

Expr offset_expr(const Offset& o, const std::vector<std::pair<Var, Expr>>& at) {
  std::vector<std::pair<int64_t, Expr>> terms;
  for (const auto& [v, e] : at)
    if (o.of(v) != 0) terms.push_back({o.of(v), e});
  std::stable_sort(terms.begin(), terms.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  Expr sum = 0;
  for (const auto& [c, e] : terms) sum = sum + e * Expr(c);
  return sum + Expr(o.constant);
}

void merge_axes(std::vector<Axis>& axes, std::vector<Expr*> values, std::vector<Expr*> indices,
                const std::vector<Var>& apart) {
  auto mergeable = [](const Expr& index, const Axis& a, const Axis& b) {
    const auto f = affine_in(index, {a.var, b.var});
    return f && f->coefficients[0] == f->coefficients[1] * b.extent.value;
  };
  for (size_t i = axes.size(); i-- > 1;) {
    const Axis a = axes[i - 1], b = axes[i];
    bool ok = std::find(apart.begin(), apart.end(), b.var) == apart.end();
    for (const Expr* e : values) {
      ok = ok && !uses_as_value(*e, a.var) && !uses_as_value(*e, b.var);
      for (const Load* l : loads_of(*e))
        for (const Expr& index : l->index) ok = ok && mergeable(index, a, b);
    }
    for (const Expr* e : indices) ok = ok && mergeable(*e, a, b);
    if (!ok) continue;
    const Axis m{make_var(a.var->name + b.var->name), Dim(a.extent.value * b.extent.value)};
    auto merged = [&](const Expr& index) {
      const auto f = affine_in(index, {a.var, b.var});
      return f->coefficients[1] == 0 ? f->rest : f->rest + Expr(m.var) * Expr(f->coefficients[1]);
    };
    for (Expr* e : values)
      *e = rewrite(*e, [&](const Expr& x) -> Expr {
        const Load* l = as<Load>(x);
        return l && l->index.size() == 1 ? load(l->buffer, {merged(l->index[0])}) : Expr();
      });
    for (Expr* e : indices) *e = merged(*e);
    axes[i - 1] = m;
    axes.erase(axes.begin() + std::ptrdiff_t(i));
  }
}

}  // namespace tc
