// See infer_fragment.cc.
#pragma once
#include "ir/loop/ir.h"

namespace tc {

/// Needs: tiles of scope Fragment inside of a loop of threads along x, a multiple of 32; warps do not diverge around
/// what they do with tiles. Leaves: no buffer of scope Fragment, no loop of kind Fragment.
Stmt infer_fragment(const Stmt& s);

}  // namespace tc
