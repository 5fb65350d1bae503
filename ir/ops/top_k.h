// The loops that say what a top-k is, and how to know them again: sorting has no formula, and schedules that sort in
// another way than by insertion need to know that it is sorting.
#pragma once
#include <optional>

#include "ir/tensor_fn.h"

namespace tc {

/// values and indices, of one shape, hold the most extreme elements of x along `axis`, most extreme first, equal ones
/// in the order of their positions; NaN is larger than any number. Either may be unused.
struct TopK {
  Buffer x, values, indices;  // indices: I64
  int axis = 0;
  bool largest = true;

  int64_t length() const { return x->shape[size_t(axis)].value; }
  int64_t k() const { return values->shape[size_t(axis)].value; }
};

/// Does a come before b, whatever their positions? Both are of x's compute type.
Expr precedes(const Expr& a, const Expr& b, bool largest);
/// Does a (at position p) come before b (at q)? All four are of x's compute type and I64.
Expr comes_before(const Expr& a, const Expr& p, const Expr& b, const Expr& q, bool largest);
/// A value that comes behind all others, but for its equals in front of it.
Expr last_in_order(DType t, bool largest);

/// For positions of extremes (ArgMax, ArgMin): is a strictly more extreme than b? NaN is the most extreme one at both ends.
Expr more_extreme(const Expr& a, const Expr& b, bool largest);
/// Is neither more extreme than the other?
Expr equally_extreme(const Expr& a, const Expr& b);

/// Insertion of one element after the other.
Stmt top_k_loops(const TopK& t);
/// Null unless the stage is exactly top_k_loops of something.
std::optional<TopK> match_top_k(const Stage& s);

}  // namespace tc
