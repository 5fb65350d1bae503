// Which elements of the tensors of a program are needed, where sizes are chosen at run time.
#pragma once
#include <map>
#include <optional>
#include <vector>

#include "ir/graph/graph.h"
#include "ir/loop/simplify.h"
#include "ir/program.h"

namespace tc {

/// Along `axis` only the first elements are needed, as many as `end` says: an expression over LiveAxes::symbols().
struct LiveAxis {
  int axis = 0;
  Expr end;
};

/// A size that the caller chooses: an i64 scalar among the graph's inputs, as a variable.
struct SizeSymbol {
  Var var;
  const Value* input = nullptr;
  Range range;
};

/// No element of a tensor of I64 is above `most`, an expression over the sizes.
struct PositionBound {
  Expr most;
  bool from_front = false;  // none is below 0
};

class LiveFunction;

/// Of the outermost graph, whose nodes are functions.
class LiveAxes {
 public:
  LiveAxes() = default;
  explicit LiveAxes(Graph& g);
  /// Empty: all of it is needed.
  std::vector<LiveAxis> of(const Value* v) const;
  /// Does a node need elements of an input behind those that there are? `sizes`: by axis, those that the caller chooses.
  bool reads_behind(const Graph& g, const Value* v, const std::vector<IoSize>& sizes) const;
  const std::vector<SizeSymbol>& symbols() const { return symbols_; }
  /// Of the symbols.
  const Ranges& ranges() const { return ranges_; }

 private:
  using List = std::vector<LiveAxis>;
  void need(const Value* v, List list);
  /// What the elements of positions are, from operands to results.
  void bound(Node& n);
  LiveFunction operands_of(Node& n, std::vector<const Value*>& operands);
  void function(Node& n);
  void view(const Node& n);
  List both(const List& a, const List& b) const;
  /// What an i64 scalar is, computed from the symbols; null where data decides. Whoever reads it may run before it is computed.
  Expr size(const Value* v, int depth = 32);
  Expr size_of(Graph& g, const OutputSize& s);
  /// As the sum of the symbols.
  Expr number_of(const Graph& g, const SizeSum& s) const;
  bool needed_within(const Value* v, int axis, const Expr& end) const;
  std::optional<LiveAxis> dense_part(Graph& g, const Dims& dims, const std::vector<OutputSize>& sizes);
  Expr exact(const Expr& e, const std::map<const BufferDef*, Expr>& known) const;

  std::vector<SizeSymbol> symbols_;
  Ranges ranges_;
  std::map<const Value*, Expr> sizes_;          // looked up only
  std::map<const Value*, PositionBound> most_;  // looked up only
  std::map<const Value*, List> needed_;  // what somebody needs of a value; absent: nobody does yet. Looked up only
};

}  // namespace tc
