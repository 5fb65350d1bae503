// end_sums: a sum along an axis of which a run may have the first elements only adds zeros from there on, and asks at every element. It
// ends there instead:
//
//   for r in 128:                                           n = min(max(count[0], 0), 128)
//     acc[v] += select(r < count[0], x[r, v], 0)     ->     for r in n:
//                                                             acc[v] += x[r, v]
//
// Preconditions: every store in the loop is a reduction that has its identity under the same condition, on the loop's variable alone;
// what the variable is compared with is the same in all iterations.
#include "passes/loop/end_sums.h"

#include "ir/loop/build.h"
#include "ir/loop/op_rules.h"
#include "ir/loop/visit.h"

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

std::optional<Guarded> guarded(const Store& s, const Var& v) {
  const Select* k = s.reduce ? as<Select>(s.value) : nullptr;
  if (!k) return {};
  const Expr nothing = identity_of(*s.reduce, s.buffer->dtype);
  const Apply* less = as<Apply>(without_lanes(k->condition));
  const VarRef* compared = less && less->op == Op::Lt ? as<VarRef>(less->args[0]) : nullptr;
  if (!nothing || !structurally_equal(without_lanes(k->no), nothing) || !compared || compared->var != v) return {};
  return Guarded{less->args[1], k->yes};
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

}  // namespace

Stmt end_sums(const Stmt& s) {
  return rewrite(s, {}, [](const Stmt& x) -> Stmt {
    const For* f = as<For>(x);
    if (!f || f->kind != ForKind::Serial || !is_const(f->begin, 0) || !as<IntImm>(f->extent)) return {};
    const Expr end = common_end(*f);
    if (!end) return {};
    const Stmt body = rewrite(f->body, {}, [&](const Stmt& y) -> Stmt {
      const Store* k = as<Store>(y);
      return k ? store(k->buffer, k->index, guarded(*k, f->var)->taken, k->reduce, k->count) : Stmt();
    });
    const Var n = make_var("n");
    return let(n, max(min(end, f->extent), Expr(0)), loop(f->var, Expr(n), body));
  });
}

}  // namespace tc
