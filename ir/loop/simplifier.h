// The expression simplifier with its context: the ranges that hold where the expression stands. Used by simplify.cc
// (statements) and divide.cc; others call simplify(), and assume_name() where they meet a Let.
#pragma once
#include <unordered_map>

#include "ir/loop/linear.h"

namespace tc {

/// floor(l / c) and l mod c (in [0, c)) for c > 0, as simple as the ranges allow.
Linear floor_div_linear(const Linear& l, int64_t c, const Ranges& ranges);
Linear floor_mod_linear(const Linear& l, int64_t c, const Ranges& ranges);

/// Joins the parts that a division tore apart: x / c * c + x % c becomes x.
Linear recombine(Linear l, const Ranges& ranges);

/// True if the arithmetic of `l` cannot wrap: its atoms are loop variables, sizes and bounded values, not tensor data.
bool is_exact(const Linear& l, const Ranges& ranges);

/// What a Let of `value`, an integer, says of its name. Places are taken not to leave 64 bits; what is computed of tensor data may
/// wrap, and then is any number.
Range named_range(const Expr& value, const Ranges& ranges);
/// Adds that to the ranges around `k`; nothing of a float or a vector.
void assume_name(Ranges& ranges, const Let& k);

class Simplifier {
 public:
  explicit Simplifier(Ranges ranges, int depth = 0) : ranges_(std::move(ranges)), depth_(depth) {}
  Expr expr(const Expr& e);
  Range interval_of(const Expr& e) const { return value_interval(e, ranges_); }
  const Ranges& ranges() const { return ranges_; }

 private:
  Expr simplify(const Expr& e);
  Expr application(const Expr& e, const Apply& a);
  Expr logic(const Expr& e, const Apply& a);
  Expr negation(const Expr& e, const Expr& operand);
  Expr arithmetic(Op op, const Exprs& args);
  Expr division(Op op, const Exprs& args);
  Expr comparison(Op op, const Expr& a, const Expr& b);
  Expr bound(Op op, const Expr& a, const Expr& b);
  Expr selection(const Expr& e, const Select& s);
  Expr under(const Expr& condition, bool holds, const Expr& e);

  Ranges ranges_;
  int depth_;                                                        // of nested conditions
  std::unordered_map<const ExprNode*, std::pair<Expr, Expr>> memo_;  // node -> (the node kept alive, its result)
};

}  // namespace tc
