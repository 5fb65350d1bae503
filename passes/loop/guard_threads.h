// guard_threads: threads behind the last element of a size without an upper bound do nothing.
#pragma once
#include <vector>

#include "passes/loop/kernel_interface.h"
#include "passes/loop/trim_grids.h"

namespace tc {

/// `body`: a CUDA schedule, `live`: of which outputs only the first elements are needed, `grids`: the blocks of its launches.
Stmt guard_threads(const Stmt& body, const std::vector<KernelInterface::Live>& live, const GridSizes& grids = {});

}  // namespace tc
