// What the passes share that make one operator of several that read the same operand (combine_parallel_dense,
// combine_parallel_conv2d): which branches go together, and how each gets its part of the common result.
#pragma once
#include <algorithm>
#include <map>

#include "passes/graph/rewrite.h"

namespace tc {

/// Are they the same operator, with the same attributes and the same further operands? True where both are null.
bool same_activation(const Node* a, const Node* b);

/// Branches by the id of their operand, those that go together in one list, each in the order in which they were added.
template <class Branch>
class BranchGroups {
 public:
  using Lists = std::vector<std::vector<Branch>>;

  /// `go_together(a, b)`: of the first of a list and of this one.
  template <class F>
  void add(int operand, const Branch& b, const F& go_together) {
    Lists& lists = groups_[operand];
    const auto with = std::find_if(lists.begin(), lists.end(), [&](const auto& l) { return go_together(l[0], b); });
    if (with != lists.end())
      with->push_back(b);
    else
      lists.push_back({b});
  }
  const std::map<int, Lists>& all() const { return groups_; }

 private:
  std::map<int, Lists> groups_;
};

/// A value that a branch had, and the elements along the axis that it has in the common result.
struct BranchPart {
  Value* result;
  int64_t size;
};

/// Every branch's result becomes its slice of `y` along `axis`, before `at`, under its name; its producer, and what only that
/// needed, is erased.
void read_parts(Graph& g, Node* at, Value* y, int64_t axis, const std::vector<BranchPart>& parts);

}  // namespace tc
