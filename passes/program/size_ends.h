// Expressions over the sizes that a caller chooses.
#pragma once
#include <functional>

#include "ir/loop/linear.h"

namespace tc {

bool has_symbol(const Expr& e);
/// One of a size that has no upper bound?
bool has_open_symbol(const Expr& e, const Ranges& symbols);
/// One that is not among the symbols?
bool has_other_variable(const Expr& e, const Ranges& symbols);

/// `e` simplified; null where it is so long that it would cost more to compute and to read than it saves.
Expr if_short(const Expr& e, const Ranges& symbols);
/// Not less than either, and hardly more than the larger one; null where that is too long to say.
Expr larger(const Expr& a, const Expr& b, const Ranges& symbols);

/// Is `a` at most `b`, whatever the sizes are? False where that is not known.
bool never_more(const Expr& a, const Expr& b, const Ranges& symbols);

/// What is known of the parts of an expression.
struct SizeTerms {
  std::function<Expr(const Expr&)>
      at_most;  // of a leaf: an expression over the symbols that it is never above; null: unknown
  std::function<bool(const Expr&)>
      may_be_negative;  // such is no factor of a product with a size, and no position from the front
  std::function<Expr(const Expr&)> exactly;  // the expression over the symbols that it is; null: unknown
  const Ranges& symbols;
};
/// An expression over the symbols that `e`, a scalar of I64, is never above; null: not known.
Expr upper_bound(const Expr& e, const SizeTerms& terms);

}  // namespace tc
