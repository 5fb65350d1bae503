// What a mask says by the positions of keys: which are in front of the first, or behind the last, that a query sees.
#pragma once
#include "ir/loop/visit.h"

namespace tc {

struct KeyBounds {
  std::vector<Expr> begins;  // j from each of these on
  std::vector<Expr> ends;    // j below each of these
  Expr rest;                 // what else has to hold; null: nothing
};
/// Of a conjunction: `condition` holds where j is within the bounds and the rest holds.
KeyBounds key_bounds(const Expr& condition, const Var& j);

}  // namespace tc
