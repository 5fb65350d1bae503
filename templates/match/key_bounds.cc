#include "templates/match/key_bounds.h"

#include "ir/loop/build.h"

namespace tc {
namespace {

// Puts what it can into `bounds`; returns what else `condition` says, null for nothing.
Expr take_bounds(const Expr& condition, const Var& j, KeyBounds& bounds) {
  const Apply* a = as<Apply>(condition);
  if (!a) return condition;
  if (a->op == Op::And) {
    Expr rest;
    for (const Expr& e : a->args)
      if (const Expr more = take_bounds(e, j, bounds)) rest = rest ? rest && more : more;
    return rest;
  }
  if ((a->op != Op::Lt && a->op != Op::Le) || !is_int(a->args[0]->dtype)) return condition;
  const int64_t closed = a->op == Op::Le ? 1 : 0;
  const auto left = affine_in(a->args[0], {j}), right = affine_in(a->args[1], {j});
  const int64_t c = left && right ? left->coefficients[0] - right->coefficients[0] : 0;
  if (c != 1 && c != -1) return condition;
  if (c == 1) bounds.ends.push_back(right->rest - left->rest + Expr(closed));
  if (c == -1) bounds.begins.push_back(left->rest - right->rest + Expr(1 - closed));
  return {};
}

}  // namespace

KeyBounds key_bounds(const Expr& condition, const Var& j) {
  KeyBounds bounds;
  bounds.rest = take_bounds(condition, j, bounds);
  return bounds;
}

}  // namespace tc
