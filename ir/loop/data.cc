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

namespace {

/// max(min(x, most), 0): arithmetic on what is bounded does not wrap.
bool is_bounded(const Expr& e) {
  const auto constant = [](const Expr& x) { return as<IntImm>(x) != nullptr; };
  const Apply* a = as<Apply>(e);
  const Apply* inner = a && a->op == Op::Max && constant(a->args[1]) ? as<Apply>(a->args[0]) : nullptr;
  return inner && inner->op == Op::Min && as<Load>(inner->args[0]) && constant(inner->args[1]);
}

}  // namespace

bool names_data(const Expr& value, const DataVars& vars) { return !is_bounded(value) && holds_data(value, vars); }

DataVars data_vars(const Stmt& s) {
  DataVars vars;
  walk(s, [&](const Stmt& x) {
    const Let* k = as<Let>(x);
    if (k && names_data(k->value, vars)) vars.insert(k->var.get());
    return true;
  });
  return vars;
}

}  // namespace tc
