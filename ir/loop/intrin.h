// Instructions that C has no word for, as Intrin statements. An Intrin's `args` hold, for each of its buffers in turn, the
// index of the element where the operand begins, then the instruction's scalar arguments:
//   Global memory: as many indices as the buffer has axes (one, once it is flat);
//   Shared memory: as many as it has axes;
//   Register and Stack arrays: one less, since the operand is the array of the last axis;
//   Fragment: two less, since the operand is a tile of a warp.
//
// Beside those of tc_cuda.h there are allreduce_add (_mul, _max, _min): passes/loop/lower_thread_allreduce.h; and shuffle_xor
// (_up, _down, _idx), whose operand is the Register scalar that gets the value, and whose scalars are the value given and
// by how much, or of which lane: passes/loop/lower_warp_memory.h.
#pragma once
#include "ir/loop/ir.h"

namespace tc {

struct IntrinOperand {
  Buffer buffer;
  Exprs index;
};

struct IntrinCall {
  std::vector<IntrinOperand> operands;
  Exprs scalars;
};

/// Throws InternalError if there are fewer args than the buffers need.
IntrinCall parse(const Intrin& k);
Stmt intrin(std::string name, const std::vector<IntrinOperand>& operands, const Exprs& scalars = {});

}  // namespace tc
