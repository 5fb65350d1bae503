// Which input of a graph a value is computed from.
#pragma once
#include <string>

#include "ir/graph/graph.h"

namespace tc {

/// Its name as messages show it, if there is one only; else "", also behind very many values. Bodies of nodes on the way are not looked into.
std::string only_input_behind(const Graph& g, const Value* v);

}  // namespace tc
