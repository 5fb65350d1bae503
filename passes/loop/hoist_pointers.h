// hoist_pointers: base pointers of unrolled tiles.
#pragma once
#include "ir/loop/ir.h"

namespace tc {

/// Base pointers of unrolled tiles move in front of the tile (Alias), so that the tile indexes by constants.
Stmt hoist_pointers(const Stmt& s);

}  // namespace tc
