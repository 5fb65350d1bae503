// hide_addresses: pointers of rows that overlap.
#pragma once
#include "ir/loop/ir.h"

namespace tc {

/// In each iteration a compiler has to take for unknown where the pointer of rows points to that the next iterations read again.
Stmt hide_addresses(const Stmt& s);

}  // namespace tc
