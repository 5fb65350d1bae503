// Conditions that are put together.
#pragma once
#include "ir/loop/ir.h"

namespace tc {

/// Both conditions, joined from the left as one writes it; null is a condition that always holds.
Expr both(const Expr& a, const Expr& b);

}  // namespace tc
