#include "ir/loop/conditions.h"

#include "ir/loop/build.h"

namespace tc {

Expr both(const Expr& a, const Expr& b) {
  if (!a || !b) return a ? a : b;
  const Apply* k = as<Apply>(b);
  return k && k->op == Op::And ? both(both(a, k->args[0]), k->args[1]) : a && b;
}

void conjuncts(const Expr& e, Exprs& list) {
  const Apply* k = as<Apply>(e);
  if (!k || k->op != Op::And) return list.push_back(e);
  for (const Expr& a : k->args) conjuncts(a, list);
}

}  // namespace tc
