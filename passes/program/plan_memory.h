// Offsets of tensors in the arena.
#pragma once
#include "ir/program.h"

namespace tc {

/// Gives every slot of `p` an offset: tensors that live at the same time do not overlap. Fills arena_bytes, naive_bytes
/// and lower_bound_bytes.
void plan_memory(Program& p);

}  // namespace tc
