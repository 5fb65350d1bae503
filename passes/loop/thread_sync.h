// thread_sync: barriers where threads of a block wait for each other (CUDA).
#pragma once
#include "ir/loop/ir.h"

namespace tc {

/// Barriers between accesses of shared memory, and of global memory that the launch both stores and reads, that threads of a
/// block may make to one element; none where no conflict is possible or a barrier is there already. Needs: allreduce
/// over at most a warp. Throws InternalError where a barrier would stand under a condition that not all threads share.
Stmt thread_sync(const Stmt& s);

}  // namespace tc
