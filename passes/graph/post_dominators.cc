#include "passes/graph/post_dominators.h"

namespace tc {

PostDominators::PostDominators(const Graph& g) : tree_(size_t(g.node_ids())) {
  for (auto it = g.nodes().rbegin(); it != g.nodes().rend(); ++it) {
    const Node* n = it->get();
    Node* parent = nullptr;
    bool first = true, ends = false;
    for (const Value* v : n->outputs) {
      if (!v) continue;
      ends = ends || v->output_uses > 0;
      for (Node* user : v->users) {
        parent = first ? user : common(parent, user);
        first = false;
      }
    }
    hang(n, ends ? nullptr : parent);
  }
}

Node* PostDominators::common(Node* a, Node* b) {
  while (a != b) {
    if (depth(a) < depth(b)) std::swap(a, b);
    if (depth(a) > depth(b))
      a = depth(at(a).far) >= depth(b) ? at(a).far : at(a).parent;
    else if (at(a).far != at(b).far)
      a = at(a).far, b = at(b).far;
    else
      a = at(a).parent, b = at(b).parent;
  }
  return a;
}

void PostDominators::hang(const Node* n, Node* parent) {
  TreeNode& p = at(n);
  p.parent = p.far = parent;
  p.depth = depth(parent) + 1;
  if (!parent) return;
  // Two jumps of one length become one of twice the length, and a step.
  Node* const far = at(parent).far;
  if (far && depth(parent) - depth(far) == depth(far) - depth(at(far).far)) p.far = at(far).far;
}

}  // namespace tc
