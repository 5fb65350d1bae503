#include "ir/ops/top_k.h"

#include <algorithm>
#include <limits>

#include "ir/loop/build.h"
#include "ir/loop/equal.h"
#include "ir/loop/visit.h"
#include "ir/ops/helpers.h"

namespace tc {
namespace {

Expr is_nan(const Expr& e) { return apply(Op::IsNan, {e}); }

/// One row: elements are put into a sorted list of k, each behind those that are as extreme as itself. The outputs are
/// the list.
Stmt one_row(const TopK& t, const Exprs& outer) {
  auto at = [&](const Expr& e) { return with_axis(outer, t.axis, e); };
  const int64_t k = t.k();
  const Buffer position = make_buffer("place", DType::I64, {Dim(1)}, Scope::Stack);
  const Var j = make_var("j");
  const Expr p = load(position, {0});
  const Expr value = load(t.x, at(j));
  const Expr before = load(t.values, at(p - 1));
  const Stmt move_down =
      if_then(p < Expr(k), seq({store(t.values, at(p), before), store(t.indices, at(p), load(t.indices, at(p - 1)))}));
  const Stmt search = while_loop(p > 0 && precedes(widen(value), widen(before), t.largest),
                                 seq({move_down, store(position, {0}, p - 1)}));
  const Stmt put = if_then(p < Expr(k), seq({store(t.values, at(p), value), store(t.indices, at(p), j)}));
  return loop(j, t.length(), alloc(position, seq({store(position, {0}, min(Expr(j), Expr(k))), search, put})));
}

}  // namespace

Expr precedes(const Expr& a, const Expr& b, bool largest) {
  if (largest) return more_extreme(a, b, true);
  // Two comparisons without a branch: of NaN none is true.
  return is_float(a->dtype) ? logical_not(is_nan(a)) && logical_not(b <= a) : a < b;
}

Expr more_extreme(const Expr& a, const Expr& b, bool largest) {
  const Expr plain = largest ? a > b : a < b;
  return is_float(a->dtype) ? plain || (is_nan(a) && apply(Op::Not, {is_nan(b)})) : plain;
}

Expr equally_extreme(const Expr& a, const Expr& b) {
  return is_float(a->dtype) ? eq(a, b) || (is_nan(a) && is_nan(b)) : eq(a, b);
}

Expr comes_before(const Expr& a, const Expr& p, const Expr& b, const Expr& q, bool largest) {
  return precedes(a, b, largest) || (equally_extreme(a, b) && p < q);
}

Expr last_in_order(DType t, bool largest) {
  if (largest) return lowest(t);
  return is_float(t) ? make_const(t, std::numeric_limits<double>::quiet_NaN()) : highest(t);
}

Stmt top_k_loops(const TopK& t) {
  Exprs outer;
  std::vector<Var> vars;
  for (size_t d = 0; d < t.x->shape.size(); d++) {
    vars.push_back(make_var("i" + to_text(int64_t(d))));
    outer.emplace_back(vars.back());
  }
  Stmt body = one_row(t, outer);
  for (size_t d = vars.size(); d-- > 0;)
    if (int(d) != t.axis) body = loop(vars[d], t.values->shape[d], body);
  return body;
}

std::optional<TopK> match_top_k(const Stage& s) {
  if (s.kind != Stage::Kind::Nest || s.outputs.size() != 2) return {};
  TopK t{nullptr, s.outputs[0], s.outputs[1]};
  const size_t rank = t.values->shape.size();
  walk(
      s.nest, [](const Stmt&) { return true; },
      [&](const Expr& e) {
        const Load* l = as<Load>(e);
        const bool operand = l && l->buffer->scope == Scope::Global && l->buffer->shape.size() == rank &&
                             std::find(s.outputs.begin(), s.outputs.end(), l->buffer) == s.outputs.end();
        if (operand) t.x = l->buffer;
        return !t.x;
      });
  if (!t.x || t.indices->dtype != DType::I64 || t.x->dtype != t.values->dtype) return {};
  for (const Buffer& b : {t.x, t.values, t.indices})
    if (!is_static(b->shape) || b->shape.size() != rank) return {};
  for (size_t d = 0; d < rank; d++)
    for (const bool largest : {true, false}) {
      t.axis = int(d);
      t.largest = largest;
      if (same_loops(s.nest, top_k_loops(t))) return t;
    }
  return {};
}

}  // namespace tc
