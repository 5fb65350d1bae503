// Instructions that C has no word for: what they do, in loops.
#pragma once
#include <string>
#include <vector>

#include "ir/loop/ir.h"

namespace tc {

/// A row of an instruction table. `semantics` is a nest over `operands` (row-major tiles) and nothing else.
struct Intrinsic {
  std::string name;              // "dot4": Intrin::name
  std::vector<Buffer> operands;  // in the order in which Intrin::buffers has them
  Stmt semantics;
};

/// Writes the loops of every instruction of `table` out, so that the interpreter can run them (ir/loop/intrin.h says
/// how an Intrin names its operands; a tile lies along the last dimensions of its buffer). Other instructions stay.
Stmt expand_intrinsics(const Stmt& s, const std::vector<Intrinsic>& table);

}  // namespace tc
