#include "ir/language/rounding.h"

#include "ir/loop/build.h"

namespace tc::language {
namespace {

// A narrow float that was only widened on its way, or null.
Expr unwidened(const Expr& e, DType to) {
  if (const Cast* c = as<Cast>(e); c && c->value->dtype == to) return c->value;
  if (const auto v = as_const_number(e); v && is_float(e->dtype)) return make_const(to, *v);
  if (const Select* s = as<Select>(e)) {
    const Expr yes = unwidened(s->yes, to), no = unwidened(s->no, to);
    if (bool(yes) && bool(no)) return select(s->condition, yes, no);  // && of expressions is an expression
  }
  return {};
}

}  // namespace

Expr narrowed(const Expr& e, DType to) {
  if (e->dtype == to) return e;
  const Expr moved = unwidened(e, to);
  return moved ? moved : cast(to, e);
}

Stage rounding_stage(const Stage& of, const Buffer& from, const Buffer& to) {
  Stage c;
  c.name = of.name;
  c.scan = of.scan;
  Exprs index;
  for (const Axis& a : of.axes) {
    c.axes.push_back({make_var(a.var->name), a.extent});
    index.emplace_back(c.axes.back().var);
  }
  c.values = {cast(to->dtype, load(from, index))};
  c.outputs = {to};
  return c;
}

}  // namespace tc::language
