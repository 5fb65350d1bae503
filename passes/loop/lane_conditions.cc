// Conditions that compare the index of a loop over lanes with a count: they say where the lanes end, so that vectors need no
// mask for them.
//   vector j in 0 .. +n: if j < m: B           ->   vector j in 0 .. +min(n, m): B
//   vector j in 0 .. +n: y[j] = j < m ? a : b  ->   vector j in 0 .. +m: y[j] = a   vector j in m .. +(n - m): y[j] = b
// Where b is the same for all lanes, it comes first, and begins with the vector that a ends in: none is stored across two others.
#include "passes/loop/lane_conditions.h"

#include "ir/loop/build.h"
#include "ir/loop/conditions.h"
#include "ir/loop/linear.h"
#include "ir/loop/simplify.h"
#include "ir/loop/visit.h"

namespace tc {

namespace {

// Of counts, which are never NaN.
std::optional<Op> opposite(Op comparison) {
  switch (comparison) {
    case Op::Lt: return Op::Ge;
    case Op::Le: return Op::Gt;
    case Op::Gt: return Op::Le;
    case Op::Ge: return Op::Lt;
    default: return {};
  }
}

bool reads_any(const Expr& e, const Buffers& list) {
  bool found = false;
  walk(e, [&](const Expr& x) {
    const Load* l = as<Load>(x);
    found = found || (l && list.count(l->buffer.get()) != 0);
    return !found;
  });
  return found;
}

}  // namespace

std::optional<Expr> end_of(const Expr& condition, const Var& lane) {
  const Apply* k = as<Apply>(condition);
  if (!k || k->args.size() != 2 || k->args[0]->dtype != DType::I64 || k->args[0]->vector) return {};
  const bool less = k->op == Op::Lt || k->op == Op::Le, more = k->op == Op::Gt || k->op == Op::Ge;
  if (!less && !more) return {};
  const Expr &small = k->args[less ? 0 : 1], &large = k->args[less ? 1 : 0];
  const auto f = affine_in(small, {lane}), g = affine_in(large, {lane});
  if (!f || !g || f->coefficients[0] - g->coefficients[0] != 1) return {};
  const VarMap first = {{lane.get(), Expr(0)}};
  const Expr behind = substitute(large, first) - substitute(small, first);
  return simplify(k->op == Op::Lt || k->op == Op::Gt ? behind : behind + Expr(1));
}

std::optional<Expr> begin_of(const Expr& condition, const Var& lane) {
  const Apply* k = as<Apply>(condition);
  const std::optional<Op> otherwise = k ? opposite(k->op) : std::nullopt;
  return otherwise ? end_of(apply(*otherwise, k->args), lane) : std::nullopt;
}

std::optional<Stairs> stairs_of(const Expr& value, const Var& lane) {
  const Select* k = as<Select>(value);
  const Apply* c = k ? as<Apply>(k->condition) : nullptr;
  if (!c || c->args.size() != 2) return {};
  if (const std::optional<Expr> end = end_of(k->condition, lane)) return Stairs{*end, k->yes, k->no};
  const std::optional<Expr> end = begin_of(k->condition, lane);
  return end ? std::optional(Stairs{*end, k->no, k->yes}) : std::nullopt;
}

// `vector j: y[j] = j < n ? a : b` becomes a loop of a and one of b.
Stmt cut_at_stairs(const For& f, const Buffers& written) {
  const Store* k = as<Store>(f.body);
  const std::optional<Stairs> s = k && !k->count ? stairs_of(k->value, f.var) : std::nullopt;
  if (!s) return {};
  const Expr all = f.begin + f.extent, cut = simplify(min(max(s->end, f.begin), all));
  auto part = [&](const Expr& value, const Expr& begin, const Expr& end) {
    return loop(f.var, simplify(end - begin), store(k->buffer, k->index, value, k->reduce), ForKind::Vector, begin);
  };
  const Stmt before = part(s->before, f.begin, cut);
  const bool once = k->reduce || k->buffer->scope == Scope::Register || reads_any(s->before, written);
  if (once || uses_var(s->behind, f.var) || !is_const(f.begin, 0) || !as_const_int(f.extent))
    return seq({before, part(s->behind, cut, all)});
  return seq({part(s->behind, cut / lanes() * lanes(), all), before});
}

// `vector j: if j < n: B` ends at n.
Stmt end_at_condition(const For& f) {
  const If* k = as<If>(f.body);
  if (!k || k->otherwise) return {};
  Exprs all, around;
  conjuncts(k->condition, all);
  Expr extent = f.extent;
  for (const Expr& c : all) {
    const std::optional<Expr> end = end_of(c, f.var);
    if (!end && uses_var(c, f.var)) return {};
    if (end)
      extent = min(extent, *end - f.begin);
    else
      around.push_back(c);
  }
  extent = simplify(max(extent, Expr(0)));
  Stmt s = loop(f.var, extent, k->then, ForKind::Vector, f.begin);
  for (size_t i = around.size(); i-- > 0;) s = if_then(around[i], s);
  return s;
}

}  // namespace tc
