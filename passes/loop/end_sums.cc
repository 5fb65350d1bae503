// end_sums: a sum along an axis of which a run may have the first elements only adds zeros from there on, and asks at every element. It
// ends there instead:
//
//   for r in 128:                                           n = min(max(count[0], 0), 128)
//     acc[v] += select(r < count[0], x[r, v], 0)     ->     for r in n:
//                                                             acc[v] += x[r, v]
//
// So does a loop all of which a condition guards, also inside of other loops. Where threads share a sum that has no upper bound, each ends behind the last
// element, too, and asks:
//
//                                                           n = min(max(count[0], 0), 94466211840)
//   for i in 369008640:                                     for i in (n + 255) / 256:
//     sum += select(i * 256 + thread < count[0], ..)  ->      sum += select(i * 256 + thread < count[0], ..)
//
// Preconditions: every store in the loop is a reduction that has its identity under the same condition, on the loop's variable alone
// (times a number, and more, where it asks); what the variable is compared with is the same in all iterations.
#include "passes/loop/end_sums.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <optional>
#include <vector>

#include "ir/loop/build.h"
#include "ir/loop/linear.h"
#include "ir/loop/op_rules.h"
#include "ir/loop/visit.h"
#include "ir/open_size.h"

namespace tc {
namespace {

/// Where a sum ends: it adds nothing unless step * (the loop's variable) + rest < end.
struct End {
  Expr condition, end;
  int64_t step = 1;
  Expr rest = {};  // null: none
};
/// What a condition says of the loop's variable, if it is such a one. The names inside of the loop stand for their values.
using Compared = std::function<std::optional<End>(const Expr& condition, const VarMap& lets)>;

Expr without_lanes(const Expr& e) {
  const Broadcast* b = as<Broadcast>(e);
  return b ? b->value : e;
}

/// The number that the condition compares the variable with; null: it does something else.
Expr end_by(const Expr& condition, const Var& v) {
  const Apply* less = as<Apply>(without_lanes(condition));
  const VarRef* compared = less && less->op == Op::Lt ? as<VarRef>(less->args[0]) : nullptr;
  return compared && compared->var == v ? less->args[1] : Expr();
}

/// `value` where the condition holds, or where it does not.
Expr where(const Expr& value, const Expr& condition, bool holds) {
  return rewrite(value, [&](const Expr& e) -> Expr {
    const Select* k = as<Select>(e);
    if (!k || !structurally_equal(k->condition, condition)) return {};
    return where(holds ? k->yes : k->no, condition, holds);
  });
}

/// What it is, of numbers alone.
std::optional<double> number(const Expr& e) {
  if (const auto n = as_const_number(without_lanes(e))) return n;
  if (const Select* k = as<Select>(e)) {
    const auto yes = number(k->yes), no = number(k->no);
    return yes && no && *yes == *no ? yes : std::nullopt;
  }
  const Apply* a = as<Apply>(e);
  std::vector<double> of;
  for (size_t k = 0; a && k < a->args.size(); k++) {
    const auto n = number(a->args[k]);
    if (!n) return std::nullopt;
    of.push_back(*n);
  }
  if (a && a->op == Op::Abs) return std::abs(of[0]);
  if (a && a->op == Op::Mul) return of[0] * of[1];
  return std::nullopt;
}

// The condition may stand inside of what is added: |x| and x * x are nothing, where x is.
std::optional<End> end_of(const Store& s, const VarMap& lets, const Compared& compared) {
  const Expr nothing = s.reduce ? identity_of(*s.reduce, s.buffer->dtype) : Expr();
  const auto none = nothing ? as_const_number(nothing) : std::nullopt;
  std::optional<End> found;
  if (!none) return found;
  walk(s.value, [&](const Expr& e) {
    const Select* k = as<Select>(e);
    const auto end = k && !found ? compared(k->condition, lets) : std::nullopt;
    if (end && number(where(s.value, k->condition, false)) == none) found = end;
    return !found;
  });
  return found;
}

/// Is `e` the same in all iterations of the loop? What it asks for is not written or defined inside.
bool is_invariant(const Expr& e, const For& loop) {
  bool same = !uses_var(e, loop.var);
  walk(loop.body, [&](const Stmt& s) {
    if (const Let* k = as<Let>(s)) same = same && !uses_var(e, k->var);
    if (const For* k = as<For>(s)) same = same && !uses_var(e, k->var);
    if (const Store* k = as<Store>(s)) same = same && !uses_buffer(e, k->buffer);
    return same;
  });
  return same;
}

/// The ends of the sums of a statement, which are one. False if one has none, or another, or if the statement does anything else.
bool add_ends(const Stmt& s, const VarMap& lets, const Compared& compared, std::vector<End>& all) {
  if (!s) return true;
  if (const Seq* k = as<Seq>(s))
    return std::all_of(k->list.begin(), k->list.end(), [&](const Stmt& x) { return add_ends(x, lets, compared, all); });
  if (const Comment* k = as<Comment>(s)) return add_ends(k->body, lets, compared, all);
  if (const For* k = as<For>(s)) return add_ends(k->body, lets, compared, all);
  if (const Let* k = as<Let>(s)) {
    VarMap inside = lets;
    inside[k->var.get()] = substitute(k->value, lets);
    return add_ends(k->body, inside, compared, all);
  }
  const Store* k = as<Store>(s);
  const auto here = k ? end_of(*k, lets, compared) : std::nullopt;
  if (!here || (!all.empty() && !(structurally_equal(all[0].end, here->end) && all[0].step == here->step)))
    return false;
  all.push_back(*here);
  return true;
}

/// Of all sums of the loop; none if they do not end at one number, which is the same in all iterations.
std::vector<End> ends_of(const For& loop, const Compared& compared) {
  std::vector<End> all;
  const bool known = add_ends(loop.body, {}, compared, all) && !all.empty() && is_invariant(all[0].end, loop);
  return known ? all : std::vector<End>();
}

/// A loop whose variable is what is compared needs no condition in front of its end.
Stmt ended_exactly(const For& loop) {
  const Compared compared = [&](const Expr& condition, const VarMap&) {
    const Expr end = end_by(condition, loop.var);
    return end ? std::optional(End{condition, end}) : std::nullopt;
  };
  const std::vector<End> all = ends_of(loop, compared);
  if (all.empty()) return {};
  const Stmt body = rewrite(loop.body, {}, [&](const Stmt& s) -> Stmt {
    const Store* k = as<Store>(s);
    if (!k) return {};
    return store(k->buffer, k->index, where(k->value, end_of(*k, {}, compared)->condition, true), k->reduce, k->count);
  });
  const Var n = make_var("n");
  return let(n, max(min(all[0].end, loop.extent), Expr(0)), tc::loop(loop.var, Expr(n), body));
}

/// at < end, where the next iteration's `at` is larger by one number.
std::optional<End> compared_in_steps(const Expr& condition, const VarMap& lets, const Var& v) {
  const Apply* less = as<Apply>(condition);
  if (!less || less->op != Op::Lt || less->args[0]->dtype != DType::I64) return std::nullopt;
  // at / d < end   <=>   at < d * end
  Expr at = substitute(less->args[0], lets), end = less->args[1];
  const Apply* part = as<Apply>(at);
  const int64_t d = part && part->op == Op::FloorDiv ? as_const_int(part->args[1]).value_or(0) : 0;
  if (d > 0) at = part->args[0], end = end * Expr(d);
  const Linear all = linear_form(at);
  Linear rest;
  int64_t step = 0;
  rest.constant = all.constant;
  for (const Linear::Term& t : all.terms) {
    const VarRef* r = as<VarRef>(t.atom);
    if (r && r->var == v)
      step = t.coefficient;
    else
      rest.add(t.atom, t.coefficient);
  }
  const Expr others = to_expr(rest);
  if (step <= 0 || uses_var(others, v)) return std::nullopt;
  return End{condition, end, step, others};
}

/// Of all loops' variables, and of names: copies of loops share theirs.
Ranges ranges_in(const Stmt& all) {
  Ranges ranges;
  const auto add = [&](const Var& v, const Range& r) {
    const auto [it, is_new] = ranges.try_emplace(v.get(), r);
    if (!is_new) it->second = {std::min(it->second.min, r.min), std::max(it->second.max, r.max)};
  };
  walk(all, [&](const Stmt& s) {
    if (const For* f = as<For>(s)) add(f->var, loop_range(*f, ranges));
    if (const Let* k = as<Let>(s)) add(k->var, interval(k->value, ranges));
    return true;
  });
  return ranges;
}

/// A loop of `kernel` that adds to sums which have no upper bound, and which it shares with other threads.
Stmt ended_in_steps(const For& loop, const Stmt& kernel) {
  const std::vector<End> all = ends_of(
      loop, [&](const Expr& condition, const VarMap& lets) { return compared_in_steps(condition, lets, loop.var); });
  const int64_t extent = as_const_int(loop.extent).value_or(0);
  if (all.empty() || extent < 1 || all[0].step > INT64_MAX / extent || !is_open(extent * all[0].step)) return {};
  const Ranges ranges = ranges_in(kernel);
  if (std::any_of(all.begin(), all.end(), [&](const End& e) { return interval(e.rest, ranges).min < 0; })) return {};
  const int64_t step = all[0].step;
  const Var n = make_var("n");
  return let(n, max(min(all[0].end, Expr(extent * step)), Expr(0)),
             tc::loop(loop.var, floor_div(Expr(n) + Expr(step - 1), Expr(step)), loop.body));
}

/// What a condition guards, without it, in the loops that stand between: if v < end: S, or for j: if v < end: S.
struct Guarded {
  Expr end;
  Stmt body;
};
std::optional<Guarded> guarded(const Stmt& s, const Var& v) {
  if (const For* f = as<For>(s); f && (f->kind == ForKind::Serial || f->kind == ForKind::Unroll)) {
    const auto inside = guarded(f->body, v);
    return inside ? std::optional(Guarded{inside->end, loop(f->var, f->extent, inside->body, f->kind, f->begin)})
                  : std::nullopt;
  }
  const If* k = as<If>(s);
  const Expr end = k && !k->otherwise ? end_by(k->condition, v) : Expr();
  return end ? std::optional(Guarded{end, k->then}) : std::nullopt;
}

/// A loop that does something for its first iterations only ends behind these.
Stmt ended_by_condition(const For& loop) {
  const auto k = guarded(loop.body, loop.var);
  if (!k || !is_invariant(k->end, For{loop.var, loop.begin, loop.extent, loop.kind, k->body})) return {};
  const Var n = make_var("n");
  return let(n, max(min(k->end, loop.extent), Expr(0)), tc::loop(loop.var, Expr(n), k->body));
}

}  // namespace

Stmt end_sums(const Stmt& s) {
  return rewrite(s, {}, [&](const Stmt& x) -> Stmt {
    const For* f = as<For>(x);
    if (!f || f->kind != ForKind::Serial || !is_const(f->begin, 0) || !as<IntImm>(f->extent)) return {};
    Stmt ended = ended_exactly(*f);
    if (!ended) ended = ended_by_condition(*f);
    return ended ? ended : ended_in_steps(*f, s);
  });
}

}  // namespace tc
