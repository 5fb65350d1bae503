// partition_loops: loops are cut where their conditions are decided.
#pragma once
#include "ir/loop/ir.h"
#include "ir/loop/simplify.h"

namespace tc {

/// Loops with constant bounds are cut where a condition, a select or a min/max of their body changes its mind, so that
/// every part has constant bounds and no test on the loop's variable. At most four parts per loop. Simplifies on the
/// way.
Stmt partition_loops(const Stmt& s, const Ranges& ranges = {});

}  // namespace tc
