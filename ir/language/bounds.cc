#include "ir/language/bounds.h"

#include "ir/loop/build.h"
#include "ir/loop/op_rules.h"
#include "support/text.h"

namespace tc::language {
namespace {

// Constants and coefficients beyond are not looked at: sums of a few of them do not overflow.
constexpr int64_t kLarge = int64_t(1) << 40;

bool is_small(const Linear& l) {
  const auto small = [](int64_t v) { return v > -kLarge && v < kLarge; };
  for (const Linear::Term& t : l.terms)
    if (!small(t.coefficient)) return false;
  return small(l.constant);
}

}  // namespace

void KnownFacts::add_axis(const Var& axis, int64_t extent) {
  if (extent <= 0) dead_ = true;
  ranges_[axis.get()] = {0, extent - 1};
}

void KnownFacts::add_fact(const Expr& least, const Expr& most, int64_t gap) {
  Linear l = linear_form(most);
  l.add(linear_form(least), -1);
  if (!is_small(l)) return;
  l.constant -= gap;
  facts_.push_back(std::move(l));
}

void KnownFacts::assume(const Expr& condition, bool holds) {
  const Apply* a = as<Apply>(condition);
  if (!a || condition->vector) return;
  if (a->op == Op::Not) return assume(a->args[0], !holds);
  if (a->op == (holds ? Op::And : Op::Or)) {
    assume(a->args[0], holds);
    return assume(a->args[1], holds);
  }
  if (a->op < Op::Eq || a->op > Op::Ge || a->args[0]->dtype != DType::I64) return;
  const Expr &x = a->args[0], &y = a->args[1];
  switch (holds ? a->op : opposite(a->op)) {
    case Op::Lt: add_fact(x, y, 1); break;
    case Op::Le: add_fact(x, y, 0); break;
    case Op::Gt: add_fact(y, x, 1); break;
    case Op::Ge: add_fact(y, x, 0); break;
    case Op::Eq:
      add_fact(x, y, 0);
      add_fact(y, x, 0);
      break;
    default: return;
  }
  tc::assume(ranges_, condition, holds);
}

bool KnownFacts::is_nonnegative(const Linear& l) const {
  if (!is_small(l)) return false;
  if (interval(l, ranges_).min >= 0) return true;
  for (const Linear& fact : facts_) {
    Linear rest = l;
    rest.add(fact, -1);
    if (interval(rest, ranges_).min >= 0) return true;
  }
  return false;
}

bool KnownFacts::is_nonnegative(const Expr& e) const {
  return dead_ || interval(e, ranges_).min >= 0 || is_nonnegative(linear_form(e));
}

bool KnownFacts::is_inside(const Expr& index, int64_t size) const {
  if (dead_) return true;
  const Range r = interval(index, ranges_);
  Linear above = linear_form(index * Expr(-1));
  above.constant += size - 1;
  return (r.min >= 0 || is_nonnegative(linear_form(index))) && (r.max < size || is_nonnegative(above));
}

std::string KnownFacts::range_text(const Expr& index) const {
  const Range r = interval(index, ranges_);
  const auto end = [](int64_t v) { return v == INT64_MIN || v == INT64_MAX ? "?" : to_text(v); };
  return end(r.min) + " .. " + end(r.max);
}

}  // namespace tc::language
