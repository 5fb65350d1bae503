#include "ir/loop/data.h"

#include <limits>

#include "ir/loop/build.h"
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

bool has_variables(const Exprs& list) {
  bool found = false;
  for (const Expr& e : list) walk(e, [&](const Expr& x) { return !(found = found || as<VarRef>(x)); });
  return found;
}

/// max(min(n, most), least), where n is one number in memory and both limits are 0 or more and have 31 bits: how many there are of
/// something. Products of such a number and sizes do not wrap; those of a tensor's elements may, however they are bounded.
bool is_bounded(const Expr& e) {
  const auto limit = [](const Apply* k) {
    const auto n = k ? as_const_int(k->args[1]) : std::nullopt;
    return n && *n >= 0 && *n <= std::numeric_limits<int32_t>::max();
  };
  const Apply* a = as<Apply>(e);
  const Apply* inner = a && a->op == Op::Max ? as<Apply>(a->args[0]) : nullptr;
  const Load* n = inner && inner->op == Op::Min ? as<Load>(inner->args[0]) : nullptr;
  return n && limit(a) && limit(inner) && !has_variables(n->index);
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
