// Intrin statements: rows of the table of instruction.h. An Intrin's `args` hold, for each of its buffers in turn, the
// index of the element where the operand begins, then the instruction's scalar arguments:
//   Global memory: as many indices as the buffer has axes (one, once it is flat);
//   Shared memory: as many as it has axes;
//   Register and Stack arrays: one less, since the operand is the array of the last axis;
//   Fragment: two less, since the operand is a tile of a warp.
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
/// Throws InternalError if no instruction has that name, or others as many indices.
Stmt intrin(std::string name, const std::vector<IntrinOperand>& operands, const Exprs& scalars = {});
/// The statement: Intrin "allreduce_add", "_mul", "_max" or "_min" with the scalar and n, a power of two. The value has
/// 4 or 8 bytes. Null where n is 1.
Stmt allreduce(const Buffer& value, Op op, int64_t n);

}  // namespace tc
