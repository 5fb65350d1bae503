// Makes one fused node of several: their functions become one.
#pragma once
#include "ir/graph/graph.h"
#include "ir/tensor_fn.h"

namespace tc {

/// What several fused nodes compute as one.
struct JointFunction {
  TensorFn fn;
  std::vector<Value*> operands;  // the outer values, in order of first use
  std::vector<Value*> results;   // the values used outside
};
JointFunction joint_function(const std::vector<Node*>& nodes);

/// Replaces fused nodes (a group that no path leaves and enters again, in list order) by one "tc.fused" whose inputs
/// are the outer values in order of first use and whose outputs are the values used outside. Its name is the last
/// node's, its origins are all nodes'. The list may be out of topological order afterwards: see sort_nodes().
Node* join_nodes(Graph& g, const std::vector<Node*>& nodes);
/// The same, for a caller who has the function already.
Node* join_nodes(Graph& g, const std::vector<Node*>& nodes, JointFunction joint);

/// Puts the nodes into a topological order, as near to the present one as it goes.
void sort_nodes(Graph& g);

}  // namespace tc
