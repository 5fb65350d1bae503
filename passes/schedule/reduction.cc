// Reductions: rfactor and decompose_reduction.
#include <algorithm>

#include "ir/loop/build.h"
#include "ir/loop/linear.h"
#include "ir/loop/op_rules.h"
#include "ir/loop/visit.h"
#include "passes/analysis/region.h"
#include "passes/schedule/step.h"
#include "support/text.h"

namespace tc {
namespace {

bool index_uses(const Store& k, const Var& v) {
  return std::any_of(k.index.begin(), k.index.end(), [&](const Expr& i) { return uses_var(i, v); });
}

// The outermost loop around `site`, right above it but for conditions, over which the store's index does not run.
Stmt reduction_nest(const LoopSite& site, const Store& k) {
  Stmt top = site.stmt;
  for (size_t i = site.path.size(); i-- > 0;) {
    const Stmt& s = site.path[i];
    const If* c = as<If>(s);
    if (c && !c->otherwise && reads_nothing(c->condition)) continue;
    const For* f = as<For>(s);
    if (!f || index_uses(k, f->var) || f->kind != ForKind::Serial) break;
    top = s;
  }
  return top;
}

/// Accumulators that get an element for every iteration of the loops around them: acc[...] -> acc[i, j, ..., ...].
class WideAccumulators {
 public:
  WideAccumulators(const std::vector<Buffer>& accs, const std::vector<const For*>& loops, const Shape& extents,
                   Scope scope)
      : loops_(loops) {
    for (const Buffer& a : accs) {
      Shape shape = extents;
      shape.insert(shape.end(), a->shape.begin(), a->shape.end());
      order_.push_back(wide_[a.get()] = make_buffer(a->name, a->dtype, shape, scope));
    }
  }
  Stmt widen(const Stmt& s) const {
    auto on_expr = [&](const Expr& e) -> Expr {
      const Load* l = as<Load>(e);
      const auto it = l ? wide_.find(l->buffer.get()) : wide_.end();
      return it == wide_.end() ? Expr() : load(it->second, index(l->index));
    };
    auto on_stmt = [&](const Stmt& x) -> Stmt {
      const Store* k = as<Store>(x);
      const auto it = k ? wide_.find(k->buffer.get()) : wide_.end();
      return it == wide_.end() ? Stmt() : store(it->second, index(k->index), k->value, k->reduce, k->count);
    };
    return rewrite(s, on_expr, on_stmt);
  }
  Stmt allocate(Stmt body) const {
    for (size_t i = order_.size(); i-- > 0;) body = alloc(order_[i], body);
    return body;
  }

 private:
  Exprs index(const Exprs& old) const {
    Exprs all;
    for (const For* f : loops_) all.push_back(Expr(f->var));
    all.insert(all.end(), old.begin(), old.end());
    return all;
  }
  std::vector<const For*> loops_;
  std::map<const BufferDef*, Buffer> wide_;  // looked up only
  std::vector<Buffer> order_;
};

// Accumulators of a loop whose extent is no constant.
constexpr int64_t kMaxTile = 1 << 20;

// What is known of the variables of a chain and around it.
Ranges ranges_at(const LoopSite& site, const Chain& chain) {
  Ranges ranges = site.ranges;
  for (const For* f : chain.loops) ranges[f->var.get()] = loop_range(*f, ranges);
  return ranges;
}

}  // namespace

// A reduction keeps a partial result per iteration of a loop, which are joined at the end; the loop carries nothing any
// more. Returns the buffer of partial results.
//   for k_o: for k_i in 0 .. +4: acc += x[k_o * 4 + k_i]
//   alloc part[4]; for p: part[p] = 0; for k_o: for k_i: part[k_i] += x[k_o * 4 + k_i]; for p: acc += part[p]
// Refused: anything but one joining store inside the loops of the reduction; an operation that is not associative; sums
// and products of floats under strict_fp; an extent that is no constant.
Buffer Schedule::rfactor(const Var& v, Scope scope) {
  Step step(*this, "rfactor", {{v}, {scope_name(scope)}});
  const LoopSite site = step.find(v);
  step.require_scope(site, scope);
  const auto extent = as_const_int(site.loop->extent);
  step.require(extent && *extent >= 1 && is_const(site.loop->begin, 0), "the bounds of the loop are no constants",
               site.stmt);
  step.require(site.loop->kind == ForKind::Serial, "loop " + v->name + " is " + std::string(kind_name(site.loop->kind)),
               site.stmt);
  Stmt at = site.stmt;
  while (as<For>(at) || (as<If>(at) && !as<If>(at)->otherwise)) at = as<For>(at) ? as<For>(at)->body : as<If>(at)->then;
  const Store* k = as<Store>(at);
  step.require(k && k->reduce, "the loop is not the loop of one joining store", site.stmt);
  step.require(!k->value->vector && !k->count, "the store is one of vectors", site.stmt);
  step.require(!index_uses(*k, v), "\"" + k->buffer->name + "\" has a cell for every iteration already", site.stmt);
  step.require(!uses_buffer(k->value, k->buffer), "the value depends on the result", site.stmt);
  const Expr identity = identity_of(*k->reduce, k->buffer->dtype);
  step.require(bool(identity), "the operation is not known to be associative", site.stmt);
  step.require(may_reorder({k->buffer, k->reduce, ""}, step.strict_fp()),
               "strict floating point keeps the order of the sum", site.stmt);
  const Stmt top = reduction_nest(site, *k);
  walk(top, [&](const Stmt& s) {
    const If* c = as<If>(s);
    const For* f = as<For>(s);
    step.require(!c || reads_nothing(c->condition), "a condition reads memory", top);
    step.require(!f || (reads_nothing(f->begin) && reads_nothing(f->extent)), "the bounds of a loop read memory", top);
    step.require(!f || f->kind == ForKind::Serial || f->kind == ForKind::Unroll,
                 f ? "loop " + f->var->name + " is " + std::string(kind_name(f->kind)) : "", top);
    return true;
  });
  for (const For* f : loops_in(top))
    step.require(!index_uses(*k, f->var), "loop " + f->var->name + " is no loop of the reduction", top);
  // Partial results are joined even if no iteration runs.
  const Ranges around = find_loop(body_, as<For>(top)->var)->ranges;
  for (size_t d = 0; d < k->index.size(); d++) {
    const Range at = interval(k->index[d], around);
    step.require(at.min >= 0 && at.max < k->buffer->shape[d].value,
                 "the cell may lie outside of \"" + k->buffer->name + "\"", top);
  }
  const Buffer part = make_buffer(k->buffer->name + "_part", k->buffer->dtype, {Dim(*extent)}, scope);
  const Var first = make_var("p"), last = make_var("p");
  const Stmt start = loop(first, *extent, store(part, {first}, identity));
  const Stmt sums = replace_stmt(top, at.get(), store(part, {v}, k->value, k->reduce));
  const Stmt join = loop(last, *extent, store(k->buffer, k->index, load(part, {last}), k->reduce));
  step.done(replace_stmt(body_, top.get(), alloc(part, seq({start, sums, join}))), {{part}});
  return part;
}

// The start of the accumulators, the reduction and the stores of results become nests of their own, from loop `v` on;
// accumulators get an element per iteration. Loops of the reduction then stand right inside the others and can be
// reordered.
//   for i: { alloc acc; acc = 0; for k: acc += x[i, k]; y[i] = acc }
//   alloc acc[i]; for i: acc[i] = 0; for i: for k: acc[i] += x[i, k]; for i: y[i] = acc[i]
// The loops of the nest with the reduction keep their variables.
// Refused: loops that are not right inside each other down to the accumulators; iterations that depend on each other;
// bounds that do not begin at 0, extents of which no largest is known.
std::vector<Var> Schedule::decompose_reduction(const Var& v, Scope scope) {
  Step step(*this, "decompose_reduction", {{v}, {scope_name(scope)}});
  const LoopSite site = step.find(v);
  step.require_scope(site, scope);
  const auto chain = chain_of(site.stmt, nullptr);
  Stmt body = chain->body;
  std::vector<Buffer> accs;
  Exprs conditions = chain->conditions;
  while (true) {
    if (const Alloc* a = as<Alloc>(body)) {
      accs.push_back(a->buffer), body = a->body;
    } else if (const If* k = as<If>(body); k && !k->otherwise && accs.empty()) {
      conditions.push_back(k->condition), body = k->then;
    } else {
      break;
    }
  }
  const Seq* list = as<Seq>(body);
  step.require(!accs.empty() && list, "the loops do not lead to accumulators", site.stmt);
  for (const For* f : loops_in(body))
    step.require(!is_gpu(f->kind) && f->kind != ForKind::Parallel,
                 "loop " + f->var->name + " is " + std::string(kind_name(f->kind)), site.stmt);
  Shape extents;
  for (const For* f : chain->loops) {
    step.require(f->kind == ForKind::Serial, "loop " + f->var->name + " is " + std::string(kind_name(f->kind)),
                 site.stmt);
    const auto n = as_const_int(f->extent);
    const int64_t most = n ? *n : interval(f->extent, ranges_at(site, *chain)).max;
    step.require(most <= kMaxTile && is_const(f->begin, 0), "the bounds of loop " + f->var->name + " are no constants",
                 site.stmt);
    extents.push_back(Dim(std::max<int64_t>(most, 0)));
    const auto found = conflicts(site.stmt, f->var, site.ranges);
    step.require(
        found.empty(),
        found.empty() ? "" : "iterations of loop " + f->var->name + " depend on each other: it " + found[0].text,
        site.stmt);
  }
  for (const Expr& c : conditions)
    step.require(reads_nothing(c), "a condition between the loops reads memory", site.stmt);

  const WideAccumulators wide(accs, chain->loops, extents, scope);
  Stmts nests;
  std::vector<Var> made;
  bool kept = false;
  for (const Stmt& s : list->list) {
    Stmt nest = wide.widen(s);
    for (size_t i = conditions.size(); i-- > 0;) nest = if_then(conditions[i], nest);
    for (size_t i = chain->loops.size(); i-- > 0;) nest = with_body(*chain->loops[i], nest);
    const bool keep = !kept && !loops_in(s).empty();
    kept = kept || keep;
    nests.push_back(keep ? nest : fresh_copy(nest));
    made.push_back(as<For>(nests.back())->var);
  }
  Stmt all = seq(nests);
  std::vector<StepOperand> results;
  for (const Var& w : made) results.push_back({w});
  step.done(replace_stmt(body_, site.stmt.get(), wide.allocate(all)), std::move(results));
  return made;
}

}  // namespace tc
