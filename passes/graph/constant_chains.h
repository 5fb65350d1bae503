// Part of simplify_expr: a node of arithmetic with a constant, or of bounds, becomes one with the node before it.
#pragma once
#include "passes/graph/rewrite.h"

namespace tc {

/// Rewrites n, whose operands and result have known sizes, together with what makes its operand; false: nothing
/// fits. The rules and their preconditions are listed in simplify_expr.cc.
bool join_constants(Graph& g, Node* n, bool strict);
/// -(x * c), x - (-y) and the like: exact, whatever the type.
bool join_negation(Graph& g, Node* n);
/// Clip and Relu of Clip and Relu.
bool join_bounds(Graph& g, Node* n);

}  // namespace tc
