// The last step before printing: from the optimised graph to a Program.
#pragma once
#include "ir/program.h"
#include "passes/pass.h"

namespace tc {

/// Turns an optimised graph (fused functions, views, control flow) into a Program: schedules and lowers every distinct
/// function once, packs weights, plans memory. `name` is the prefix of all symbols. `log` gets what the options ask of the
/// loop passes.
Program build_program(Graph& g, const std::string& name, PassContext& cx, std::string& log);

}  // namespace tc
