// Where the tensors of a program lie in its arena, and the scratch memory of its kernels.
#pragma once
#include "ir/program.h"

namespace tc {

/// Scratch memory that a call needs while it runs.
struct ScratchUse {
  int step = 0;
  int64_t bytes = 0;
};

/// Of the kernels that a call stands for on one processor or another.
int64_t most_scratch(const Program& p, const Call& c);

/// Sets the slots' offsets, arena_bytes, scratch_offset and scratch_bytes, naive_bytes and lower_bound_bytes.
void plan_memory(Program& p, const std::vector<ScratchUse>& scratch = {});

}  // namespace tc
