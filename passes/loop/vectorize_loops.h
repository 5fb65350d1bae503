// See vectorize_loops.cc.
#pragma once
#include <map>

#include "ir/loop/ir.h"

namespace tc {

/// What variables are multiples of; looked up only.
using Multiples = std::map<const VarDef*, int64_t>;
/// A number of which the integer `e` is a multiple; 0 is a multiple of all.
int64_t multiple_of(const Expr& e, const Multiples& known);

/// Needs: flat buffers.
Stmt vectorize_loops(const Stmt& s);

}  // namespace tc
