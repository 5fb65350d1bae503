#include "ir/loop/raises.h"

#include "ir/loop/visit.h"

namespace tc {

bool raises_status(const Expr& e) {
  bool found = false;
  walk(e, [&](const Expr& x) {
    const Apply* a = as<Apply>(x);
    found = found || (a && a->op == Op::Index);
    return !found;
  });
  return found;
}

bool depends_on_data(const Expr& index) {
  bool found = raises_status(index);
  walk(index, [&](const Expr& x) { return !(found = found || as<Load>(x)); });
  return found;
}

}  // namespace tc
