// Tensors that lie inside of others: operands of a Concat, what is padded, slices.
#pragma once
#include <map>
#include <vector>

#include "ir/graph/graph.h"
#include "passes/backend.h"

namespace tc {

/// Where a tensor lies inside of another, which has memory of its own.
struct Part {
  const Value* whole = nullptr;
  int64_t offset = 0;            // elements
  std::vector<int64_t> strides;  // by axis, in elements; empty: row-major
  bool operator==(const Part&) const = default;
};

/// What is left to do for a node of which the result, or the operand, is put together in place.
struct Assembly {
  struct Copy {
    size_t operand = 0;
    Part to;
  };
  std::vector<Copy> copies;  // operands that are not made where they are needed
  // Where `border` is set, the result is that number outside of the box [begin, end).
  Expr border;
  Dims begin, end;
};

/// The parts of a graph of fused functions.
class Parts {
 public:
  Parts() = default;
  Parts(const Graph& g, const Backend& backend);

  /// Null: v has memory of its own.
  const Part* of(const Value* v) const;
  /// Does v share memory with other tensors, as a part of one or as a whole?
  bool shared(const Value* v) const { return shared_.count(v) != 0; }
  /// Null: n is an ordinary function.
  const Assembly* assembly(const Node* n) const;
  /// `fn`, a function of these operands and results, with the strides of those that are parts.
  TensorFn strided(const TensorFn& fn, const std::vector<const Value*>& operands,
                   const std::vector<Value*>& results) const;

 private:
  struct Box {
    size_t operand = 0;
    Dims begin;
  };
  struct Layout {
    std::vector<Box> boxes;  // of operands, in the result
    Expr border;             // elsewhere; null: nothing is left
  };
  static std::optional<Layout> layout_of(const Node& n);
  Part home_of(const Value* v) const;
  void assemble(const Node& n);
  bool continue_whole(const Node& n, const Layout& l);
  void view(const Node& n);
  bool may_move(const Value* v, const Node* reader, const std::vector<int64_t>& strides) const;
  bool readers_take(const Value* v, const Node* but, const std::vector<int64_t>& strides) const;
  void place(const Value* v, Part at);

  const Backend* backend_ = nullptr;
  std::map<const Value*, Part> parts_;  // looked up only
  std::map<const Value*, bool> shared_;
  std::map<const Value*, bool> outputs_, viewed_;  // what is an output, or has views or is one. Looked up only
  std::map<const Node*, Assembly> assemblies_;     // looked up only
};

}  // namespace tc
