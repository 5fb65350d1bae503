// See vectorize_loops.cc.
#pragma once
#include "ir/loop/ir.h"

namespace tc {

/// Needs: flat buffers.
Stmt vectorize_loops(const Stmt& s);

}  // namespace tc
