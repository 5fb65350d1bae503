// Loops that become their iterations, one after the other: what an iteration made is known when the next one is looked at.
#pragma once
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "ir/graph/origin.h"

namespace tc {

/// Is that few enough, as far as it is known (-1: not)?
bool may_be_unrolled(const Node& loop, int64_t iterations);

/// Unrolls loops of one graph, whose nodes are shown to its caller in order.
class LoopUnroller {
 public:
  /// `what` the loops are, for messages: "a loop that carries a sequence"; `code` of Errors.
  LoopUnroller(std::string what, const char* code) : what_(std::move(what)), code_(code) {}

  /// Is it what is left of a loop that has begun?
  bool has_begun(const Node& n) const { return unrolled_.count(n.id) != 0; }
  /// Puts one iteration of a Loop in front of it, or, at its end, its results in its place; `copied` is told of each state and the
  /// Identity of it. Returns the first node that is new. Throws Error where the end is not known while compiling, or is too far.
  using Copied = std::function<void(const Value* state, const Value* copy)>;
  NodeIterator step(Graph& g, Node* n, const Copied& copied = {});

 private:
  struct Unrolled {
    int64_t iterations = 0;
    // Per output behind the states, nodes behind the loop that read a tensor each: as operands, the tensors follow every replacement.
    std::vector<std::vector<Node*>> scanned;
  };
  [[noreturn]] void refuse(Graph& g, const Node& n, const std::string& why, int input = -1);
  int64_t known_bound(Graph& g, const Node& n, size_t k, int64_t otherwise);
  void forget(Graph& g, const Node& n);
  NodeIterator end(Graph& g, Node* n, const std::vector<Value*>& states, const Copied& copied);
  Node* rest_of(Graph& g, Node* n, const std::vector<Value*>& results);

  std::string what_;
  const char* code_;
  std::map<int, Unrolled> unrolled_;  // by id of the Loop
};

}  // namespace tc
