// Whether an access stays inside of its tensor, decided from constant sizes: the ranges of the axes, and the conditions of
// the where() that the access stands in.
#pragma once
#include "ir/loop/linear.h"

namespace tc::language {

/// What holds at one place of a formula. A value: inside of a where() a copy knows more.
class KnownFacts {
 public:
  /// Takes the values 0 .. extent - 1. An extent of 0 means that nothing is evaluated here.
  void add_axis(const Var& axis, int64_t extent);
  /// `condition` is true here, or false.
  void assume(const Expr& condition, bool holds);
  /// Is 0 <= e? Of scalar I64 expressions. "No" may also mean that it is not known.
  bool is_nonnegative(const Expr& e) const;
  /// Is 0 <= index < size?
  bool is_inside(const Expr& index, int64_t size) const;
  /// The values that it takes, as far as it is known: "-1 .. 8", "any".
  std::string range_text(const Expr& index) const;

 private:
  void add_fact(const Expr& least, const Expr& most, int64_t gap);  // most - least >= gap
  bool is_nonnegative(const Linear& l) const;

  Ranges ranges_;
  std::vector<Linear> facts_;  // each is at least 0
  bool dead_ = false;          // never evaluated
};

}  // namespace tc::language
