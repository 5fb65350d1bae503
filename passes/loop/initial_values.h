// Initialisers of a device function's registers (CUDA).
#pragma once
#include "ir/program.h"

namespace tc {

/// Sets f.initialised from f.body, which is complete. See initial_values.cc.
void set_initial_values(DeviceFunction& f);

}  // namespace tc
