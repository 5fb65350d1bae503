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

/// An Intrin's args are, operand by operand, the index of the tile's first element in the buffer (one expression per
/// dimension of that buffer; the tile lies along its last dimensions). Writes the loops of every such instruction out,
/// so that the interpreter can run them. Instructions that are not in `table` stay.
Stmt expand_intrinsics(const Stmt& s, const std::vector<Intrinsic>& table);

}  // namespace tc
