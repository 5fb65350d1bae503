// Reductions over the threads of a block. A template writes allreduce(value, op, n): a scalar of scope Register is
// combined over groups of n neighbouring threads, and every thread of the group gets the result, by the same order of
// operations in all of them. All threads of a group make it.
#pragma once
#include "ir/loop/ir.h"

namespace tc {

/// Rewrites those of more than a warp; see lower_thread_allreduce.cc.
Stmt lower_thread_allreduce(const Stmt& s);

}  // namespace tc
