// Long executors in several functions.
#pragma once
#include "ir/program.h"

namespace tc {

/// Marks the steps of `p` at which the executor goes on in another function (Step::begins_part).
void cut_steps(Program& p, bool cuda);

}  // namespace tc
