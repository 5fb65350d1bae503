// Groups of nodes that become one kernel: what is in them, and whether two may join without making a cycle.
#pragma once
#include <cstdint>
#include <vector>

#include "ir/graph/graph.h"

namespace tc {

/// What a node or group looks like to fusion.
enum class GroupKind {
  Move,         // each result is one element of an operand: Transpose, Slice
  Pad,          // the same, or a constant outside of a border
  Elementwise,  // scalar work on one iteration space
  Window,       // a reduction that reads elements several times, or a part of them: pooling
  Rows,         // reductions that read every element of their domain once: Softmax, ReduceMean
  Contraction,  // sums of products
  Opaque,       // joins nothing
};

struct Group {
  GroupKind kind = GroupKind::Opaque;
  Dims domain;               // Rows: what is reduced; else the shape of the results
  Dims reduced;              // Rows: the axes of the domain that are
  std::vector<Node*> nodes;  // in list order
  bool closed = false;       // a final Pad or the like: no consumer joins
  int first = 0, last = 0;   // positions of nodes in the graph
};

/// How one fused node reads and writes; derived from its stages.
struct NodeTraits {
  GroupKind kind = GroupKind::Opaque;
  Dims domain, reduced;     // as in Group
  bool affine = false;      // Move, Pad: every index is a sum of axes times constants
  bool permutes = false;    // Move: every element goes to exactly one index, axes stay whole
  bool keeps_last = false;  // and what was side by side stays so
  bool sums_last = false;   // Contraction: what lies side by side in an operand that is computed is summed
};
NodeTraits traits_of(const Node& n);
/// Is the index a sum of axes times constants? Or, where `quotients` are allowed, of axes divided by one of their
/// divisors, too: templates split such an axis into two.
bool is_affine_index(const Expr& index, const std::vector<Axis>& axes, bool quotients);

/// The partition of a graph's nodes. Groups are numbered by the position of the node that began them.
class Groups {
 public:
  explicit Groups(const Graph& g);

  size_t size() const { return parent_.size(); }
  int position(const Node* n) const { return position_[size_t(n->id)]; }
  int group_of(const Node* n) { return find(position(n)); }
  Group& operator[](int g) { return groups_[size_t(g)]; }
  const NodeTraits& traits(const Node* n) const { return traits_[size_t(position(n))]; }
  /// Are all uses of v by nodes of group g?
  bool used_only_by(const Value* v, int g);
  /// May group a, which feeds group b, become one with it? Not if a way from a to b leads through a third group, or if
  /// finding that out would take too long.
  bool can_join(int a, int b);
  /// Returns the number of the joint group; its kind, domain and reduced axes are b's.
  int join(int a, int b);

 private:
  int find(int i);

  std::vector<int> position_;  // by node id
  std::vector<int> parent_;    // by position
  std::vector<Group> groups_;  // by position
  std::vector<NodeTraits> traits_;
};

}  // namespace tc
