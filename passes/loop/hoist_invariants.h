// hoist_invariants: loop-invariant code motion.
#pragma once
#include "ir/loop/ir.h"

namespace tc {

/// What a loop computes anew in every iteration, though it does not change, moves in front of it, as a Let. Only what
/// is evaluated in every iteration of a loop that runs at least once, or cannot fault. Bits stay the same.
Stmt hoist_invariants(const Stmt& s);

}  // namespace tc
