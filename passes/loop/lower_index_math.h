// lower_index_math: the divisions of indices in C's arithmetic.
#pragma once
#include "ir/loop/ir.h"

namespace tc {

/// Floor divisions of provably non-negative indices become C's / and %.
Stmt lower_index_math(const Stmt& s);

}  // namespace tc
