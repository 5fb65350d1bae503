// dead_stores: local buffers that nobody reads go away.
#pragma once
#include "ir/loop/ir.h"

namespace tc {

/// Removes local buffers that nobody reads, and what is stored there. See dead_stores.cc.
Stmt dead_stores(const Stmt& s);

}  // namespace tc
