// The shape of loops: split, fuse, reorder, tile.
#include <algorithm>

#include "ir/loop/build.h"
#include "ir/loop/linear.h"
#include "ir/loop/simplify.h"
#include "ir/loop/visit.h"
#include "passes/schedule/step.h"
#include "support/text.h"

namespace tc {
namespace {

std::vector<StepOperand> operands(const std::vector<Var>& vars) {
  std::vector<StepOperand> list;
  for (const Var& v : vars) list.push_back({v});
  return list;
}

// The loops of a chain in another order, its conditions inside all of them.
Stmt rebuild(const std::vector<const For*>& loops, const Exprs& conditions, Stmt body) {
  for (size_t i = conditions.size(); i-- > 0;) body = if_then(conditions[i], body);
  for (size_t i = loops.size(); i-- > 0;) body = with_body(*loops[i], body);
  return body;
}

// The loops of a nest of which no two iterations touch the same memory, whatever the loops around them do.
std::vector<Var> independent_loops(const LoopSite& at) {
  const auto nest = std::find_if(at.path.begin(), at.path.end(), [](const Stmt& s) { return as<For>(s) != nullptr; });
  const Stmt& root = nest == at.path.end() ? at.stmt : *nest;
  std::vector<Var> list;
  for (const For* f : loops_in(root))
    if (conflicts(root, f->var, {}).empty()) list.push_back(f->var);
  return list;
}

}  // namespace

// A loop becomes two, one right inside the other: the outer one counts pieces of `factor` iterations.
//   for i in 0 .. +10: B(i)
//   for i_o in 0 .. +3: for i_i in 0 .. +4: if i_o * 4 + i_i < 10: B(i_o * 4 + i_i)          Tail::Guard
//   for i_o in 0 .. +3: for i_i in 0 .. +min(4, 10 - i_o * 4): B(i_o * 4 + i_i)              Tail::Min
// Refused: a factor below 1; a loop that runs in parallel, in vectors or on a GPU already; bounds that read memory.
std::pair<Var, Var> Schedule::split(const Var& v, int64_t factor, Tail tail) {
  Step step(*this, "split", {{v}, {factor}, {tail == Tail::Min ? "min" : "guard"}});
  const LoopSite at = step.find(v);
  const For& f = *at.loop;
  step.require_fixed_bounds(at);
  step.require_argument(1, factor >= 1, "the factor is below 1", at.stmt);
  step.require(f.kind == ForKind::Serial || f.kind == ForKind::Unroll,
               "loop " + v->name + " is " + std::string(kind_name(f.kind)) + " already", at.stmt);
  const Var outer = make_var(v->name + "_o"), inner = make_var(v->name + "_i");
  const Expr pieces = simplify(floor_div(f.extent + Expr(factor - 1), Expr(factor)), at.ranges);
  const auto extent = as_const_int(f.extent);
  const bool divides = factor == 1 || (extent && *extent % factor == 0);
  Ranges ranges = at.ranges;
  ranges[outer.get()] = loop_range(For{outer, 0, pieces, ForKind::Serial, {}}, at.ranges);
  ranges[inner.get()] = {0, factor - 1};
  const Expr start = Expr(outer) * Expr(factor), offset = start + Expr(inner);
  Stmt body = substitute(f.body, {{v.get(), simplify(f.begin + offset, ranges)}});
  step.require(bool(body), "the loop computes nothing", at.stmt);
  const Expr guard = simplify(offset < f.extent, ranges);
  if (!divides && tail == Tail::Guard && !is_const(guard, 0))
    body = if_then(guard, body);  // false: no iteration at all
  Expr inner_extent = factor;
  if (!divides && tail == Tail::Min) inner_extent = simplify(min(Expr(factor), f.extent - start), ranges);
  body = loop(outer, pieces, loop(inner, inner_extent, body, f.kind), f.kind);
  // Of numbers that may lie behind the end of their digit less can be proved than before: what is known now stays known.
  std::vector<Var> independent;
  if (!divides) independent = independent_loops(at);
  if (std::find(independent.begin(), independent.end(), v) != independent.end())
    independent.insert(independent.end(), {outer, inner});
  step.done(replace_stmt(body_, at.stmt.get(), body), {{outer}, {inner}});
  independent_.insert(independent_.end(), independent.begin(), independent.end());
  return {outer, inner};
}

// Two loops, one right inside the other, become one.
//   for i in 0 .. +4: for j in 0 .. +6: B(i, j)   ->   for i_j in 0 .. +24: B(i_j / 6, i_j % 6)
// Refused: loops that are not right inside each other; an inner loop whose bounds depend on the outer one; loops of
// different kinds; bounds that read memory.
Var Schedule::fuse(const Var& outer, const Var& inner) {
  Step step(*this, "fuse", {{outer}, {inner}});
  const LoopSite at = step.find(outer);
  const For& f = *at.loop;
  const For* g = as<For>(f.body);
  step.require(g && g->var == inner, "loop " + inner->name + " is not the only statement of loop " + outer->name,
               at.stmt);
  step.require_fixed_bounds(at);
  step.require_fixed_bounds(step.find(inner));
  step.require(!uses_var(g->begin, outer) && !uses_var(g->extent, outer),
               "the bounds of loop " + inner->name + " depend on " + outer->name, at.stmt);
  step.require(f.kind == g->kind && !is_gpu(f.kind) && f.kind != ForKind::Vector,
               "the loops are " + std::string(kind_name(f.kind)) + " and " + std::string(kind_name(g->kind)), at.stmt);
  const auto n = as_const_int(f.extent), m = as_const_int(g->extent);
  int64_t all = 0;
  step.require(!n || !m || !__builtin_mul_overflow(*n, *m, &all), "the fused loop has too many iterations", at.stmt);
  const Var v = make_var(outer->name + "_" + inner->name);
  const Expr count = simplify(f.extent * g->extent, at.ranges);
  Ranges ranges = at.ranges;
  ranges[v.get()] = loop_range(For{v, 0, count, f.kind, {}}, at.ranges);
  const Expr width = m && *m < 1 ? Expr(1) : g->extent;  // no iteration at all: any divisor will do
  const Expr i = simplify(f.begin + floor_div(Expr(v), width), ranges);
  const Expr j = simplify(g->begin + floor_mod(Expr(v), width), ranges);
  const Stmt body = substitute(g->body, {{outer.get(), i}, {inner.get(), j}});
  step.require(bool(body), "the loops compute nothing", at.stmt);
  step.done(replace_stmt(body_, at.stmt.get(), loop(v, count, body, f.kind)), {{v}});
  return v;
}

// All of them, outermost first; one loop stays as it is.
Var Schedule::fuse(const std::vector<Var>& loops) {
  if (loops.empty()) Step(*this, "fuse", {}).refuse("no loops are given", body_);
  Var v = loops[0];
  for (size_t i = 1; i < loops.size(); i++) v = fuse(v, loops[i]);
  return v;
}

// Loops right inside each other change places: those named stand in the order given at the positions that they have
// together, others stay. Conditions between them move inside the innermost one.
//   for i: for j: B   ->   for j: for i: B
// Refused: loops that are not right inside each other; bounds that depend on a loop that would come to stand inside;
// loops that are parallel, in
// vectors or of a GPU; two loops that change places although both carry dependences (sums of floats in another order
// are accepted unless strict_fp).
void Schedule::reorder(const std::vector<Var>& order) {
  Step step(*this, "reorder", operands(order));
  step.require(!order.empty(), "no loops are given", body_);
  auto named = [&](const Var& v) { return std::find(order.begin(), order.end(), v) != order.end(); };
  for (size_t i = 0; i < order.size(); i++)
    step.require(std::find(order.begin() + std::ptrdiff_t(i) + 1, order.end(), order[i]) == order.end(),
                 "loop " + order[i]->name + " is given twice", body_);
  // The outermost and the innermost one that are named.
  LoopSite top = step.find(order[0]), bottom = top;
  for (const Var& v : order) {
    LoopSite at = step.find(v);
    if (at.path.size() < top.path.size()) top = at;
    if (at.path.size() > bottom.path.size()) bottom = at;
  }
  const auto chain = chain_of(top.stmt, bottom.loop->var);
  step.require(chain.has_value(), "the loops are not right inside each other", top.stmt);
  size_t found = 0;
  for (const For* f : chain->loops) found += named(f->var);
  step.require(found == order.size(), "the loops are not right inside each other", top.stmt);

  for (const For* f : chain->loops)
    step.require(f->kind == ForKind::Serial || f->kind == ForKind::Unroll,
                 "loop " + f->var->name + " is " + std::string(kind_name(f->kind)), top.stmt);
  std::vector<const For*> loops;
  size_t next = 0;
  for (const For* f : chain->loops) {
    const Var& v = named(f->var) ? order[next++] : f->var;
    loops.push_back(*std::find_if(chain->loops.begin(), chain->loops.end(), [&](const For* g) { return g->var == v; }));
  }
  for (size_t i = 0; i < loops.size(); i++) {
    std::vector<Var> inside;
    for (size_t j = i; j < loops.size(); j++) inside.push_back(loops[j]->var);
    step.require(!uses_any(loops[i]->begin, inside) && !uses_any(loops[i]->extent, inside),
                 "the bounds of loop " + loops[i]->var->name + " depend on a loop that would stand inside it",
                 top.stmt);
  }
  for (const Expr& c : chain->conditions)
    step.require(reads_nothing(c), "a condition between the loops reads memory", top.stmt);

  // A loop of independent iterations may stand anywhere; the others keep their order.
  std::vector<std::pair<const For*, Conflict>> carries;
  for (const For* f : chain->loops) {
    if (std::find(independent_.begin(), independent_.end(), f->var) != independent_.end()) continue;
    for (const Conflict& c : conflicts(top.stmt, f->var, top.ranges))
      if (!may_reorder(c, step.strict_fp())) carries.push_back({f, c});
  }
  auto position = [&](const For* f) { return std::find(loops.begin(), loops.end(), f); };
  for (const auto& [f, why] : carries)
    for (const auto& [g, other] : carries) {
      const bool before = std::find(chain->loops.begin(), chain->loops.end(), f) <
                          std::find(chain->loops.begin(), chain->loops.end(), g);
      step.require(!before || position(f) < position(g),
                   "loops " + f->var->name + " and " + g->var->name + " both carry dependences: " + f->var->name + " " +
                       why.text + "; " + g->var->name + " " + other.text,
                   top.stmt);
    }
  step.done(replace_stmt(body_, top.stmt.get(), rebuild(loops, chain->conditions, chain->body)));
}

Var Schedule::rename(const Var& v, const std::string& name) {
  Step step(*this, "rename", {{v}});
  const LoopSite at = step.find(v);
  const For& f = *at.loop;
  const Var w = make_var(name);
  const Stmt body = substitute(f.body, {{v.get(), Expr(w)}});
  step.done(replace_stmt(body_, at.stmt.get(), loop(w, f.extent, body, f.kind, f.begin)), {{w}});
  return w;
}

std::vector<Var> Schedule::tile(const Var& a, const Var& b, int64_t factor_a, int64_t factor_b, Tail tail) {
  Step step(*this, "tile", {{a}, {b}, {factor_a}, {factor_b}, {tail == Tail::Min ? "min" : "guard"}});
  step.require_argument(2, factor_a >= 1, "the first factor is below 1", step.find(a).stmt);
  step.require_argument(3, factor_b >= 1, "the second factor is below 1", step.find(b).stmt);
  Schedule s = *this;  // all of it or nothing
  const auto [ao, ai] = s.split(a, factor_a, tail);
  const auto [bo, bi] = s.split(b, factor_b, tail);
  s.reorder({ao, bo, ai, bi});
  step.done(s.body(), operands({ao, bo, ai, bi}));
  return {ao, bo, ai, bi};
}

}  // namespace tc
