#include "passes/program/size_ends.h"

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
  const Expr e = max(a, b);
  return length(e) <= kLongest ? e : Expr();
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
      const Expr y = of(second);
      return bool(x) && (!bool(y) || has_symbol(x)) ? x : y;
    }
    case Op::FloorMod: {
      const Expr n = of(second);
      return n ? n - Expr(1) : x;
    }
    case Op::Sub: {
      const Range r = interval(second, ranges);
      return bool(x) && r.min != INT64_MIN ? x - Expr(r.min) : Expr();
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
