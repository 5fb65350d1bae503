#include "passes/analysis/index_tests.h"

#include "ir/loop/visit.h"

namespace tc {

bool tests_indices(const TensorFn& fn) {
  bool found = false;
  auto look = [&](const Expr& e) {
    const Apply* a = as<Apply>(e);
    found = found || (a && a->op == Op::Index);
    return !found;
  };
  for (const Stage& s : fn.stages) {
    for (const Exprs* list : {&s.values, &s.init})
      for (const Expr& e : *list)
        if (e) walk(e, look);
    if (s.nest) found = true;
  }
  return found;
}

}  // namespace tc
