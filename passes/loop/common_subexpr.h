// common_subexpr: equal expressions are computed once.
#pragma once
#include "ir/loop/ir.h"

namespace tc {

/// What is computed twice in a run of statements is computed once, by a Let in front of its first use. Bits stay the
/// same; nothing is evaluated that was not (loads of an untaken side stay where they are).
Stmt common_subexpr(const Stmt& s);

}  // namespace tc
