// Evaluates a graph on the host, node by node, with the interpreter: the equality check of graph passes and the oracle
// of `tc-emit verify`.
#pragma once
#include "ir/graph/graph.h"
#include "ir/interpreter.h"

namespace tc {

/// The values of g's outputs for `inputs` (one tensor per input of g, of its static type). Runs If, Loop and Scan.
/// Throws Error TC0310 (unsupported) naming the first node whose values are no tensors of static type.
std::vector<Constant> evaluate(const Graph& g, const std::vector<Constant>& inputs, const RunOptions& o = {});

/// The same as a caller of the package sees it: `given` has a tensor for every input that is no size, in its actual shape;
/// the results are in theirs, and numbers that count them are left out. Sizes that no input has are the largest.
std::vector<Constant> evaluate_model(const Graph& g, const std::vector<Constant>& given, const RunOptions& o = {});

}  // namespace tc
