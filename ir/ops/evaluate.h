// Evaluates a graph on the host, node by node, with the interpreter: the equality check of graph passes and the oracle
// of `tc-emit verify`.
#pragma once
#include "ir/graph/graph.h"
#include "ir/interpreter.h"

namespace tc {

/// The values of g's outputs for `inputs` (one tensor per input of g, of its static type). Runs If, Loop and Scan.
/// Throws Error TC0310 (unsupported) naming the first node whose values are no tensors of static type.
std::vector<Constant> evaluate(const Graph& g, const std::vector<Constant>& inputs, const RunOptions& o = {});

/// What a caller sees of evaluate()'s results: tensors whose size depends on data in their actual size, the numbers that
/// counted them left out.
std::vector<Constant> in_actual_sizes(const Graph& g, const std::vector<Constant>& results);

}  // namespace tc
