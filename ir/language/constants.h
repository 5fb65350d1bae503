// Arithmetic on constants without an element type.
#pragma once
#include "ir/language/evaluator.h"

namespace tc::language {

inline bool is_number(const Meaning& m) {
  return std::holds_alternative<int64_t>(m) || std::holds_alternative<double>(m);
}
inline bool is_constant(const Meaning& m) { return !std::holds_alternative<Expr>(m); }

/// Two constants and an infix operator; integers exactly: a quotient of integers that is no integer is a number.
Meaning constant_infix(const Place& at, const std::string& symbol, const Meaning& a, const Meaning& b);
/// min, max, abs, sqrt, floor, ceil of constants; nullopt for other functions.
std::optional<Meaning> constant_function(const Place& at, Op op, const std::vector<Meaning>& args);
/// A constant as an expression of an element type that it fits in.
Expr constant_expr(const Meaning& m, DType type, const Place& at);

}  // namespace tc::language
