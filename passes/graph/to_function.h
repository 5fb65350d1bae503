// One node at a time of what to_functions does.
#pragma once
#include "ir/graph/graph.h"

namespace tc {

/// Replaces an operator by its meaning: the node "tc.fused", or a Reshape where nothing moves. Returns what there is then: `n` itself if
/// it is one already, or if sizes of its results are not known.
Node* to_function(Graph& g, Node* n);

}  // namespace tc
