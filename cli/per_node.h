// verify --per-node.
#pragma once
#include "cli/options.h"

namespace tc {

/// Compares what every node of the outermost graph computes with the reference, in the model's order, and names the first that
/// is off; says what cannot be seen, and whether the package as it is emitted for use is off as well.
///
/// Values are seen by being made outputs, a few hundred at a time. An output is written to memory, so hardly anything is
/// fused: this looks at the kernels of single operators.
ExitCode verify_per_node(const CommandLine& c);

}  // namespace tc
