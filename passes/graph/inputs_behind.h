// Which inputs of a graph a value is computed from.
#pragma once
#include <string>
#include <vector>

#include "ir/graph/graph.h"

namespace tc {

/// The names of the inputs, in the order of the graph, as messages show them; bodies of nodes on the way are not looked into.
std::vector<std::string> inputs_behind(const Graph& g, const Value* v);

}  // namespace tc
