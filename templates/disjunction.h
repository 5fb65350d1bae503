// Truths that are written shorter.
#pragma once
#include "ir/loop/ir.h"

namespace tc {

/// The same truth as a disjunction without parts that say nothing more:
///   a && true = a      (a && b) || (a && !b) = a      a || (a && b) = a      x > y || x == y = x >= y
/// `test` itself where that would be no shorter to find. Parts are evaluated or not in another order: they have no effects.
Expr shorter(const Expr& test);

}  // namespace tc
