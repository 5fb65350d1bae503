#include "templates/zero_point.h"

#include "ir/loop/build.h"

namespace tc {

ZeroPointForm zero_point_form(const Expr& e) {
  const Apply* k = as<Apply>(e);
  const bool shifted = k && k->op == Op::Sub;
  const Cast* c = as<Cast>(shifted ? k->args[0] : e);
  const Load* l = c && e->dtype == DType::I32 ? as<Load>(c->value) : nullptr;
  if (!l || (l->buffer->dtype != DType::I8 && l->buffer->dtype != DType::U8)) return {};
  return {c->value, shifted ? k->args[1] : Expr()};
}

std::optional<double> number_of(const Expr& e) {
  const Cast* c = as<Cast>(e);
  return as_const_number(c ? c->value : e);
}

}  // namespace tc
