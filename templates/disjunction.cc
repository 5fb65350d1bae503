#include "templates/disjunction.h"

#include <algorithm>

#include "ir/loop/build.h"
#include "ir/loop/visit.h"

namespace tc {
namespace {

using Conjunction = Exprs;                     // of truths that are neither && nor ||
using Disjunction = std::vector<Conjunction>;  // without parts: false; of an empty one: true

constexpr size_t kMostParts = 16;

bool contains(const Conjunction& c, const Expr& e) {
  return std::any_of(c.begin(), c.end(), [&](const Expr& x) { return structurally_equal(x, e); });
}

bool contains_all(const Conjunction& c, const Conjunction& of) {
  return std::all_of(of.begin(), of.end(), [&](const Expr& e) { return contains(c, e); });
}

/// Null where there are too many parts.
std::optional<Disjunction> parts_of(const Expr& e) {
  if (const auto known = as_const_int(e)) return *known ? Disjunction{{}} : Disjunction{};
  const Apply* k = as<Apply>(e);
  if (!k || (k->op != Op::And && k->op != Op::Or)) return Disjunction{{e}};
  const auto a = parts_of(k->args[0]), b = parts_of(k->args[1]);
  if (!a || !b || a->size() * b->size() > kMostParts || a->size() + b->size() > kMostParts) return {};
  Disjunction all;
  if (k->op == Op::Or) {
    all = *a;
    all.insert(all.end(), b->begin(), b->end());
    return all;
  }
  for (const Conjunction& x : *a)
    for (const Conjunction& y : *b) {
      all.push_back(x);
      for (const Expr& l : y)
        if (!contains(x, l)) all.back().push_back(l);
    }
  return all;
}

/// a of (a && b) and (a && !b).
std::optional<Conjunction> whatever_holds(const Conjunction& x, const Conjunction& y) {
  if (x.size() != y.size()) return {};
  for (const Expr& l : y) {
    const Apply* k = as<Apply>(l);
    if (!k || k->op != Op::Not || !contains(x, k->args[0])) continue;
    Conjunction rest;
    for (const Expr& e : x)
      if (!structurally_equal(e, k->args[0])) rest.push_back(e);
    if (contains_all(y, rest)) return rest;
  }
  return {};
}

/// x >= y of x > y and x == y.
std::optional<Conjunction> not_beyond(const Conjunction& x, const Conjunction& y) {
  const Apply *a = x.size() == 1 ? as<Apply>(x[0]) : nullptr, *b = y.size() == 1 ? as<Apply>(y[0]) : nullptr;
  if (!a || !b || (a->op != Op::Gt && a->op != Op::Lt) || b->op != Op::Eq) return {};
  if (!structurally_equal(a->args[0], b->args[0]) || !structurally_equal(a->args[1], b->args[1])) return {};
  return Conjunction{apply(a->op == Op::Gt ? Op::Ge : Op::Le, a->args)};
}

std::optional<Conjunction> joined(const Conjunction& x, const Conjunction& y) {
  if (contains_all(y, x)) return x;
  if (auto all = whatever_holds(x, y)) return all;
  return not_beyond(x, y);
}

/// One join of two parts, if there is one.
bool join_two(Disjunction& d) {
  for (size_t i = 0; i < d.size(); ++i)
    for (size_t j = 0; j < d.size(); ++j)
      if (auto one = i == j ? std::nullopt : joined(d[i], d[j])) {
        d[std::min(i, j)] = std::move(*one);
        d.erase(d.begin() + int64_t(std::max(i, j)));
        return true;
      }
  return false;
}

}  // namespace

Expr shorter(const Expr& test) {
  auto d = parts_of(test);
  if (!d) return test;
  while (join_two(*d)) continue;
  Expr any;
  for (const Conjunction& c : *d) {
    Expr all;
    for (const Expr& e : c) all = all ? apply(Op::And, {all, e}) : e;
    if (!all) return make_int(DType::Bool, 1);
    any = any ? apply(Op::Or, {any, all}) : all;
  }
  return any ? any : make_int(DType::Bool, 0);
}

}  // namespace tc
