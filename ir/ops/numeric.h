// Small helpers of the families of numeric kernels: exact integer division, constants of parameters, row attributes.
#pragma once
#include "ir/ops/helpers.h"

namespace tc {

inline Expr divided_up(const Expr& a, int64_t b) { return b == 1 ? a : floor_div(a + (b - 1), b); }
inline int64_t ceil_quotient(int64_t a, int64_t b) { return a / b + (a % b != 0 && (a > 0) == (b > 0) ? 1 : 0); }

/// True if the operand is a compile-time constant of zeros only.
bool is_zero_constant(const OpBuilder& op, int i);
/// The only element of a tensor of size 1, whatever its rank.
Expr only_element(const Tensor& t);
/// A float attribute as a number of type t.
inline Expr parameter(DType t, float v) { return make_const(t, double(v)); }

// Attributes of rows.
inline AttrSpec int_attr(std::string name, int64_t otherwise) { return {std::move(name), Attr(otherwise)}; }
inline AttrSpec float_attr(std::string name, float otherwise) { return {std::move(name), Attr(otherwise)}; }
inline AttrSpec string_attr(std::string name, std::string otherwise) {
  return {std::move(name), Attr(std::move(otherwise))};
}
inline AttrSpec ints_attr(std::string name, std::vector<int64_t> otherwise) {
  return {std::move(name), Attr(std::move(otherwise))};
}
/// An attribute without a default.
inline AttrSpec optional_attr(std::string name) { return {std::move(name), Attr()}; }

}  // namespace tc
