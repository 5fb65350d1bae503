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

/// Is c what `number` becomes when it, or its reciprocal, is rounded to the type of floating-point numbers t?
bool is_rounded(double c, double number, DType t);

/// Is the type stored as it is computed with? Moving a rounding of a narrower one may move it out of its range.
bool is_wide(DType t);
/// Are the numbers of a constant of such a type of a usual size (the largest is 0 or between 2^-bits and 2^bits)?
/// Products with them then leave the range of the type in no order sooner than in another, but where nobody looks: in single elements of
/// less than 2^-66, which other weights stand beside.
bool is_moderate(const Constant& c, int bits = 60);

/// Would the constant that both, broadcast, make have more elements than each? A column and a row are a matrix.
bool grows_together(const Value* a, const Value* b);

/// v = f1 * f2 * ... * c: the factors that are no scalar constants, in order, and the product of those that are. Looks
/// into Muls (and Divs by a scalar) that only this product uses, at most `depth` levels.
struct Product {
  std::vector<Value*> factors;
  double scale = 1;
};
Product product_of(Value* v, int depth = 4);

}  // namespace tc
