// Which keys a mask leaves to a block of rows: the causal rule, windows, lengths of caches.
//
//   score = select(key <= row + 3 && key < lengths[batch], .., -inf)
//   rows 64 block .. 64 block + 63:     keys below min(64 block + 63 + 3 + 1, lengths[batch])
//
// A comparison bounds the keys where it is linear in the key, with the factor 1 or -1, and in the innermost axis of the
// rows; what else it reads must be the same for all rows. Other comparisons bound nothing.
#include "ir/loop/linear.h"
#include "templates/cuda/attention.h"

namespace tc {
namespace {

bool is_forbidden(const Expr& e) {
  return e->dtype == DType::F32 && as_const_number(e) == as_const_number(lowest(DType::F32));
}

class MaskBounds {
 public:
  MaskBounds(const CudaAttention& m, const VarMap& batch, const Expr& first_row, int64_t rows) : m_(m), batch_(batch) {
    if (m.rows.empty()) return;
    const int64_t size = m.rows.back().extent.value;
    const Expr first = points(m.rows) <= rows ? Expr(0) : first_row;
    const bool one_run = m.rows.size() == 1 || size % rows == 0;  // the block's rows are neighbours on this axis
    first_ = !one_run ? Expr(0) : m.rows.size() == 1 ? first : floor_mod(first, size);
    last_ = one_run ? first_ + Expr(rows - 1) : Expr(size - 1);
  }

  /// What holds where the score is not -inf.
  void allow(const Expr& score) {
    if (const Cast* c = as<Cast>(score)) return allow(c->value);
    const Select* s = as<Select>(score);
    if (!s || is_forbidden(s->yes) == is_forbidden(s->no)) return;
    require(s->condition, is_forbidden(s->no));
    allow(is_forbidden(s->no) ? s->yes : s->no);
  }

  KeyRange range;

 private:
  void require(const Expr& condition, bool holds) {
    const Apply* k = as<Apply>(condition);
    if (!k) return;
    if (k->op == Op::Not) return require(k->args[0], !holds);
    if (k->op == (holds ? Op::And : Op::Or)) {
      for (const Expr& e : k->args) require(e, holds);
      return;
    }
    if (k->args.size() != 2 || k->args[0]->dtype != DType::I64) return;
    const Expr &a = k->args[0], &b = k->args[1];
    switch (k->op) {
      case Op::Le: return holds ? at_most(a, b, 0) : at_most(b, a, -1);
      case Op::Lt: return holds ? at_most(a, b, -1) : at_most(b, a, 0);
      case Op::Ge: return holds ? at_most(b, a, 0) : at_most(a, b, -1);
      case Op::Gt: return holds ? at_most(b, a, -1) : at_most(a, b, 0);
      default: return;
    }
  }

  // a <= b + more, for all keys that some row may see
  void at_most(const Expr& a, const Expr& b, int64_t more) {
    Linear rest = linear_form(a);
    rest.add(linear_form(b), -1);
    const int64_t key = take(rest, m_.keys.var), row = m_.rows.empty() ? 0 : take(rest, m_.rows.back().var);
    const Expr others = to_expr(rest);
    if ((key != 1 && key != -1) || uses_var(others, m_.keys.var)) return;
    for (const Axis& x : m_.rows)
      if (uses_var(others, x.var)) return;
    // key * k + row * r + others <= more, by the row of the block that allows most
    Expr least = substitute(others, batch_) - Expr(more);
    if (row != 0) least = least + Expr(row) * (row > 0 ? first_ : last_);
    if (key > 0) {
      const Expr end = Expr(1) - least;
      range.end = range.end ? min(range.end, end) : end;
    } else {
      range.begin = range.begin ? max(range.begin, least) : least;
    }
  }

  // The factor of v, which leaves the sum.
  static int64_t take(Linear& l, const Var& v) {
    for (size_t i = 0; i < l.terms.size(); i++) {
      const VarRef* r = as<VarRef>(l.terms[i].atom);
      if (!r || r->var != v) continue;
      const int64_t factor = l.terms[i].coefficient;
      l.terms.erase(l.terms.begin() + std::ptrdiff_t(i));
      return factor;
    }
    return 0;
  }

  const CudaAttention& m_;
  const VarMap& batch_;
  Expr first_ = 0, last_ = 0;  // of the block, on the innermost axis of rows
};

}  // namespace

KeyRange allowed_keys(const CudaAttention& m, const VarMap& batch, const Expr& first_row, int64_t rows) {
  MaskBounds bounds(m, batch, first_row, rows);
  bounds.allow(m.score);
  KeyRange r = bounds.range;
  for (Expr* e : {&r.begin, &r.end})
    if (*e) *e = simplify(*e);
  // Bounds that leave every key say nothing.
  if (as_const_int(r.end).value_or(0) >= m.keys.extent.value) r.end = {};
  if (as_const_int(r.begin).value_or(1) <= 0) r.begin = {};
  return r;
}

}  // namespace tc
