// Types of nodes with bodies: If, Loop, Scan.
#pragma once
#include "ir/graph/graph.h"

namespace tc {

/// Sets the types of the bodies' inputs from the node's operands, infers the bodies, and sets the node's output types
/// from theirs. Sizes that are known only when the model runs are symbolic or unknown. Throws Error naming the node.
void infer_region_types(Graph& g, Node& n);

}  // namespace tc
