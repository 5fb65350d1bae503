// Two indices are compared as sums of atoms: variables, and quotients and remainders of what is affine in them.
//
//   tile[thread / 8, thread % 8] against itself: thread / 8 agrees and thread % 8 agrees, so thread agrees
//   part[turn * 256 + thread], turns differ:     |difference of threads| < 256, so it is 0
//   stage[step % 2], stage[1 - step % 2]:        2 * (step % 2) - 1 is odd, never 0
#include "passes/loop/thread_independence.h"

#include <algorithm>
#include <numeric>

#include "ir/loop/build.h"
#include "ir/loop/visit.h"

namespace tc {
namespace {

struct Term {
  Expr atom;
  int64_t coefficient;
};
struct Sum {
  std::vector<Term> terms;
  int64_t constant = 0;
};

void add_to(Sum& s, const Expr& e, int64_t factor) {
  if (const auto n = as_const_int(e)) {
    s.constant += factor * *n;
    return;
  }
  const Apply* k = as<Apply>(e);
  const auto right = k && k->args.size() == 2 ? as_const_int(k->args[1]) : std::nullopt;
  if (k && (k->op == Op::Add || k->op == Op::Sub)) {
    add_to(s, k->args[0], factor);
    return add_to(s, k->args[1], k->op == Op::Add ? factor : -factor);
  }
  if (k && k->op == Op::Neg) return add_to(s, k->args[0], -factor);
  if (k && k->op == Op::Mul && right) return add_to(s, k->args[0], factor * *right);
  if (k && k->op == Op::Mul && as_const_int(k->args[0]))
    return add_to(s, k->args[1], factor * *as_const_int(k->args[0]));
  for (Term& t : s.terms)
    if (structurally_equal(t.atom, e)) {
      t.coefficient += factor;
      return;
    }
  s.terms.push_back({e, factor});
}

constexpr int64_t kUnknown = int64_t(1) << 40;  // beyond every size of a buffer that is compared

// A part of a difference: coefficient * value, the value in a range.
struct Digit {
  int64_t coefficient;
  Range range;
  Expr same;  // not null: the value is this atom on one side minus itself on the other
};

class Comparison {
 public:
  Comparison(const ThreadAccess& a, const ThreadAccess& b, const ThreadNest& nest) : nest_(nest) {
    a_ = b_ = nest.ranges;
    for (const auto& [v, r] : a.ranges) a_[v] = r;
    for (const auto& [v, r] : b.ranges) b_[v] = r;
  }

  // Conditions may leave a single thread.
  void compare_threads() {
    for (const Var& t : nest_.threads)
      if (const Range d = difference(Expr(t)); d.min == 0 && d.max == 0) learn(Expr(t));
  }

  void agree(const Expr& e) { equal(e, e); }

  // Learns from the equality of two indices; false: they are never equal.
  bool equal(const Expr& x, const Expr& y) {
    Sum left, right;
    add_to(left, x, 1);
    add_to(right, y, 1);
    std::vector<Digit> digits;
    for (const Term& t : left.terms) {
      Term* other = nullptr;
      for (Term& u : right.terms)
        if (structurally_equal(t.atom, u.atom)) other = &u;
      if (other && !varies(t.atom)) {
        other->coefficient -= t.coefficient;  // one value: what is left of it stays on the right
        continue;
      }
      if (other && other->coefficient == t.coefficient) {
        digits.push_back({t.coefficient, difference(t.atom), t.atom});
        other->coefficient = 0;
        continue;
      }
      digits.push_back({t.coefficient, range(t.atom, a_), {}});
    }
    for (const Term& u : right.terms)
      if (u.coefficient != 0) digits.push_back({-u.coefficient, range(u.atom, b_), {}});
    return solve(std::move(digits), left.constant - right.constant);
  }

  bool same_thread() {
    while (combine()) {
    }
    return std::all_of(nest_.threads.begin(), nest_.threads.end(), [&](const Var& t) { return agrees(Expr(t)); });
  }

 private:
  bool varies(const Expr& e) const {
    bool found = false;
    walk(e, [&](const Expr& x) {
      const VarRef* v = as<VarRef>(x);
      found |= as<Load>(x) != nullptr || (v && nest_.varying.count(v->var.get()) != 0);
      return !found;
    });
    return found;
  }
  static Range range(const Expr& e, const Ranges& ranges) {
    const auto r = range_of(e, ranges);
    return r ? Range{std::max(r->min, -kUnknown), std::min(r->max, kUnknown)} : Range{-kUnknown, kUnknown};
  }
  Range difference(const Expr& e) const {
    const Range x = range(e, a_), y = range(e, b_);
    return {x.min - y.max, x.max - y.min};
  }

  static int64_t reach(const Digit& d) {
    const int64_t n = std::max(std::abs(d.range.min), std::abs(d.range.max));
    return n >= kUnknown || std::abs(d.coefficient) >= kUnknown ? kUnknown
                                                                : std::min(kUnknown, n * std::abs(d.coefficient));
  }

  static bool never_zero(const std::vector<Digit>& digits, int64_t constant) {
    int64_t divisor = 0, low = constant, high = constant;
    for (const Digit& d : digits) {
      divisor = std::gcd(divisor, std::abs(d.coefficient));
      const int64_t p = d.coefficient * d.range.min, q = d.coefficient * d.range.max;
      low += std::min(p, q);
      high += std::max(p, q);
    }
    return low > 0 || high < 0 || (divisor == 0 ? constant != 0 : constant % divisor != 0);
  }

  // sum(digits) + constant == 0: the largest digit is 0 if the others cannot make up for one step of it.
  bool solve(std::vector<Digit> digits, int64_t constant) {
    std::erase_if(digits, [&](const Digit& d) {
      const bool zero = d.coefficient == 0 || (d.range.min == 0 && d.range.max == 0);
      if (zero && bool(d.same)) learn(d.same);
      return zero;
    });
    for (const Digit& d : digits)
      if (reach(d) >= kUnknown) return true;
    if (never_zero(digits, constant)) return false;
    std::stable_sort(digits.begin(), digits.end(),
                     [](const Digit& x, const Digit& y) { return std::abs(x.coefficient) > std::abs(y.coefficient); });
    while (!digits.empty()) {
      const auto end = std::find_if(digits.begin(), digits.end(), [&](const Digit& d) {
        return std::abs(d.coefficient) != std::abs(digits[0].coefficient);
      });
      int64_t rest = std::abs(constant);
      for (auto d = end; d != digits.end(); ++d) rest += reach(*d);
      if (rest >= std::abs(digits[0].coefficient)) break;
      if (end == digits.begin() + 1 && bool(digits[0].same)) learn(digits[0].same);
      digits.erase(digits.begin(), end);
      if (never_zero(digits, constant)) return false;
    }
    return true;
  }

  bool agrees(const Expr& e) const {
    return std::any_of(same_.begin(), same_.end(), [&](const Expr& x) { return structurally_equal(x, e); });
  }
  void learn(const Expr& e) {
    if (!agrees(e)) same_.push_back(e);
  }

  // Where a quotient and the remainder agree, so does what was divided.
  bool combine() {
    for (const Expr& e : std::vector<Expr>(same_)) {
      const Apply* m = as<Apply>(e);
      const auto n = m && (m->op == Op::FloorMod || m->op == Op::Mod) ? as_const_int(m->args[1]) : std::nullopt;
      if (!n) continue;
      const Expr& whole = m->args[0];
      if (agrees(whole)) continue;
      const Apply* q = as<Apply>(whole);
      const auto inner = q && (q->op == Op::FloorDiv || q->op == Op::Div) ? as_const_int(q->args[1]) : std::nullopt;
      const bool quotient = agrees(apply(m->op == Op::Mod ? Op::Div : Op::FloorDiv, {whole, Expr(*n)})) ||
                            (inner && agrees(apply(q->op, {q->args[0], Expr(*inner * *n)})));
      const Range r = range(whole, a_), s = range(whole, b_);
      const bool small = r.min >= 0 && r.max < *n && s.min >= 0 && s.max < *n;
      if (!quotient && !small) continue;
      learn(whole);
      equal(whole, whole);
      return true;
    }
    return false;
  }

  const ThreadNest& nest_;
  Ranges a_, b_;
  Exprs same_;  // atoms that have one value on both sides
};

}  // namespace

bool only_within_threads(const ThreadAccess& a, const ThreadAccess& b, const ThreadNest& nest) {
  if (nest.threads.empty()) return true;
  Comparison c(a, b, nest);
  c.compare_threads();
  for (const auto& [x, n] : a.fixed)
    for (const auto& [y, m] : b.fixed)
      if (n == m && structurally_equal(x, y)) c.agree(x);
  if (a.index.size() == b.index.size())
    for (size_t i = 0; i < a.index.size(); i++)
      if (!c.equal(a.index[i], b.index[i])) return true;
  return c.same_thread();
}

}  // namespace tc
