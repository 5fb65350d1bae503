// See lower_lanes.cc.
#pragma once
#include "ir/loop/ir.h"

namespace tc {

/// Leaves: no loop of kind Vector.
Stmt lower_lanes(const Stmt& s);

/// Whether the operation has a form on vectors of VL lanes for operands of that type.
bool op_has_lanes(Op op, DType operand);

/// Lanes never exceed this number; what is a multiple of it needs no partial vectors.
inline constexpr int64_t kMaxLanes = 16;

}  // namespace tc
