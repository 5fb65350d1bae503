// Expressions: affine normal form of I64 sums, decisions by ranges, booleans, lazy branches under their condition.
#include "ir/loop/simplifier.h"

#include <algorithm>
#include <numeric>

#include "ir/loop/build.h"
#include "ir/loop/equal.h"
#include "ir/loop/op_rules.h"
#include "ir/loop/visit.h"

namespace tc {
namespace {

// Conditions are taken into account this many levels deep: each level may visit a shared subtree again.
constexpr int kMaxConditions = 5;

bool is_index(const Expr& e) { return e->dtype == DType::I64 && !e->vector; }
Expr truth(bool b) { return make_int(DType::Bool, b); }

template <class K>
Expr make(const Expr& like, K kind) {
  return Expr(std::make_shared<const ExprNode>(ExprNode{like->dtype, like->vector, std::move(kind)}));
}

// `r` holds left - right; nullopt if it does not decide.
std::optional<bool> decide(Op op, Range r) {
  bool less = r.max<0, greater = r.min> 0, equal = r.min == 0 && r.max == 0;
  bool at_most = r.max <= 0, at_least = r.min >= 0;
  switch (op) {
    case Op::Lt: return less ? std::optional(true) : at_least ? std::optional(false) : std::nullopt;
    case Op::Le: return at_most ? std::optional(true) : greater ? std::optional(false) : std::nullopt;
    case Op::Gt: return greater ? std::optional(true) : at_most ? std::optional(false) : std::nullopt;
    case Op::Ge: return at_least ? std::optional(true) : less ? std::optional(false) : std::nullopt;
    case Op::Eq: return equal ? std::optional(true) : less || greater ? std::optional(false) : std::nullopt;
    case Op::Ne: return equal ? std::optional(false) : less || greater ? std::optional(true) : std::nullopt;
    default: return std::nullopt;
  }
}

// Have both one value, as compilers see it: x > 0 and 0 < x, a + b and b + a? They warn of what compares with itself. `depth`: of
// operations that are looked into.
bool reads_the_same(const Expr& a, const Expr& b, int depth) {
  if (structurally_equal(a, b)) return true;
  if (depth == 0 || a->dtype != b->dtype) return false;
  if (const Cast* x = as<Cast>(a), *y = as<Cast>(b); x && y)
    return x->saturate == y->saturate && x->value->dtype == y->value->dtype &&
           reads_the_same(x->value, y->value, depth - 1);
  if (const Select* x = as<Select>(a), *y = as<Select>(b); x && y)
    return reads_the_same(x->condition, y->condition, depth - 1) && reads_the_same(x->yes, y->yes, depth - 1) &&
           reads_the_same(x->no, y->no, depth - 1);
  const Apply *x = as<Apply>(a), *y = as<Apply>(b);
  if (!x || !y || x->args.size() != y->args.size()) return false;
  const auto same = [&](size_t i, size_t k) { return reads_the_same(x->args[i], y->args[k], depth - 1); };
  if (x->args.size() == 1) return x->op == y->op && same(0, 0);
  if (x->args.size() != 2) return false;
  constexpr Op kCommute[] = {Op::Add, Op::Mul, Op::BitAnd, Op::BitOr, Op::BitXor, Op::Eq, Op::Ne};
  const bool commutes = std::find(std::begin(kCommute), std::end(kCommute), x->op) != std::end(kCommute);
  const bool exchanged = info(x->op).compares ? mirrored(x->op) == y->op : commutes && x->op == y->op;
  return (x->op == y->op && same(0, 0) && same(1, 1)) || (exchanged && same(0, 1) && same(1, 0));
}

// sum(terms) * g + constant <op> 0 with g > 1, as sum(terms) <op> number.
std::optional<int64_t> scaled_bound(Op op, int64_t constant, int64_t g) {
  int64_t floor = floor_div_int(-constant, g), ceiling = -floor_div_int(constant, g);
  switch (op) {
    case Op::Lt:
    case Op::Ge: return ceiling;
    case Op::Le:
    case Op::Gt: return floor;
    default: return floor == ceiling ? std::optional(floor) : std::nullopt;
  }
}

// Is the whole number exact in the type?
bool holds(DType t, int64_t k) {
  const int64_t bound = t == DType::F32   ? int64_t(1) << 24
                        : t == DType::F64 ? int64_t(1) << 53
                        : t == DType::I32 ? INT32_MAX
                                          : 0;
  return bound > 0 && -bound <= k && k <= bound;
}

// Both propagate NaN, so only integer operands come here.
bool is_bound(Op op) { return op == Op::Min || op == Op::Max; }

}  // namespace

Expr Simplifier::expr(const Expr& e) {
  if (!e) return e;
  if (auto it = memo_.find(e.get()); it != memo_.end()) return it->second.second;
  Expr r = simplify(e);
  if (!r.same_as(e) && structurally_equal(r, e)) r = e;
  memo_[e.get()] = {e, r};
  if (!r.same_as(e)) memo_.try_emplace(r.get(), r, r);
  return r;
}

Expr Simplifier::simplify(const Expr& e) {
  auto same = [&](auto&) { return e; };
  return visit(
      e, [&](const IntImm& k) { return same(k); }, [&](const FloatImm& k) { return same(k); },
      [&](const Lanes& k) { return same(k); },
      [&](const VarRef&) {
        Range r = is_float(e->dtype) ? kAnything : interval_of(e);
        return r.min == r.max ? make_int(e->dtype, r.min) : e;
      },
      [&](const Apply& a) { return application(e, a); }, [&](const Select& s) { return selection(e, s); },
      [&](const Cast& c) {
        Expr v = expr(c.value);
        auto* inner = as<Cast>(v);  // i64(i32(x)) is x where x fits
        if (inner && is_int(e->dtype) && is_int(v->dtype) && inner->value->dtype == e->dtype) {
          Range wide = interval_of(inner->value), narrow = interval(make(v, Load{}), {});
          if (wide.min >= narrow.min && wide.max <= narrow.max) return inner->value;
        }
        if (const IntImm* k = as<IntImm>(v); k && holds(e->dtype, k->value))
          return is_float(e->dtype) ? make_float(e->dtype, double(k->value)) : make_int(e->dtype, k->value);
        return v.same_as(c.value) ? e : cast(e->dtype, v, c.saturate);
      },
      [&](const Bitcast& b) {
        Expr v = expr(b.value);
        return v.same_as(b.value) ? e : bitcast(e->dtype, v);
      },
      [&](const Load& l) {
        Exprs index;
        bool changed = false;
        for (const Expr& i : l.index) {
          index.push_back(expr(i));
          changed |= !index.back().same_as(i);
        }
        return changed ? load(l.buffer, std::move(index)) : e;
      },
      [&](const Ramp& r) {
        Expr base = expr(r.base);
        return base.same_as(r.base) ? e : ramp(base);
      },
      [&](const Broadcast& b) {
        Expr v = expr(b.value);
        return v.same_as(b.value) ? e : broadcast(v);
      },
      [&](const Partial& p) {
        Expr v = expr(p.value), n = expr(p.count);
        return v.same_as(p.value) && n.same_as(p.count) ? e : partial(v, n);
      });
}

Expr Simplifier::application(const Expr& e, const Apply& a) {
  if (a.op == Op::And || a.op == Op::Or) return logic(e, a);
  Exprs args;
  bool changed = false;
  for (const Expr& x : a.args) {
    args.push_back(expr(x));
    changed |= !args.back().same_as(x);
  }
  if (a.op == Op::Not) return negation(e, args[0]);
  bool scalar = !e->vector && !args[0]->vector && !is_float(args[0]->dtype);
  Expr r;
  if (scalar && info(a.op).compares && args.size() == 2) r = comparison(a.op, args[0], args[1]);
  if (scalar && is_bound(a.op)) r = bound(a.op, args[0], args[1]);
  if (scalar && is_index(e)) {
    if (a.op == Op::Add || a.op == Op::Sub || a.op == Op::Mul || a.op == Op::Neg) r = arithmetic(a.op, args);
    if (a.op == Op::Div || a.op == Op::FloorDiv || a.op == Op::Mod || a.op == Op::FloorMod) r = division(a.op, args);
    if (a.op == Op::Index) {
      Range i = interval_of(args[0]), n = interval_of(args[1]);
      if (i.min >= 0 && i.max < n.min) return args[0];
      if (i.max < 0 && n.min == n.max && i.min >= -n.min) return expr(args[0] + args[1]);
    }
  }
  if (r) return r;
  return changed ? apply(a.op, std::move(args)) : e;
}

Expr Simplifier::arithmetic(Op op, const Exprs& args) {
  if (op == Op::Mul && !as_const_int(args[0]) && !as_const_int(args[1])) return {};
  Linear l;
  if (op == Op::Mul) {
    bool left = as_const_int(args[0]).has_value();
    l.add(linear_form(args[left ? 1 : 0]), *as_const_int(args[left ? 0 : 1]));
  } else {
    l.add(linear_form(args[0]), op == Op::Neg ? -1 : 1);
    if (op != Op::Neg) l.add(linear_form(args[1]), op == Op::Sub ? -1 : 1);
  }
  return to_expr(recombine(std::move(l), ranges_));
}

Expr Simplifier::division(Op op, const Exprs& args) {
  bool modulo = op == Op::Mod || op == Op::FloorMod;
  Range x = interval_of(args[0]), y = interval_of(args[1]);
  if (x.min >= 0 && x.max < y.min) return modulo ? args[0] : Expr(0);
  auto c = as_const_int(args[1]);
  if (!c || *c <= 0) return {};
  if ((op == Op::Div || op == Op::Mod) && x.min < 0) return {};
  Linear l = linear_form(args[0]);
  constexpr int64_t kMost = int64_t(1) << 62;  // what is added and subtracted below stays within 64 bits
  if (!is_exact(l, ranges_) || *c > kMost || l.constant > kMost || l.constant < -kMost) return {};
  Linear r = modulo ? floor_mod_linear(l, *c, ranges_) : floor_div_linear(l, *c, ranges_);
  return to_expr(recombine(std::move(r), ranges_));
}

Expr Simplifier::comparison(Op op, const Expr& a, const Expr& b) {
  // compilers warn of what compares with itself
  if (reads_the_same(a, b, 8))
    if (auto d = decide(op, {0, 0})) return truth(*d);
  if (a->dtype == DType::Bool) return {};
  if (a->dtype == DType::U64) {  // no range says so
    if (is_const(b, 0) && (op == Op::Lt || op == Op::Ge)) return truth(op == Op::Ge);
    if (is_const(a, 0) && (op == Op::Gt || op == Op::Le)) return truth(op == Op::Le);
  }
  Range x = interval_of(a), y = interval_of(b);
  if (x.max < y.min)
    if (auto d = decide(op, {-1, -1})) return truth(*d);
  if (x.min > y.max)
    if (auto d = decide(op, {1, 1})) return truth(*d);
  Range apart = x + Range{-1, -1} * y;
  if (auto d = decide(op, apart); d && a->dtype != DType::U64) return truth(*d);
  if (!is_index(a)) return {};
  Linear la = linear_form(a), lb = linear_form(b), difference = la;
  if (!is_exact(la, ranges_) || !is_exact(lb, ranges_)) return {};
  difference.add(lb, -1);
  difference = recombine(std::move(difference), ranges_);
  if (auto d = decide(op, interval(difference, ranges_))) return truth(*d);
  int64_t g = 0;
  for (const auto& t : difference.terms) g = std::gcd(g, t.coefficient);
  if (g == 0) return {};  // a constant, which is decided
  bool tidy = g == 1 && !la.is_constant() && difference.terms.size() == la.terms.size() + lb.terms.size();
  if (tidy || difference.constant == INT64_MIN) return {};
  auto bound = scaled_bound(op, difference.constant, g);
  if (!bound) return truth(op == Op::Ne);
  Linear left, right;
  for (const auto& t : difference.terms) (t.coefficient > 0 ? left : right).add(t.atom, std::abs(t.coefficient / g));
  if (left.terms.empty()) {
    // -x < n is x > -n
    right.constant = 0;
    return apply(mirrored(op), {to_expr(right), Expr(-*bound)});
  }
  right.constant = *bound;
  return apply(op, {to_expr(left), to_expr(right)});
}

Expr Simplifier::bound(Op op, const Expr& a, const Expr& b) {
  if (same_atom(a, b)) return a;
  Range x = interval_of(a), y = interval_of(b);
  bool min = op == Op::Min;
  if (x.max <= y.min) return min ? a : b;
  if (y.max <= x.min) return min ? b : a;
  if (!is_index(a)) return {};
  Linear la = linear_form(a), lb = linear_form(b), difference = la;
  difference.add(lb, -1);
  if (is_exact(la, ranges_) && is_exact(lb, ranges_)) {
    Range d = interval(difference, ranges_);
    if (d.max <= 0) return min ? a : b;
    if (d.min >= 0) return min ? b : a;
  }
  // max((n + 31) / 32, (n + 3) / 32) is the first: quotients grow with what is divided
  auto *inner = as<Apply>(a), *other = as<Apply>(b);
  const bool divide = inner && other && inner->op == other->op && (inner->op == Op::FloorDiv || inner->op == Op::Div);
  if (divide && as_const_int(inner->args[1]).value_or(0) > 0 && same_atom(inner->args[1], other->args[1])) {
    const Expr r = bound(op, inner->args[0], other->args[0]);
    if (bool(r) && r.same_as(inner->args[0])) return a;
    if (bool(r) && r.same_as(other->args[0])) return b;
  }
  // min(min(x, 5), 7) is min(x, 5)
  auto c = as_const_int(b);
  if (inner && inner->op == op && c && as_const_int(inner->args[1])) {
    int64_t limit = *as_const_int(inner->args[1]);
    return apply(op, {inner->args[0], Expr(min ? std::min(limit, *c) : std::max(limit, *c))});
  }
  return {};
}

Expr Simplifier::negation(const Expr& e, const Expr& operand) {
  auto* a = as<Apply>(operand);
  if (a && a->op == Op::Not) return a->args[0];
  bool comparison = a && info(a->op).compares && a->args.size() == 2 && a->op != Op::And && a->op != Op::Or;
  bool exact = comparison && (a->op == Op::Eq || a->op == Op::Ne || !is_float(a->args[0]->dtype));  // NaN is never less
  if (exact) return apply(opposite(a->op), a->args);
  return as<Apply>(e)->args[0].same_as(operand) ? e : apply(Op::Not, {operand});
}

Expr Simplifier::logic(const Expr& e, const Apply& a) {
  Expr left = expr(a.args[0]);
  if (auto c = as_const_int(left)) {
    bool decided = (*c != 0) == (a.op == Op::Or);
    return decided ? truth(a.op == Op::Or) : expr(a.args[1]);
  }
  Expr right = e->vector ? expr(a.args[1]) : under(left, a.op == Op::And, a.args[1]);
  if (auto c = as_const_int(right)) {
    // "left && false" still evaluates left, which has no effect
    return (*c != 0) == (a.op == Op::And) ? left : truth(a.op == Op::Or);
  }
  if (same_atom(left, right)) return left;
  return left.same_as(a.args[0]) && right.same_as(a.args[1]) ? e : apply(a.op, {left, right});
}

Expr Simplifier::selection(const Expr& e, const Select& s) {
  Expr c = expr(s.condition);
  if (auto known = as_const_int(c)) return expr(*known ? s.yes : s.no);
  if (auto* b = as<Broadcast>(c); b && as_const_int(b->value)) return expr(*as_const_int(b->value) ? s.yes : s.no);
  Expr yes = under(c, true, s.yes), no = under(c, false, s.no);
  if (!yes->vector == !e->vector && same_atom(yes, no)) return yes;
  return c.same_as(s.condition) && yes.same_as(s.yes) && no.same_as(s.no) ? e : select(c, yes, no);
}

Expr Simplifier::under(const Expr& condition, bool holds, const Expr& e) {
  if (depth_ >= kMaxConditions || condition->vector) return expr(e);
  Ranges narrowed = ranges_;
  assume(narrowed, condition, holds);
  bool news = false;
  for (const auto& [v, r] : narrowed) {
    auto old = ranges_.find(v);
    news |= old == ranges_.end() || old->second.min != r.min || old->second.max != r.max;
  }
  if (!news) return expr(e);
  return Simplifier(std::move(narrowed), depth_ + 1).expr(e);
}

Expr simplify(const Expr& e, const Ranges& ranges) { return Simplifier(ranges).expr(e); }

}  // namespace tc
