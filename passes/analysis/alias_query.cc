// The difference of two index expressions is
//   sum(c_k * d_k) + constant,    d_k the difference of a term that both have, or a term that only one has.
// Sorted by |c_k|, a term for which the sum of the later c_j * d_j and the constant stays between -|c_k| and |c_k| must have d_k = 0
// where the sum is 0: the digits of a number in mixed radix. Terms of the same |c_k| must sum to 0. A variable that follows from such
// terms (itself, or x / n and x % n) has one value wherever the accesses alias. They never do where the sum cannot be
// 0: out of its range, or no multiple of the greatest common divisor of what it is made of.
//
//   tile[t / 8, t % 8] against itself:        t / 8 agrees and t % 8 agrees, so t agrees
//   part[step * 256 + t], steps differ:       |difference of t| < 256, so it is 0
//   stage[step % 2], stage[1 - step % 2]:     2 * (step % 2) - 1 is odd, never 0
#include "passes/analysis/alias_query.h"

#include <algorithm>
#include <numeric>

#include "ir/loop/build.h"
#include "ir/loop/linear.h"
#include "ir/loop/simplifier.h"
#include "ir/loop/visit.h"

namespace tc {
namespace {

using Wide = __int128;
// Of what is not bounded: more than any sum of offsets.
Wide width(const Range& r) { return bounded(r) ? Wide(r.max) - r.min : Wide(1) << 100; }
Wide magnitude(int64_t v) { return v < 0 ? -Wide(v) : Wide(v); }

bool has_load(const Expr& e) {
  bool found = false;
  walk(e, [&](const Expr& x) {
    found = found || bool(as<Load>(x));
    return !found;
  });
  return found;
}

}  // namespace

AliasQuery::AliasQuery(const Access& a, const Access& b, const std::set<const VarDef*>& varies,
                       const std::set<const BufferDef*>& written)
    : a_(a), b_(b), varies_(varies), written_(written) {
  const size_t rank = a.index.size();
  if (rank != b.index.size()) return;
  for (size_t d = 0; d < rank; d++) equate(a.index[d], b.index[d]);
  if (rank < 2 || !is_static(a.buffer->shape)) return;
  // Row-major offsets of the last dimensions together: the parts of a divided index come together again.
  Expr x = a.index[rank - 1], y = b.index[rank - 1];
  int64_t stride = 1;
  for (size_t d = rank - 1; d-- > 0;) {
    if (__builtin_mul_overflow(stride, a.buffer->shape[d + 1].value, &stride)) return;
    x = a.index[d] * Expr(stride) + x, y = b.index[d] * Expr(stride) + y;
    equate(x, y);
  }
}

bool AliasQuery::implies_equal(const Var& v) {
  const auto here = a_.ranges.find(v.get()), there = b_.ranges.find(v.get());
  if (here != a_.ranges.end() && there != b_.ranges.end() && width(join(here->second, there->second)) == 0) return true;
  close();
  return has(Expr(v));
}

// Same value in both instances, whatever they are.
bool AliasQuery::is_fixed(const Expr& e) const {
  bool fixed = true;
  walk(e, [&](const Expr& x) {
    if (const VarRef* r = as<VarRef>(x)) fixed = fixed && varies_.count(r->var.get()) == 0;
    if (const Load* l = as<Load>(x)) fixed = fixed && written_.count(l->buffer.get()) == 0;
    return fixed;
  });
  return fixed;
}

void AliasQuery::equate(const Expr& x, const Expr& y) {
  if (x->vector || y->vector) return;
  const Linear l = linear_form(simplify(x, a_.ranges));
  Linear r = linear_form(simplify(y, b_.ranges));
  std::vector<Term> terms;
  int64_t constant = 0;
  if (__builtin_sub_overflow(l.constant, r.constant, &constant)) return;
  for (const Linear::Term& t : l.terms) {
    const auto other = std::find_if(r.terms.begin(), r.terms.end(), [&](const Linear::Term& o) {
      return same_atom(o.atom, t.atom) && (o.coefficient == t.coefficient || is_fixed(t.atom));
    });
    const Range here = interval(t.atom, a_.ranges);
    if (other == r.terms.end()) {
      terms.push_back({{}, t.coefficient, here});
      continue;
    }
    const Linear::Term o = *other;
    r.terms.erase(other);
    int64_t left = 0;
    if (__builtin_sub_overflow(t.coefficient, o.coefficient, &left)) return;
    if (is_fixed(t.atom)) {
      if (left != 0) terms.push_back({{}, left, here});
    } else {
      terms.push_back({t.atom, t.coefficient, here + interval(o.atom, b_.ranges) * Range{-1, -1}});
    }
  }
  for (const Linear::Term& t : r.terms)
    terms.push_back({{}, t.coefficient, interval(t.atom, b_.ranges) * Range{-1, -1}});
  solve(std::move(terms), constant);
}

void AliasQuery::Sum::add(const Term& t) {
  const Wide p = Wide(t.coefficient) * t.range.min, q = Wide(t.coefficient) * t.range.max;
  low += std::min(p, q);
  high += std::max(p, q);
}

// Is it known how far a term may move the sum?
bool AliasQuery::has_reach(const Term& t) {
  return bounded(t.range) && std::max(magnitude(t.range.min), magnitude(t.range.max)) <= (Wide(1) << 50);
}

// Can the sum not be 0?
bool AliasQuery::never_zero(const std::vector<Term>& terms, int64_t constant) {
  int64_t divisor = 0;
  Sum sum{constant, constant};
  bool known = true;
  for (const Term& t : terms) {
    divisor = std::gcd(divisor, t.coefficient);
    known = known && bounded(t.range);
    sum.add(t);
  }
  return (known && (sum.low > 0 || sum.high < 0)) || (divisor == 0 ? constant != 0 : constant % divisor != 0);
}

// The largest digits are 0 together if the others cannot make up for one step of them.
void AliasQuery::solve(std::vector<Term> terms, int64_t constant) {
  std::stable_sort(terms.begin(), terms.end(),
                   [](const Term& p, const Term& q) { return magnitude(p.coefficient) > magnitude(q.coefficient); });
  for (;;) {
    no_alias_ = no_alias_ || never_zero(terms, constant);
    if (terms.empty()) return;
    const Wide step = magnitude(terms[0].coefficient);
    size_t equal = 1;
    while (equal < terms.size() && magnitude(terms[equal].coefficient) == step) equal++;
    Sum rest{constant, constant};
    for (size_t k = equal; k < terms.size(); k++) {
      if (!has_reach(terms[k])) return;
      rest.add(terms[k]);
    }
    if (rest.high >= step || rest.low <= -step) return;
    if (equal == 1 && bool(terms[0].atom) && !has_load(terms[0].atom)) learn(terms[0].atom);
    terms.erase(terms.begin(), terms.begin() + std::ptrdiff_t(equal));
  }
}

bool AliasQuery::has(const Expr& atom) const {
  return std::any_of(known_.begin(), known_.end(), [&](const Expr& e) { return same_atom(e, atom); });
}
void AliasQuery::learn(const Expr& atom) {
  if (!has(atom)) known_.push_back(atom);
}

// x / n and x % n together are x.
void AliasQuery::close() {
  for (size_t sweep = 0; sweep <= known_.size(); sweep++)  // known_ grows on the way
    for (size_t j = 0; j < known_.size(); j++) {
      const Expr atom = known_[j];
      const Apply* low = as<Apply>(atom);
      const auto n = low && low->op == Op::FloorMod ? as_const_int(low->args[1]) : std::nullopt;
      if (!n || *n <= 0) continue;
      const Linear x = linear_form(low->args[0]);
      if (!knows_quotient(x, *n)) continue;
      if (x.single())
        learn(x.single());
      else
        equate(low->args[0], low->args[0]);
    }
}

bool AliasQuery::knows_quotient(const Linear& x, int64_t n) const {
  const Linear q = floor_div_linear(x, n, a_.ranges);
  return std::all_of(q.terms.begin(), q.terms.end(),
                     [&](const Linear::Term& t) { return has(t.atom) || (is_fixed(t.atom) && !has_load(t.atom)); });
}

}  // namespace tc
