// end_sums: a sum along an axis of which a run may have the first elements only adds zeros from there on, and asks at every element. It
// ends there instead:
//
//   for r in 128:                                           n = min(max(count[0], 0), 128)
//     acc[v] += select(r < count[0], x[r, v], 0)     ->     for r in n:
//                                                             acc[v] += x[r, v]
//
// So does a loop all of which a condition guards. Where threads share a sum that has no upper bound, each ends behind the last
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
#include <optional>
#include <vector>

#include "ir/loop/build.h"
#include "ir/loop/linear.h"
#include "ir/loop/op_rules.h"
#include "ir/loop/visit.h"
#include "ir/open_size.h"

namespace tc {
namespace {

/// A value that is `taken` where the loop's variable is less than `end`, and elsewhere nothing to the sum.
struct Guarded {
  Expr end, taken;
};

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
std::optional<Guarded> guarded(const Expr& value, const Expr& nothing, const Var& v) {
  Expr condition;
  walk(value, [&](const Expr& e) {
    const Select* k = as<Select>(e);
    if (k && !condition && bool(end_by(k->condition, v))) condition = k->condition;
    return !condition;
  });
  const auto behind = condition ? number(where(value, condition, false)) : std::nullopt,
             none = as_const_number(nothing);
  if (!behind || !none || *behind != *none) return {};
  return Guarded{end_by(condition, v), where(value, condition, true)};
}

std::optional<Guarded> guarded(const Store& s, const Var& v) {
  const Expr nothing = s.reduce ? identity_of(*s.reduce, s.buffer->dtype) : Expr();
  return nothing ? guarded(s.value, nothing, v) : std::nullopt;
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

/// Where all sums of the loop end; null if one does not, or if it does anything else.
Expr common_end(const For& loop) {
  Expr end;
  bool fits = true;
  walk(loop.body, [&](const Stmt& s) {
    if (const Store* k = as<Store>(s)) {
      const auto g = guarded(*k, loop.var);
      fits = fits && g && (!end || structurally_equal(end, g->end));
      if (fits) end = g->end;
    } else {
      fits = fits && (as<For>(s) || as<Let>(s) || as<Seq>(s) || as<Comment>(s));
    }
    return fits;
  });
  if (!fits || !end) return {};
  return is_invariant(end, loop) ? end : Expr();
}

/// Loops that end behind the last element of their sums, which one of several threads adds to.
class SharedSums {
 public:
  explicit SharedSums(const Stmt& all) {
    walk(all, [&](const Stmt& s) {
      if (const For* f = as<For>(s)) add_range(f->var, loop_range(*f, ranges_));
      if (const Let* k = as<Let>(s)) add_range(k->var, interval(k->value, ranges_));
      return true;
    });
  }
  /// The loop with that end; null if one of its sums has none, or if it does anything else.
  Stmt ended(const For& loop) const {
    const int64_t extent = as_const_int(loop.extent).value_or(0);
    End all;
    if (extent < 1 || !find_end(loop.body, {}, loop.var, all) || !bool(all.end) || !is_invariant(all.end, loop))
      return {};
    if (all.step > INT64_MAX / extent || !is_open(extent * all.step)) return {};
    const Var n = make_var("n");
    return let(n, max(min(all.end, Expr(extent * all.step)), Expr(0)),
               tc::loop(loop.var, floor_div(Expr(n) + Expr(all.step - 1), Expr(all.step)), loop.body));
  }

 private:
  struct End {
    Expr end;
    int64_t step = 0;  // of the loop's variable
  };
  /// Copies of loops share their variables.
  void add_range(const Var& v, const Range& r) {
    const auto [it, is_new] = ranges_.try_emplace(v.get(), r);
    if (!is_new) it->second = {std::min(it->second.min, r.min), std::max(it->second.max, r.max)};
  }
  /// `lets`: names inside of the loop. False if the statement does anything but add to sums of one end.
  bool find_end(const Stmt& s, const VarMap& lets, const Var& v, End& all) const {
    if (!s) return true;
    if (const Seq* k = as<Seq>(s))
      return std::all_of(k->list.begin(), k->list.end(), [&](const Stmt& x) { return find_end(x, lets, v, all); });
    if (const Comment* k = as<Comment>(s)) return find_end(k->body, lets, v, all);
    if (const For* k = as<For>(s)) return find_end(k->body, lets, v, all);
    if (const Let* k = as<Let>(s)) {
      VarMap inside = lets;
      inside[k->var.get()] = substitute(k->value, lets);
      return find_end(k->body, inside, v, all);
    }
    const Store* k = as<Store>(s);
    const auto here = k && k->reduce ? end_of(*k, lets, v) : std::nullopt;
    if (!here || (bool(all.end) && !(structurally_equal(all.end, here->end) && all.step == here->step))) return false;
    all = *here;
    return true;
  }
  std::optional<End> end_of(const Store& s, const VarMap& lets, const Var& v) const {
    const Expr nothing = identity_of(*s.reduce, s.buffer->dtype);
    const auto none = nothing ? as_const_number(nothing) : std::nullopt;
    std::optional<End> found;
    walk(s.value, [&](const Expr& e) {
      const Select* k = as<Select>(e);
      const Apply* less = k ? as<Apply>(k->condition) : nullptr;
      if (found || !less || less->op != Op::Lt || less->args[0]->dtype != DType::I64) return !found;
      // at / d < end   <=>   at < d * end
      Expr at = substitute(less->args[0], lets), end = less->args[1];
      const Apply* part = as<Apply>(at);
      const int64_t d = part && part->op == Op::FloorDiv ? as_const_int(part->args[1]).value_or(0) : 0;
      if (d > 0) at = part->args[0], end = end * Expr(d);
      const auto step = step_of(at, v);
      if (step && none && number(where(s.value, k->condition, false)) == none) found = {end, *step};
      return !found;
    });
    return found;
  }
  /// By how much `e` is larger in the next iteration, if it is no less than that times the loop's variable.
  std::optional<int64_t> step_of(const Expr& e, const Var& v) const {
    Linear rest;
    int64_t step = 0;
    const Linear all = linear_form(e);
    for (const Linear::Term& t : all.terms) {
      const VarRef* r = as<VarRef>(t.atom);
      if (r && r->var == v)
        step = t.coefficient;
      else
        rest.add(t.atom, t.coefficient);
    }
    rest.constant = all.constant;
    const Expr others = to_expr(rest);
    if (step <= 0 || uses_var(others, v) || interval(others, ranges_).min < 0) return std::nullopt;
    return step;
  }

  Ranges ranges_;  // of all loops' variables, and of names
};

/// A loop that does something for its first iterations only ends behind these.
Stmt ended_by_condition(const For& loop) {
  const If* k = as<If>(loop.body);
  const Expr end = k && !k->otherwise ? end_by(k->condition, loop.var) : Expr();
  if (!end || !is_invariant(end, For{loop.var, loop.begin, loop.extent, loop.kind, k->then})) return {};
  const Var n = make_var("n");
  return let(n, max(min(end, loop.extent), Expr(0)), tc::loop(loop.var, Expr(n), k->then));
}

}  // namespace

Stmt end_sums(const Stmt& s) {
  const SharedSums shared(s);
  return rewrite(s, {}, [&](const Stmt& x) -> Stmt {
    const For* f = as<For>(x);
    if (!f || f->kind != ForKind::Serial || !is_const(f->begin, 0) || !as<IntImm>(f->extent)) return {};
    const Expr end = common_end(*f);
    if (!end) {
      const Stmt ended = ended_by_condition(*f);
      return ended ? ended : shared.ended(*f);
    }
    const Stmt body = rewrite(f->body, {}, [&](const Stmt& y) -> Stmt {
      const Store* k = as<Store>(y);
      return k ? store(k->buffer, k->index, guarded(*k, f->var)->taken, k->reduce, k->count) : Stmt();
    });
    const Var n = make_var("n");
    return let(n, max(min(end, f->extent), Expr(0)), loop(f->var, Expr(n), body));
  });
}

}  // namespace tc
