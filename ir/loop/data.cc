#include "ir/loop/data.h"

#include "ir/loop/visit.h"

namespace tc {

bool holds_data(const Expr& e, const DataVars& vars) {
  bool data = false;
  walk(e, [&](const Expr& x) {
    const VarRef* v = as<VarRef>(x);
    const bool counts = x->dtype == DType::I64 || x->dtype == DType::Bool;
    data |= as<Load>(x) || (v && (!counts || vars.count(v->var.get()) != 0));
    const Apply* k = as<Apply>(x);
    return !data && !(k && k->op == Op::Index);
  });
  return data;
}

DataVars data_vars(const Stmt& s) {
  DataVars vars;
  walk(s, [&](const Stmt& x) {
    const Let* k = as<Let>(x);
    if (k && holds_data(k->value, vars)) vars.insert(k->var.get());
    return true;
  });
  return vars;
}

}  // namespace tc
