#include "passes/program/size_ends.h"

#include <algorithm>
#include <map>
#include <optional>

#include "ir/loop/build.h"
#include "ir/loop/simplify.h"
#include "ir/loop/visit.h"
#include "ir/open_size.h"

namespace tc {
namespace {

/// Longer ends would cost more to compute and to read than they save.
constexpr int kLongest = 24;

int length(const Expr& e) {
  int n = 0;
  walk(e, [&](const Expr&) { return ++n <= kLongest; });
  return n;
}

template <class F>
bool has_variable(const Expr& e, const F& f) {
  bool found = false;
  walk(e, [&](const Expr& x) {
    const VarRef* v = as<VarRef>(x);
    return !(found = found || (v && f(v->var)));
  });
  return found;
}

constexpr int64_t kMostTried = 20'000;  // sizes, and pairs of them
constexpr int64_t kSlack = 2;           // elements more than needed are worth a plain end

using Values = std::vector<std::pair<Var, int64_t>>;

/// The number that `e` is for these values of its variables; nothing where it does not fit.
std::optional<int64_t> number_of(const Expr& e, const Values& values) {
  if (const auto c = as_const_int(e)) return c;
  if (const VarRef* v = as<VarRef>(e)) {
    for (const auto& [var, value] : values)
      if (var == v->var) return value;
    return {};
  }
  const Apply* a = as<Apply>(e);
  if (!a || a->args.size() != 2) return {};
  const auto x = number_of(a->args[0], values), y = number_of(a->args[1], values);
  if (!x || !y) return {};
  int64_t r = 0;
  switch (a->op) {
    case Op::Add: return __builtin_add_overflow(*x, *y, &r) ? std::nullopt : std::optional(r);
    case Op::Sub: return __builtin_sub_overflow(*x, *y, &r) ? std::nullopt : std::optional(r);
    case Op::Mul: return __builtin_mul_overflow(*x, *y, &r) ? std::nullopt : std::optional(r);
    case Op::Min: return std::min(*x, *y);
    case Op::Max: return std::max(*x, *y);
    case Op::FloorDiv: return *y > 0 ? std::optional(floor_div_int(*x, *y)) : std::nullopt;
    default: return {};
  }
}

/// What a - b is at most, and at least, for all sizes that the symbols can be; nothing where these are too many to try.
std::optional<Range> tried(const Expr& a, const Expr& b, const Ranges& symbols) {
  Values values;
  std::vector<Range> ranges;
  int64_t all = 1;
  for (const Expr& e : {a, b})
    walk(e, [&](const Expr& x) {
      const VarRef* v = as<VarRef>(x);
      if (!v || std::any_of(values.begin(), values.end(), [&](const auto& k) { return k.first == v->var; }))
        return true;
      const auto r = symbols.find(v->var.get());
      const int64_t n = r == symbols.end() || r->second.min < 0 || r->second.max >= kMostTried
                            ? kMostTried + 1
                            : r->second.max - r->second.min + 1;
      all = std::min(all, kMostTried) * n;
      if (all > kMostTried) return true;
      values.push_back({v->var, r->second.min});
      ranges.push_back(r->second);
      return true;
    });
  if (all > kMostTried) return {};
  Range apart = {INT64_MAX, INT64_MIN};
  for (bool more = true; more;) {
    const auto x = number_of(a, values), y = number_of(b, values);
    int64_t difference = 0;
    if (!x || !y || __builtin_sub_overflow(*x, *y, &difference)) return {};
    apart = {std::min(apart.min, difference), std::max(apart.max, difference)};
    size_t k = 0;
    while (k < values.size() && values[k].second == ranges[k].max) values[k].second = ranges[k].min, k++;
    more = k < values.size();
    if (more) values[k].second++;
  }
  return apart;
}

/// A sum of products of variables, by their numbers in a list of them, each with its factor.
using Polynomial = std::map<std::vector<size_t>, int64_t>;

/// Nothing where something else than sums and products stands, or a number that 64 bits do not hold.
std::optional<Polynomial> polynomial(const Expr& e, std::vector<Var>& variables) {
  if (const auto c = as_const_int(e)) return Polynomial{{{}, *c}};
  if (const VarRef* v = as<VarRef>(e)) {
    const size_t k = size_t(std::find(variables.begin(), variables.end(), v->var) - variables.begin());
    if (k == variables.size()) variables.push_back(v->var);
    return Polynomial{{{k}, 1}};
  }
  const Apply* a = as<Apply>(e);
  if (!a || (a->op != Op::Add && a->op != Op::Sub && a->op != Op::Mul)) return {};
  const auto x = polynomial(a->args[0], variables), y = x ? polynomial(a->args[1], variables) : std::nullopt;
  if (!y) return {};
  Polynomial all = a->op == Op::Mul ? Polynomial() : *x;
  bool fits = true;
  const auto add = [&](const std::vector<size_t>& of, int64_t factor) {
    int64_t& own = all[of];
    fits = fits && !__builtin_add_overflow(own, factor, &own);
  };
  if (a->op != Op::Mul)
    for (const auto& [of, factor] : *y) add(of, a->op == Op::Add ? factor : -factor);
  else
    for (const auto& [left, m] : *x)
      for (const auto& [right, n] : *y) {
        std::vector<size_t> of = left;
        of.insert(of.end(), right.begin(), right.end());
        std::sort(of.begin(), of.end());
        int64_t factor = 0;
        fits = fits && !__builtin_mul_overflow(m, n, &factor);
        add(of, factor);
      }
  return fits ? std::optional(std::move(all)) : std::nullopt;
}

/// What x / y is at most, for an x of `most` at most: a size less where that is a product with y less one.
Expr quotient(const Expr& most, const Expr& y, const Ranges& ranges) {
  if (!y || interval(y, ranges).min < 1) return {};
  const Expr end = simplify(most + Expr(1), ranges);
  const Apply* product = as<Apply>(end);
  if (!product || product->op != Op::Mul) return {};
  for (const size_t k : {size_t(0), size_t(1)})
    if (structurally_equal(product->args[k], y)) return product->args[1 - k] - Expr(1);
  return {};
}

}  // namespace

bool has_symbol(const Expr& e) {
  return has_variable(e, [](const Var&) { return true; });
}

bool has_open_symbol(const Expr& e, const Ranges& ranges) {
  return has_variable(e, [&](const Var& v) {
    const auto r = ranges.find(v.get());
    return r != ranges.end() && is_open(r->second.max);
  });
}

bool has_other_variable(const Expr& e, const Ranges& symbols) {
  return has_variable(e, [&](const Var& v) { return !symbols.contains(v.get()); });
}

Expr if_short(const Expr& e, const Ranges& ranges) { return length(e) <= kLongest ? simplify(e, ranges) : Expr(); }

Expr larger(const Expr& a, const Expr& b, const Ranges& ranges) {
  if (structurally_equal(a, b)) return a;
  const Range apart = interval(simplify(a - b, ranges), ranges);
  if (apart.min >= 0) return a;
  if (apart.max <= 0) return b;
  // Quotients of one size compare by all that it can be; one that is hardly less is not worth a maximum.
  if (const auto known = tried(a, b, ranges)) {
    if (known->min >= 0) return a;
    if (known->max <= 0) return b;
    if (-known->min <= std::min(kSlack, known->max)) return simplify(a + Expr(-known->min), ranges);
    if (known->max <= kSlack) return simplify(b + Expr(known->max), ranges);
  }
  const Expr e = max(a, b);
  return length(e) <= kLongest ? e : Expr();
}

bool never_more(const Expr& a, const Expr& b, const Ranges& symbols) {
  std::vector<Var> variables;
  if (const auto apart = polynomial(a - b, variables))
    if (std::all_of(apart->begin(), apart->end(),
                    [](const auto& t) { return t.first.empty() ? t.second <= 0 : t.second == 0; }))
      return true;
  if (interval(simplify(a - b, symbols), symbols).max <= 0) return true;
  const auto known = tried(a, b, symbols);
  return known && known->max <= 0;
}

Expr upper_bound(const Expr& e, const SizeTerms& terms) {
  if (const Expr known = terms.at_most(e)) return known;
  const Ranges& ranges = terms.symbols;
  const auto of = [&](const Expr& x) { return upper_bound(x, terms); };
  if (const Cast* c = as<Cast>(e); c && e->dtype == DType::I64 && is_int(c->value->dtype)) return of(c->value);
  if (const Select* k = as<Select>(e)) {
    const Expr yes = of(k->yes), no = yes ? of(k->no) : Expr();
    return no ? max(yes, no) : no;
  }
  const Apply* a = as<Apply>(e);
  if (!a || a->args.size() != 2) return {};
  const Expr x = of(a->args[0]), &second = a->args[1];
  const auto c = as_const_int(second);
  switch (a->op) {
    case Op::Index: {  // below 0 it counts from the end
      const Expr y = of(second);
      const bool is_front = bool(x) && !terms.may_be_negative(a->args[0]);
      return is_front && (!bool(y) || has_symbol(x)) ? x : y ? y - Expr(1) : y;
    }
    case Op::Min: {
      Expr y = of(second);
      if (bool(x) && bool(y) && interval(simplify(x - y, ranges), ranges).min >= 0) return y;
      return bool(x) && (!bool(y) || has_symbol(x)) ? x : y;
    }
    case Op::FloorMod: {
      const Expr n = of(second);
      return n ? n - Expr(1) : x;
    }
    case Op::Sub: {
      int64_t least = interval(second, ranges).min;
      if (least < 0 && !terms.may_be_negative(second)) least = 0;
      return bool(x) && least != INT64_MIN ? x - Expr(least) : Expr();
    }
    case Op::Mul: {
      if (c) return bool(x) && *c >= 0 ? x * second : Expr();
      const Expr y = x ? of(second) : x;
      const bool grows = bool(y) && (has_symbol(x) || has_symbol(y));
      return grows && !terms.may_be_negative(a->args[0]) && !terms.may_be_negative(second) ? x * y : Expr();
    }
    case Op::Div:
    case Op::FloorDiv:
      if (c) return bool(x) && *c > 0 && interval(x, ranges).min >= 0 ? floor_div(x, second) : Expr();
      return x ? quotient(x, terms.exactly(second), ranges) : x;
    default: break;
  }
  const Expr y = of(second);
  if (!bool(x) || !bool(y)) return {};
  return a->op == Op::Add ? x + y : a->op == Op::Max ? max(x, y) : Expr();
}

}  // namespace tc
