// sums_in_registers: short rows of sums live in registers (C).
#pragma once
#include "ir/loop/ir.h"

namespace tc {

/// See sums_in_registers.cc. Needs: loops over vectors in their last form (lower_lanes.h).
Stmt sums_in_registers(const Stmt& s);

}  // namespace tc
