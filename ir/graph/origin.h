// What operators and passes say and make in the name of a node.
#pragma once
#include "ir/graph/graph.h"
#include "support/error.h"

namespace tc {

using NodeIterator = std::list<std::unique_ptr<Node>>::const_iterator;

/// Where `n` stands in the model, by its name or else by what it makes.
Loc location_of(const Node& n);

/// A problem of `n`, by the name that the model has for it; with `input` >= 0, of that operand.
Diagnostic problem_of(const Node& n, std::string code, ExitCode exit, std::string what,
                      std::vector<std::string> notes = {}, int input = -1);

/// Inserts a node before `before` (null: at the end) that stands for `n`, with its name and origins. Types of the
/// outputs are unset.
Node* insert_for(Graph& g, const Node& n, Node* before, std::string op, std::vector<Value*> inputs,
                 std::vector<ModelText> outputs, Attrs attrs = {}, std::string domain = "");

/// The names of its outputs, as Graph::insert takes them; empty for absent ones.
std::vector<ModelText> output_names(const Node& n);

/// The point in front of a node, to find later what was inserted there. The node may go in the meantime, the one before
/// it not.
class InsertionPoint {
 public:
  InsertionPoint(const Graph& g, const Node& n);
  /// The first node behind the point.
  NodeIterator next() const { return first_ ? g_.nodes().begin() : std::next(before_); }

 private:
  const Graph& g_;
  const bool first_;
  const NodeIterator before_;
};

}  // namespace tc
