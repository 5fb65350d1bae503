// Conditions that are put together, and taken apart.
#pragma once
#include "ir/loop/ir.h"

namespace tc {

/// Both conditions, joined from the left as one writes it; null is a condition that always holds.
Expr both(const Expr& a, const Expr& b);
/// Appends what has to hold, each for itself, for `e` to hold; in the order in which it is written.
void conjuncts(const Expr& e, Exprs& list);

}  // namespace tc
