#include "passes/program/guarded_loops.h"

#include <algorithm>

#include "ir/loop/build.h"
#include "ir/loop/linear.h"
#include "ir/loop/visit.h"

namespace tc {

void GuardedLoops::enter(const For& loop) {
  const auto extent = as_const_int(loop.extent);
  if (extent && is_const(loop.begin, 0)) extents_[loop.var.get()] = *extent;
}

void GuardedLoops::leave(const For& loop) {
  extents_.erase(loop.var.get());
  counted_.erase(loop.var.get());
}

std::optional<int64_t> GuardedLoops::count(const Expr& condition) {
  const Apply* less = as<Apply>(condition);
  if (!less || less->op != Op::Lt) return std::nullopt;
  const auto end = as_const_int(less->args[1]);
  const Expr number = rewrite(less->args[0], [&](const Expr& e) {
    const VarRef* v = as<VarRef>(e);
    const auto value = v ? values_.find(v->var.get()) : values_.end();
    return value == values_.end() ? Expr() : value->second;
  });
  Linear form = linear_form(number);
  if (!end || form.constant != 0) return std::nullopt;
  std::sort(form.terms.begin(), form.terms.end(),
            [](const Linear::Term& a, const Linear::Term& b) { return a.coefficient < b.coefficient; });
  int64_t all = 1;
  std::set<const VarDef*> loops;
  for (const Linear::Term& t : form.terms) {
    const VarRef* v = as<VarRef>(t.atom);
    const auto extent = v ? extents_.find(v->var.get()) : extents_.end();
    if (extent == extents_.end() || t.coefficient != all || counted_.count(v->var.get()) != 0) return std::nullopt;
    all = checked_mul(all, extent->second);
    loops.insert(v->var.get());
  }
  counted_.insert(loops.begin(), loops.end());
  return std::clamp<int64_t>(*end, 0, all);
}

}  // namespace tc
