// trust_sizes: a size that the run has checked is not held within its bounds again.
#pragma once
#include "ir/program.h"

namespace tc {

/// `s` without the bounds of Kernel::checked_sizes; a size has one name there.
Stmt trust_sizes(const Stmt& s, const Kernel& k);

}  // namespace tc
