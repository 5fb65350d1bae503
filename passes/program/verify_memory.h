// Checks a plan of memory against the program itself.
#pragma once
#include "ir/program.h"

namespace tc {

/// Throws InternalError if a step writes over a tensor in the arena that is still read: in this run of the steps, or, in a
/// loop, in a later iteration or behind it. Of tensors that share memory on purpose (Slot::alias_of), too.
void verify_memory(const Program& p);

}  // namespace tc
