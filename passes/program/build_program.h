#pragma once
#include "ir/program.h"
#include "passes/pass.h"

namespace tc {

/// Turns an optimised graph (fused functions, views, control flow) into a Program: schedules and lowers every distinct
/// function once, packs weights, plans memory. `name` is the prefix of all symbols.
Program build_program(Graph& g, const std::string& name, PassContext& cx);

}  // namespace tc
