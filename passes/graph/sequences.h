// Sequences and optionals whose contents are known while compiling.
#pragma once
#include <map>
#include <vector>

#include "ir/graph/origin.h"
#include "passes/graph/bounded_sizes.h"
#include "passes/graph/unroll_loop.h"

namespace tc {

/// Follows sequences and optionals through the outermost graph, whose nodes are shown to it in order: which tensors a
/// list holds is known where lengths and positions are constants. Then only tensors are left.
///   s = SequenceConstruct(a, b)  t = SequenceInsert(s, c, 1)  y = SequenceAt(t, 0)   ->   y = a
class Sequences {
 public:
  explicit Sequences(const BoundedSizes& sizes) : sizes_(sizes) {}

  /// Resolves a node that takes or makes a list. Returns the node to go on with: `n` itself where it does neither,
  /// another one that has taken its place, null where nothing is left to do. Throws Error TC0304 where the contents
  /// cannot be known.
  Node* resolve(Graph& g, Node* n);
  /// Is it a Loop that carries or reads lists?
  bool carries_lists(const Node& n) const;
  /// Puts one iteration of such a Loop in front of it, or, at its end, its results in its place. Returns the first node
  /// that is new.
  NodeIterator unroll(Graph& g, Node* n);
  /// At the end: outputs of the graph that are lists become their tensors, called NAME_0, NAME_1, ..., and lists that
  /// nobody needs any more go. Returns the copies, whose sizes may be known only at run time.
  std::vector<Node*> finish(Graph& g);

 private:
  /// What is known of a sequence or optional: the tensors in it (null: a tensor that cannot be told while compiling).
  struct Contents {
    std::vector<Value*> tensors;
    bool sequence = true;  // else an optional tensor, of one element at most
    bool present = true;   // an optional that holds something
  };

  const Contents& contents_of(const Node& n, size_t k) const;
  void hold(Graph& g, Node* n, Contents c);
  Node* take_tensor(Graph& g, Node* n, Value* tensor);
  std::vector<Value*> tensors_of(const Node& n, size_t first, size_t last) const;
  Node* insert_or_erase(Graph& g, Node* n, bool insert);
  Node* split(Graph& g, Node* n);
  Node* concat(Graph& g, Node* n);
  Node* optional(Graph& g, Node* n);

  const BoundedSizes& sizes_;
  std::map<int, Contents> held_;  // by id of the value
  LoopUnroller unroller_{"a loop that carries a sequence", "TC0304"};
};

}  // namespace tc
