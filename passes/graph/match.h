// Matching small patterns of operators, from the last node to its operands.
#pragma once
#include "passes/graph/rewrite.h"

namespace tc {

/// The other operand of a binary node, one of whose operands satisfies `is_first` (commutative); null if none does.
template <class F>
Value* other_operand(const Node* n, F is_first) {
  if (!n || n->inputs.size() != 2 || !n->inputs[0] || !n->inputs[1]) return nullptr;
  if (is_first(n->inputs[0])) return n->inputs[1];
  return is_first(n->inputs[1]) ? n->inputs[0] : nullptr;
}

/// Is v a constant of one element that is `number` up to the rounding of an exporter?
bool is_near(const Value* v, double number);

/// v = f1 * f2 * ... * c: the factors that are no scalar constants, in order, and the product of those that are. Looks
/// into Muls (and Divs by a scalar) that only this product uses, at most `depth` levels.
struct Product {
  std::vector<Value*> factors;
  double scale = 1;
};
Product product_of(Value* v, int depth = 4);

}  // namespace tc
