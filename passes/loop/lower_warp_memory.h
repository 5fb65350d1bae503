// lower_warp_memory: buffers that the lanes of a warp share (CUDA).
#pragma once
#include "ir/loop/ir.h"

namespace tc {

/// Buffers of scope Warp become registers and shuffles; see lower_warp_memory.cc. `s`: any statement; what has no loop
/// of threads stays.
Stmt lower_warp_memory(const Stmt& s);

}  // namespace tc
