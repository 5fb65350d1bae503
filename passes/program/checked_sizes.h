// Which parameters of kernels are sizes that the run has checked.
#pragma once
#include "ir/program.h"

namespace tc {

/// Sets Kernel::checked_sizes of all kernels. Needs: all calls are there.
void find_checked_sizes(Program& p);

}  // namespace tc
