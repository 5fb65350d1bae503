// trim_loops: loops end where nobody needs what they compute.
#pragma once
#include "passes/loop/kernel_interface.h"

namespace tc {

/// `live`: of which outputs only the first elements are needed. Memory behind them is not written, or written with anything.
Stmt trim_loops(const Stmt& body, const std::vector<KernelInterface::Live>& live);

}  // namespace tc
