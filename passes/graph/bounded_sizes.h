// Sizes that depend on data and that the model does not declare: NonZero, Compress, Unique, NonMaxSuppression.
#pragma once
#include <map>
#include <optional>

#include "ir/graph/graph.h"

namespace tc {

/// A tensor of `axis` elements that are counted when the model runs. Its type has the upper bound; what lies behind the
/// counted elements is finite and, where it is a position, that of the first element.
struct BoundedSize {
  int axis = 0;
  Value* count = nullptr;  // i64 scalar
};

/// Which values of the outermost graph have such a size. Its nodes are shown to it in order.
class BoundedSizes {
 public:
  /// Before the types of `n` are inferred: lets an operator whose result's size depends on data, and is not declared,
  /// count it in one more output. Returns the node to go on with; `n` may be gone.
  Node* count_results(Graph& g, Node* n);
  /// A Shape of a value with such a size becomes the list of its sizes. True if it was one; `n` is gone then.
  bool replace_shape(Graph& g, Node* n);
  /// Throws Error TC0303 if `n`, which is no function of its operands' elements, reads a tensor with such a size.
  void forbid(const Node& n) const;
  /// After the types of `n` are inferred: its results follow its operands. Throws Error TC0303 where they cannot.
  void follow(Graph& g, Node* n);
  /// At the end: the counts become outputs of the graph beside the tensors that they belong to.
  void finish(Graph& g);

  std::optional<BoundedSize> find(const Value* v) const;

 private:
  /// The count of output k along `axis`, of a node that follows an operand of `bound` elements: the
  /// operand's own, or, of the first elements of a Slice, as many as there are.
  Value* count_of(Graph& g, Node* n, size_t k, int axis, Value* count, int64_t bound);

  std::map<int, BoundedSize> sizes_;  // by id of the value
};

}  // namespace tc
