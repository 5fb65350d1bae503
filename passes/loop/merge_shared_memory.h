// merge_shared_memory: one allocation for shared arrays that live one after the other (CUDA).
#pragma once
#include "ir/loop/cuda_limits.h"
#include "ir/loop/ir.h"

namespace tc {

struct MergedShared {
  Stmt body;
  int64_t dynamic_bytes = 0;  // that the launch has to ask for; 0: the body's Shared buffers are static arrays
};

/// `nest`: block loops, Shared buffers, thread loops and the code of a thread with its barriers. See
/// merge_shared_memory.cc. Where there is more than kStaticSharedBytes, the one Shared buffer that is left is the
/// dynamic one.
MergedShared merge_shared_memory(const Stmt& nest);

}  // namespace tc
