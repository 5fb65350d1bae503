// Equality of statements up to names, by which loops are recognised.
#pragma once
#include "ir/loop/ir.h"

namespace tc {

/// The same statements up to the identity of what they declare themselves: variables of loops and lets, allocated
/// buffers. Names do not count. Statements of hosts and of instructions are never the same.
bool same_loops(const Stmt& a, const Stmt& b);

}  // namespace tc
