// Launch bounds and loops that stay loops (CUDA).
#pragma once
#include "ir/program.h"

namespace tc {

/// Sets f.blocks_per_sm and f.rolled from f.body, which is complete. See launch_hints.cc.
void set_launch_hints(DeviceFunction& f);

}  // namespace tc
