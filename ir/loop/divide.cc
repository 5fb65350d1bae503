// Division of linear forms by constants, and the way back.
//   (a * 12 + b) / 12  ->  a + b / 12           (a * 64 + b) / 768  ->  a / 12      when 0 <= b < 64
//   x / 4 / 3          ->  x / 12               x % 768 / 64        ->  x / 64 % 12
//   x / 12 * 12 + x % 12  ->  x                 (x / 64 % 12) * 64 + x % 64  ->  x % 768
#include <algorithm>
#include <numeric>

#include "ir/loop/build.h"
#include "ir/loop/simplifier.h"

namespace tc {
namespace {

// Argument and constant divisor of floor_div / floor_mod by a positive constant.
struct Division {
  const Expr* value = nullptr;
  int64_t by = 0;
  explicit operator bool() const { return value != nullptr; }
};

Division match(const Expr& e, Op op) {
  auto* a = as<Apply>(e);
  if (!a || a->op != op || e->vector) return {};
  auto c = as_const_int(a->args[1]);
  if (!c || *c <= 0) return {};
  return {&a->args[0], *c};
}

// l = big * g + small, where the terms of `big` are those that g divides and the constant of `small` is in [0, g).
struct Parts {
  Linear big, small;
};

Parts take_multiples(const Linear& l, int64_t g) {
  Parts p;
  p.big.constant = floor_div_int(l.constant, g);
  p.small.constant = floor_mod_int(l.constant, g);
  for (const auto& t : l.terms) {
    if (t.coefficient % g == 0)
      p.big.add(t.atom, t.coefficient / g);
    else
      p.small.add(t.atom, t.coefficient);
  }
  return p;
}

// floor(l / c) when it is the same number for every value of l.
std::optional<int64_t> constant_quotient(const Linear& l, int64_t c, const Ranges& ranges) {
  Range r = interval(l, ranges);
  if (!bounded(r) || floor_div_int(r.min, c) != floor_div_int(r.max, c)) return std::nullopt;
  return floor_div_int(r.min, c);
}

// Splits by a common factor g of c and some coefficients such that the rest stays below g:
// rest = g * big + small with floor(small / g) constant. Returns g, or 0.
int64_t split_by_factor(const Linear& rest, int64_t c, const Ranges& ranges, Parts& out) {
  std::vector<int64_t> factors;
  for (const auto& t : rest.terms) {
    int64_t g = std::gcd(t.coefficient, c);
    if (g > 1) factors.push_back(g);
  }
  std::sort(factors.rbegin(), factors.rend());
  for (int64_t g : factors) {
    Parts p = take_multiples(rest, g);
    auto q = constant_quotient(p.small, g, ranges);
    if (p.big.terms.empty() || !q) continue;
    p.big.constant += *q;
    p.small.constant -= *q * g;
    out = std::move(p);
    return g;
  }
  return 0;
}

// Inner "mod a" disappears under "mod c" when c divides a.
Linear drop_inner_mod(const Linear& l, int64_t c) {
  Linear out;
  out.constant = l.constant;
  for (const auto& t : l.terms) {
    Division m = match(t.atom, Op::FloorMod);
    if (m && m.by % c == 0)
      out.add(linear_form(*m.value), t.coefficient);
    else
      out.add(t.atom, t.coefficient);
  }
  return out;
}

Linear one(const Expr& atom) {
  Linear l;
  l.add(atom, 1);
  return l;
}

bool exact_atom(const Expr& e, const Ranges& ranges) {
  if (bounded(interval(e, ranges))) return true;
  if (auto* v = as<VarRef>(e)) return !ranges.contains(v->var.get()) || ranges.at(v->var.get()).min != INT64_MIN;
  if (auto* a = as<Apply>(e)) {
    const auto has_bounds = [&](const Expr& x) { return bounded(interval(x, ranges)); };
    if (!a->args.empty() && std::all_of(a->args.begin(), a->args.end(), has_bounds))
      return false;  // it may leave 64 bits
    return std::all_of(a->args.begin(), a->args.end(), [&](const Expr& x) { return exact_atom(x, ranges); });
  }
  return false;
}

bool same(const Linear& a, const Linear& b) {
  Linear difference = a;
  difference.add(b, -1);
  return difference.terms.empty() && difference.constant == 0;
}

// Whether the atom is floor(x / n), however it is written: (a * 256 + b) / 48 is x / 3 where x = a * 16 + b / 16.
bool is_quotient(const Expr& atom, const Linear& x, int64_t n, const Ranges& ranges) {
  const Expr quotient = floor_div_linear(x, n, ranges).single();
  if (bool(quotient) && same_atom(atom, quotient)) return true;
  const Division d = match(atom, Op::FloorDiv);
  if (!d || d.by % n != 0) return false;
  const Linear y = linear_form(*d.value);
  return is_exact(y, ranges) && same(floor_div_linear(y, d.by / n, ranges), x);
}

// One pair of terms that belong together replaced by its sum; false if there is none.
bool recombine_once(Linear& l, const Ranges& ranges) {
  for (size_t i = 0; i < l.terms.size(); ++i) {
    Division low = match(l.terms[i].atom, Op::FloorMod);
    if (!low) continue;
    int64_t k = l.terms[i].coefficient, up = 0;
    if (__builtin_mul_overflow(k, low.by, &up)) continue;
    Linear x = linear_form(*low.value);
    if (!is_exact(x, ranges)) continue;
    for (size_t j = 0; j < l.terms.size(); ++j) {
      if (j == i || l.terms[j].coefficient != up) continue;
      Division high = match(l.terms[j].atom, Op::FloorMod);
      Linear joined;
      if (is_quotient(l.terms[j].atom, x, low.by, ranges))
        joined = x;
      else if (high && is_quotient(*high.value, x, low.by, ranges))
        joined = floor_mod_linear(x, low.by * high.by, ranges);
      else
        continue;
      Linear out;
      out.constant = l.constant;
      for (size_t n = 0; n < l.terms.size(); ++n) {
        if (n == std::min(i, j)) out.add(joined, k);
        if (n != i && n != j) out.add(l.terms[n].atom, l.terms[n].coefficient);
      }
      l = std::move(out);
      return true;
    }
  }
  return false;
}

}  // namespace

bool is_exact(const Linear& l, const Ranges& ranges) {
  constexpr __int128 kMost = __int128(1) << 62;  // differences of two stay within 64 bits
  const auto magnitude = [](int64_t n) { return n < 0 ? -__int128(n) : __int128(n); };
  __int128 most = magnitude(l.constant);
  for (const Linear::Term& t : l.terms) {
    if (!exact_atom(t.atom, ranges)) return false;
    const Range r = interval(t.atom, ranges);
    if (bounded(r)) most += magnitude(t.coefficient) * std::max(magnitude(r.min), magnitude(r.max));
    if (most >= kMost) return false;
  }
  return most < kMost;
}

Range named_range(const Expr& value, const Ranges& ranges) {
  const Range r = value_interval(value, ranges);
  if (bounded(r) || value->dtype != DType::I64) return r;
  return is_exact(linear_form(value), ranges) ? interval(value, ranges) : Range{INT64_MIN, INT64_MAX};
}

void assume_name(Ranges& ranges, const Let& k) {
  if (!is_float(k.value->dtype) && !k.value->vector) ranges[k.var.get()] = named_range(k.value, ranges);
}

Linear floor_div_linear(const Linear& l, int64_t c, const Ranges& ranges) {
  if (c == 1) return l;
  auto [quotient, rest] = take_multiples(l, c);
  if (auto q = constant_quotient(rest, c, ranges)) {
    quotient.constant += *q;
    return quotient;
  }
  Parts p;
  if (int64_t g = split_by_factor(rest, c, ranges, p)) {
    quotient.add(floor_div_linear(p.big, c / g, ranges));
    return quotient;
  }
  if (rest.terms.size() == 1 && rest.terms[0].coefficient == 1) {
    Division d = match(rest.terms[0].atom, Op::FloorDiv), m = match(rest.terms[0].atom, Op::FloorMod);
    int64_t product = 0;
    if (d && !__builtin_mul_overflow(d.by, c, &product)) {
      Linear inner = linear_form(*d.value);
      inner.constant += rest.constant * d.by;
      quotient.add(floor_div_linear(inner, product, ranges));
      return quotient;
    }
    if (m && rest.constant == 0 && m.by % c == 0) {
      Linear inner = floor_div_linear(linear_form(*m.value), c, ranges);
      quotient.add(floor_mod_linear(inner, m.by / c, ranges));
      return quotient;
    }
  }
  quotient.add(one(floor_div(to_expr(rest), Expr(c))));
  return quotient;
}

Linear floor_mod_linear(const Linear& l, int64_t c, const Ranges& ranges) {
  if (c == 1) return {};
  Linear rest = take_multiples(drop_inner_mod(l, c), c).small;
  if (auto q = constant_quotient(rest, c, ranges)) {
    rest.constant -= *q * c;
    return rest;
  }
  Parts p;
  if (int64_t g = split_by_factor(rest, c, ranges, p)) {
    Linear out;
    out.add(floor_mod_linear(p.big, c / g, ranges), g);
    out.add(p.small);
    return out;
  }
  return one(floor_mod(to_expr(rest), Expr(c)));
}

Linear recombine(Linear l, const Ranges& ranges) {
  while (recombine_once(l, ranges)) {
  }
  return l;
}

}  // namespace tc
