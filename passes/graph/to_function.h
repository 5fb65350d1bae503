// One node at a time of what to_functions does.
#pragma once
#include "ir/graph/graph.h"

namespace tc {

/// Replaces an operator by its meaning: the node "tc.fused", or a Reshape where nothing moves. Returns what there is then: `n` itself if
/// it is one already, or if sizes of its results are not known.
Node* to_function(Graph& g, Node* n);

/// A node "tc.fused" of `fn` before `before`, in the name of `of`; its results have the types of fn's.
Node* insert_function(Graph& g, const Node& of, Node* before, TensorFn fn, std::vector<Value*> inputs,
                      std::vector<ModelText> names);

}  // namespace tc
