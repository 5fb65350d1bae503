// round_to_bytes: vectors of floats that are quantised take as few operations as they can.
#pragma once
#include "ir/loop/ir.h"

namespace tc {

/// Vectors that are rounded and saturated to bytes are bounded first, are divided by a constant without a division, and are
/// rounded as they become integers; what dequantises them again keeps the rounded floats. See round_to_bytes.cc.
Stmt round_to_bytes(const Stmt& s);

/// Is round(quotient) by `d`, as tc_quotient of the vector header computes it with fused multiplications and additions, the
/// round(x / d) of every x for which that is `most` at most?
bool quotient_rounds_exactly(float d, int most);

}  // namespace tc
