// Which buffers does a statement name?
#pragma once
#include <vector>

#include "ir/loop/ir.h"

namespace tc {

/// Those that the statement itself reads or writes: of a store, a prefetch, an instruction, a launch, and the base of a view.
/// Not those in its expressions, inside of it, or declared by it.
std::vector<Buffer> named_buffers(const Stmt& s);

/// Whether `b` is named anywhere in `s`, expressions included.
bool uses_buffer(const Stmt& s, const Buffer& b);

}  // namespace tc
