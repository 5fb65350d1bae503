// trim_grids: a launch has no more blocks than a run needs.
#pragma once
#include <map>

#include "passes/loop/kernel_interface.h"

namespace tc {

/// How many blocks a run needs along an axis of a launch's grid: an expression over the loads of counts, at least 1. By the
/// variable of the axis' loop, which stays as long as the largest sizes; absent: all of them.
using GridSizes = std::map<const VarDef*, Expr>;

/// `body`: a CUDA schedule, `live`: of which outputs only the first elements are needed. Counts that the host does not know
/// end nothing.
GridSizes trim_grids(const Stmt& body, const std::vector<KernelInterface::Live>& live);

}  // namespace tc
