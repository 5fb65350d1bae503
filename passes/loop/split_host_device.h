// split_host_device: a CUDA schedule as functions of the device and the host's launches.
#pragma once
#include <vector>

#include "ir/program.h"
#include "passes/loop/trim_grids.h"

namespace tc {

struct SplitFunction {
  Stmt host;                           // Aliases and Launches
  std::vector<DeviceFunction> device;  // by Launch::kernel
};

/// Cuts the body of a CUDA schedule into functions of the device and the host's part, which launches them. Needs flat
/// buffers and planned scratch memory. `params`: the kernel's parameters, which come first, in this order, in functions
/// of the device. `grids`: how many blocks are launched, where that is not all. Throws InternalError for control flow around launches.
SplitFunction split_host_device(const Stmt& s, const std::vector<Buffer>& params, const GridSizes& grids = {});

/// Takes the parameters that no body reads from the functions and their launches: passes may have shown that the loads
/// behind them are never of an element (a window whose taps all lie in the padding).
void drop_unread_params(SplitFunction& split);

}  // namespace tc
