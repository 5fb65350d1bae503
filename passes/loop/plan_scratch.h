// plan_scratch: the temporaries of a kernel in its scratch memory.
#pragma once
#include "ir/loop/ir.h"

namespace tc {

struct PlannedScratch {
  Stmt body;
  Buffer scratch;     // bytes, the kernel's scratch parameter; null if the kernel needs none
  int64_t bytes = 0;  // of all chunks together
};

/// Workspace and large Stack buffers become Aliases into one scratch parameter. Buffers inside a Parallel loop get one
/// copy per chunk. `align`: bytes.
PlannedScratch plan_scratch(const Stmt& s, int64_t align);

}  // namespace tc
