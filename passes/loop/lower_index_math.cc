// lower_index_math: floor_div(i, 4) with i >= 0 is i / 4, floor_mod(i, 4) is i % 4: what C says natively. What may be
// negative stays, and is printed as a call of support text.
#include "passes/loop/lower_index_math.h"

#include "ir/loop/build.h"
#include "ir/loop/simplify.h"
#include "ir/loop/visit.h"

namespace tc {
namespace {

// Of loop variables and of named indexes; of one that is bound several times all that it can be.
Ranges index_ranges(const Stmt& s) {
  Ranges ranges;
  const auto add = [&ranges](const Var& v, const Range& r) {
    const auto [known, is_new] = ranges.try_emplace(v.get(), r);
    if (!is_new) known->second = {std::min(known->second.min, r.min), std::max(known->second.max, r.max)};
  };
  walk(s, [&](const Stmt& x) {
    if (const Let* l = as<Let>(x); l && l->value->dtype == DType::I64 && !l->value->vector)
      if (const auto r = range_of(l->value, ranges)) add(l->var, *r);
    const For* f = as<For>(x);
    if (!f) return true;
    const auto begin = range_of(f->begin, ranges), extent = range_of(f->extent, ranges);
    if (begin && extent)
      add(f->var, {begin->min, begin->max + std::max<int64_t>(extent->max, 1) - 1});
    else if (begin)
      add(f->var, {begin->min, int64_t(1) << 40});  // an extent in vectors: unknown, not negative
    return true;
  });
  return ranges;
}

}  // namespace

Stmt lower_index_math(const Stmt& s) {
  const Ranges ranges = index_ranges(s);
  return rewrite(s, [&](const Expr& e) -> Expr {
    const Apply* k = as<Apply>(e);
    if (!k || (k->op != Op::FloorDiv && k->op != Op::FloorMod) || e->dtype != DType::I64) return {};
    const auto divisor = as_const_int(k->args[1]);
    const auto r = range_of(k->args[0], ranges);
    if (!divisor || *divisor <= 0 || !r || r->min < 0) return {};
    return apply(k->op == Op::FloorDiv ? Op::Div : Op::Mod, k->args);
  });
}

}  // namespace tc
