// How much a model computes, in the unit that people compare models by.
#pragma once
#include <cstdint>

#include "ir/graph/graph.h"

namespace tc {

/// Multiply-accumulates of one run: the points (axes times reduction axes) of all stages that sum products.
/// Convolutions, matrix products and recurrent layers are such sums; padding counts as if it were multiplied. INT64_MAX
/// if there are more.
int64_t multiply_accumulates(const TensorFn& fn);
/// The sum over the nodes. Of If, the branch with more counts; a body of Loop or Scan counts once. Nodes without a
/// meaning (their types are not known) count nothing.
int64_t multiply_accumulates(Graph& g);

}  // namespace tc
