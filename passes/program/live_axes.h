// Which elements of the tensors of a program are needed, where sizes are chosen at run time.
#pragma once
#include <map>
#include <vector>

#include "ir/graph/graph.h"

namespace tc {

/// Along `axis` only the first elements are needed, as many as `count` says, an i64 scalar of the graph.
struct LiveAxis {
  int axis = 0;
  const Value* count = nullptr;
  bool operator==(const LiveAxis&) const = default;
};

/// Of the outermost graph, whose nodes are functions.
class LiveAxes {
 public:
  LiveAxes() = default;
  explicit LiveAxes(Graph& g);
  /// Empty: all of it is needed.
  std::vector<LiveAxis> of(const Value* v) const;

 private:
  using List = std::vector<LiveAxis>;
  void need(const Value* v, const List& list);
  void function(Node& n);
  void view(const Node& n);

  std::map<const Value*, List> needed_;  // what somebody needs of a value; absent: nobody does yet. Looked up only
};

}  // namespace tc
