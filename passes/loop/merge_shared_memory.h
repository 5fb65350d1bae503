#pragma once
#include "ir/loop/ir.h"

namespace tc {

/// What every block has without asking for it: arrays of more bytes in all are dynamic shared memory.
inline constexpr int64_t kStaticSharedBytes = 48 << 10;

struct MergedShared {
  Stmt body;
  int64_t dynamic_bytes = 0;  // that the launch has to ask for; 0: the body's Shared buffers are static arrays
};

/// `nest`: block loops, Shared buffers, thread loops and the code of a thread with its barriers. See
/// merge_shared_memory.cc. Where there is more than kStaticSharedBytes, the one Shared buffer that is left is the
/// dynamic one.
MergedShared merge_shared_memory(const Stmt& nest);

}  // namespace tc
