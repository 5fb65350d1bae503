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

constexpr size_t kLongName = 64;

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

// Loops that may become one.
std::vector<const For*> fusible(const StepCheck& step, const LoopSite& at, const std::vector<Var>& loops) {
  step.require_fixed_bounds(at);
  std::vector<const For*> nest = {at.loop};
  int64_t all = as_const_int(at.loop->extent).value_or(1);
  for (size_t i = 1; i < loops.size(); i++) {
    const For &f = *nest.back(), *g = as<For>(f.body);
    step.require(g && g->var == loops[i],
                 "loop " + loops[i]->name + " is not the only statement of loop " + f.var->name, at.stmt);
    step.require_fixed_bounds(step.find(g->var));
    for (const For* outer : nest)
      step.require(!uses_var(g->begin, outer->var) && !uses_var(g->extent, outer->var),
                   "the bounds of loop " + g->var->name + " depend on " + outer->var->name, at.stmt);
    step.require(f.kind == g->kind && !is_gpu(f.kind) && f.kind != ForKind::Vector,
                 "the loops are " + std::string(kind_name(f.kind)) + " and " + std::string(kind_name(g->kind)),
                 at.stmt);
    const bool fits = !__builtin_mul_overflow(all, as_const_int(g->extent).value_or(1), &all);
    step.require(fits, "the fused loop has too many iterations", at.stmt);
    nest.push_back(g);
  }
  step.require(bool(nest.back()->body), "the loops compute nothing", at.stmt);
  return nest;
}

std::vector<StepOperand> with_let(std::vector<StepOperand> args, const Naming& names) {
  if (names.let) args.push_back({"let"});
  return args;
}

std::string made(const Naming& names, size_t i, const std::string& otherwise) {
  return i < names.made.size() ? names.made[i] : otherwise;
}

// The body of loops that are no more, with the values that their variables had.
Stmt replaced(const std::vector<std::pair<Var, Expr>>& values, Stmt body, bool let_them) {
  VarMap formulas;
  for (const auto& [v, value] : values)
    if (!let_them || as_const_int(value)) formulas[v.get()] = value;
  if (!formulas.empty()) body = substitute(body, formulas);
  for (size_t i = values.size(); i-- > 0;)
    if (formulas.count(values[i].first.get()) == 0) body = let(values[i].first, values[i].second, body);
  return body;
}

}  // namespace

// A loop becomes two, one right inside the other: the outer one counts pieces of `factor` iterations.
//   for i in 0 .. +10: B(i)
//   for i_o in 0 .. +3: for i_i in 0 .. +4: if i_o * 4 + i_i < 10: B(i_o * 4 + i_i)          Tail::Guard
//   for i_o in 0 .. +3: for i_i in 0 .. +min(4, 10 - i_o * 4): B(i_o * 4 + i_i)              Tail::Min
//   for i_o in 0 .. +3: for i_i in 0 .. +4: let i = i_o * 4 + i_i: if i < 10: B(i)           Tail::Guard, let
// Refused: a factor below 1; a loop that runs in parallel, in vectors or on a GPU already; bounds that read memory.
std::pair<Var, Var> Schedule::split(const Var& v, int64_t factor, Tail tail, const Naming& names) {
  StepCheck step(*this, "split", with_let({{v}, {factor}, {tail == Tail::Min ? "min" : "guard"}}, names));
  const LoopSite at = step.find(v);
  const For& f = *at.loop;
  step.require_fixed_bounds(at);
  step.require_argument(1, factor >= 1, "the factor is below 1", at.stmt);
  step.require(f.kind == ForKind::Serial || f.kind == ForKind::Unroll,
               "loop " + v->name + " is " + std::string(kind_name(f.kind)) + " already", at.stmt);
  step.require(bool(f.body), "the loop computes nothing", at.stmt);
  const Var outer = make_var(made(names, 0, v->name + "_o")), inner = make_var(made(names, 1, v->name + "_i"));
  const Expr pieces = simplify(floor_div(f.extent + Expr(factor - 1), Expr(factor)), at.ranges);
  const auto extent = as_const_int(f.extent);
  const bool divides = factor == 1 || (extent && *extent % factor == 0);
  Ranges ranges = at.ranges;
  ranges[outer.get()] = loop_range(For{outer, 0, pieces, ForKind::Serial, {}}, at.ranges);
  ranges[inner.get()] = {0, factor - 1};
  const Expr start = Expr(outer) * Expr(factor), offset = start + Expr(inner);
  Stmt body = f.body;
  const Expr guard = simplify(offset < f.extent, ranges);
  const bool guarded = !divides && tail == Tail::Guard && !is_const(guard, 0);  // false: no iteration at all
  if (guarded) body = if_then(names.let && !is_const(guard, 1) ? Expr(v) < simplify(f.begin + f.extent) : guard, body);
  body = replaced({{v, simplify(f.begin + offset, ranges)}}, body, names.let);
  Expr inner_extent = factor;
  if (!divides && tail == Tail::Min) inner_extent = simplify(min(Expr(factor), f.extent - start), ranges);
  body = loop(outer, pieces, loop(inner, inner_extent, body, f.kind), f.kind);
  // Of numbers that may lie behind the end of their digit less can be proved than before: what is known now stays known.
  std::vector<Var> independent;
  if (!divides && !step.is_independent(v)) independent = independent_loops(at);
  if (step.is_independent(v) || std::find(independent.begin(), independent.end(), v) != independent.end())
    independent.insert(independent.end(), {outer, inner});
  step.done(replace_stmt(body_, at.stmt.get(), body), {{outer}, {inner}});
  independent_.insert(independent_.end(), independent.begin(), independent.end());
  return {outer, inner};
}

// Loops, each right inside the one before, become one.
//   for i in 0 .. +4: for j in 0 .. +6: B(i, j)   ->   for i_j in 0 .. +24: B(i_j / 6, i_j % 6)
//                                                      for i_j in 0 .. +24: let i = i_j / 6: let j = i_j % 6: B(i, j)    let
// Refused: loops that are not right inside each other; an inner loop whose bounds depend on the outer one; loops of
// different kinds; bounds that read memory.
Var Schedule::fuse(const std::vector<Var>& loops, const Naming& names) {
  StepCheck step(*this, "fuse", with_let(operands(loops), names));
  step.require(!loops.empty(), "no loops are given", body_);
  if (loops.size() == 1) return names.made.empty() ? loops[0] : rename(loops[0], names.made[0]);
  const LoopSite at = step.find(loops[0]);
  const std::vector<const For*> nest = fusible(step, at, loops);
  std::string name;
  Expr count = 1;
  bool independent = true;
  for (const For* f : nest) {
    name += (name.empty() ? "" : "_") + f->var->name;
    count = simplify(count * f->extent, at.ranges);
    independent = independent && step.is_independent(f->var);
  }
  if (name.size() > kLongName) name = "fused";  // of loops that were cut and joined many times
  const Var v = make_var(made(names, 0, name));
  Ranges ranges = at.ranges;
  ranges[v.get()] = loop_range(For{v, 0, count, nest[0]->kind, {}}, at.ranges);
  std::vector<std::pair<Var, Expr>> values(nest.size());
  Expr rest(v);
  for (size_t i = nest.size(); i-- > 0;) {
    const For& f = *nest[i];
    const auto n = as_const_int(f.extent);
    const Expr width = n && *n < 1 ? Expr(1) : f.extent;  // no iteration at all: any divisor will do
    values[i] = {f.var, simplify(f.begin + (i > 0 ? floor_mod(rest, width) : rest), ranges)};
    if (i > 0) rest = simplify(floor_div(rest, width), ranges);
  }
  // Indices of loops that were one before are so again, instead of twice as long for each time.
  const Stmt body = rewrite(replaced(values, nest.back()->body, names.let), [&](const Expr& e) -> Expr {
    return e->dtype == DType::I64 && as<Apply>(e) && uses_var(e, v) ? simplify(e, ranges) : Expr();
  });
  step.done(replace_stmt(body_, at.stmt.get(), loop(v, count, body, nest[0]->kind)), {{v}});
  if (independent) independent_.push_back(v);
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
  StepCheck step(*this, "reorder", operands(order));
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
    if (step.is_independent(f->var)) continue;
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
  StepCheck step(*this, "rename", {{v}});
  const LoopSite at = step.find(v);
  const For& f = *at.loop;
  const Var w = make_var(name);
  const Stmt body = substitute(f.body, {{v.get(), Expr(w)}});
  const bool independent = step.is_independent(v);
  step.done(replace_stmt(body_, at.stmt.get(), loop(w, f.extent, body, f.kind, f.begin)), {{w}});
  if (independent) independent_.push_back(w);
  return w;
}

std::vector<Var> Schedule::tile(const Var& a, const Var& b, int64_t factor_a, int64_t factor_b, Tail tail) {
  StepCheck step(*this, "tile", {{a}, {b}, {factor_a}, {factor_b}, {tail == Tail::Min ? "min" : "guard"}});
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
