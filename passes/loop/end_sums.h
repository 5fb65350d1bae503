// end_sums: sums end behind the last element that is there (C and CUDA).
#pragma once
#include "ir/loop/ir.h"

namespace tc {

/// See end_sums.cc.
Stmt end_sums(const Stmt& s);

}  // namespace tc
