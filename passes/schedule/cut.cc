// Extents: partition cuts a loop, pad lengthens it.
#include <algorithm>

#include "ir/loop/build.h"
#include "ir/loop/op_rules.h"
#include "ir/loop/visit.h"
#include "passes/analysis/region.h"
#include "passes/schedule/step.h"
#include "support/text.h"

namespace tc {
namespace {

// What changes no bit when it is joined; null: there is none.
Expr exact_identity(Op op, DType t) {
  return op == Op::Add && is_float(t) ? make_float(t, -0.0) : identity_of(op, t);  // -0.0 + 0.0 is 0.0
}

}  // namespace

// The loop becomes a row of loops, each over a part of its iterations; conditions that a part decides vanish.
//   for i in 0 .. +10: if i < 8: B else: C   ->   for i in 0 .. +8: B; for i in 8 .. +2: C
// Refused: bounds that are no constants; cuts that do not ascend inside the loop's range; a loop that runs in parallel,
// in vectors or on a GPU.
std::vector<Var> Schedule::partition(const Var& v, const std::vector<int64_t>& at) {
  std::vector<StepOperand> arguments = {{v}};
  for (const int64_t c : at) arguments.push_back({c});
  StepCheck step(*this, "partition", arguments);
  const LoopSite site = step.find(v);
  const For& f = *site.loop;
  const auto begin = as_const_int(f.begin), extent = as_const_int(f.extent);
  step.require(begin && extent, "the bounds of the loop are no constants", site.stmt);
  step.require(f.kind == ForKind::Serial || f.kind == ForKind::Unroll,
               "loop " + v->name + " is " + std::string(kind_name(f.kind)), site.stmt);
  int64_t from = *begin;
  Stmts parts;
  std::vector<Var> vars;
  std::vector<StepOperand> results;
  for (size_t i = 0; i <= at.size(); i++) {
    const int64_t to = i < at.size() ? at[i] : *begin + *extent;
    step.require_argument(
        std::min(i + 1, at.size()), to > from && to <= *begin + *extent,
        "the cuts do not ascend strictly inside " + to_text(*begin) + " .. " + to_text(*begin + *extent), site.stmt);
    const Var w = i == 0 ? v : make_var(v->name);
    const Stmt body = i == 0 ? f.body : substitute(fresh_copy(f.body), {{v.get(), Expr(w)}});
    parts.push_back(tidy(with_body(For{w, from, to - from, f.kind, {}}, body), site.ranges));
    vars.push_back(w), results.push_back({w});
    from = to;
  }
  step.done(replace_stmt(body_, site.stmt.get(), seq(parts)), results);
  return vars;
}

// The extent grows to the next multiple.
//   for k in 0 .. +10: acc += x[k]   ->   for k in 0 .. +12: if k < 10: acc += x[k]                PadWith::Guard
//                                    ->   for k in 0 .. +12: acc += select(k < 10, x[k], -0)       PadWith::Identity
// Refused: an extent that is no constant; a loop that runs in parallel, in vectors or on a GPU; for Identity a body
// that is no single joining store, perhaps in loops.
void Schedule::pad(const Var& v, int64_t multiple, PadWith with) {
  StepCheck step(*this, "pad", {{v}, {multiple}, {with == PadWith::Guard ? "guard" : "identity"}});
  const LoopSite site = step.find(v);
  const For& f = *site.loop;
  const auto extent = as_const_int(f.extent);
  step.require_fixed_bounds(site);
  step.require_argument(1, multiple >= 1, "the multiple is below 1", site.stmt);
  step.require(extent.has_value(), "the extent is no constant", site.stmt);
  step.require(f.kind == ForKind::Serial || f.kind == ForKind::Unroll,
               "loop " + v->name + " is " + std::string(kind_name(f.kind)), site.stmt);
  const int64_t padded = (*extent + multiple - 1) / multiple * multiple;
  const Expr in = Expr(v) < f.begin + f.extent;
  Stmt body = f.body;
  if (padded != *extent && with == PadWith::Guard) body = if_then(in, body);
  if (padded != *extent && with == PadWith::Identity) {
    Stmt at = body;
    while (as<For>(at)) at = as<For>(at)->body;
    const Store* k = as<Store>(at);
    step.require(k && k->reduce && !k->count && !k->value->vector, "the body is no single joining store", site.stmt);
    const Expr identity = exact_identity(*k->reduce, k->buffer->dtype);
    step.require(bool(identity), "the operation has no identity", site.stmt);
    for (const For* l : loops_in(body))
      step.require(!uses_var(l->begin, v) && !uses_var(l->extent, v),
                   "the bounds of loop " + l->var->name + " depend on " + v->name, site.stmt);
    for (const Expr& i : k->index) step.require(!uses_var(i, v), "the store's index depends on " + v->name, site.stmt);
    body = replace_stmt(body, at.get(), store(k->buffer, k->index, select(in, k->value, identity), k->reduce));
  }
  step.done(replace_stmt(body_, site.stmt.get(), loop(v, padded, body, f.kind, f.begin)));
}

}  // namespace tc
