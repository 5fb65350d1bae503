// Where groups of fused nodes that are long are cut.
#pragma once
#include <vector>

#include "ir/graph/graph.h"

namespace tc {

/// Appends the parts of a group in order; a long one is cut after nodes whose definitions hash to a local minimum, so that a
/// node that is inserted moves no other cut.
void cut_group(const std::vector<Node*>& nodes, std::vector<std::vector<Node*>>& runs);

}  // namespace tc
