// The post-dominator tree of a graph: where the ways that a value takes join again.
#pragma once
#include <vector>

#include "ir/graph/graph.h"

namespace tc {

/// Nodes of one graph, regions not entered. Valid while the graph keeps its nodes. Takes O(edges * log(nodes)): the
/// tree grows from the last node back, and every node keeps a far ancestor beside its parent (Myers, "An applicative
/// random-access stack", 1983).
class PostDominators {
 public:
  explicit PostDominators(const Graph& g);

  /// The first node, beside n itself, that every way from n to a result of the graph passes; null if there is none.
  Node* immediate(const Node* n) const { return tree_[size_t(n->id)].parent; }

 private:
  struct TreeNode {
    Node* parent = nullptr;  // null: the end that all results lead to
    Node* far = nullptr;     // some ancestor, so that a step up may be a long one
    int depth = 0;           // 1 below the end
  };
  TreeNode& at(const Node* n) { return tree_[size_t(n->id)]; }
  int depth(const Node* n) { return n ? at(n).depth : 0; }
  Node* common(Node* a, Node* b);
  void hang(const Node* n, Node* parent);

  std::vector<TreeNode> tree_;  // by node id
};

}  // namespace tc
