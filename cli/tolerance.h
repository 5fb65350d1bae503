// How far the results of an emitted program may be from those of another implementation.
#pragma once
#include <string>

#include "ir/graph/graph.h"
#include "passes/pass.h"

namespace tc {

struct Tolerance {
  std::string relative, absolute;  // an element may be off by their sum, the relative part times its size
};

/// By the coarsest of what tensor cores multiply and of the floats that the graph's values hold: implementations round
/// to them at different places. The absolute parts suit tensors of size 1.
Tolerance tolerance_of(const Graph& g, Precision p);

}  // namespace tc
