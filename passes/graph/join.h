// Makes one fused node of several: their functions become one.
#pragma once
#include "ir/graph/graph.h"

namespace tc {

/// Replaces fused nodes (a group that no path leaves and enters again, in list order) by one "tc.fused" whose inputs
/// are the outer values in order of first use and whose outputs are the values used outside. Its name is the last
/// node's, its origins are all nodes'. The list may be out of topological order afterwards: see sort_nodes().
Node* join_nodes(Graph& g, const std::vector<Node*>& nodes);

/// Puts the nodes into a topological order, as near to the present one as it goes.
void sort_nodes(Graph& g);

}  // namespace tc
