// Operators that are rewritten into simpler ones before anything else looks at them: what an `expand` of a row builds
// its nodes with.
#pragma once
#include <string>
#include <vector>

#include "ir/ops/op.h"

namespace tc {

/// Inserts nodes before the node that they replace. Their types are inferred at once; names derive from the node's
/// first output.
class Expansion {
 public:
  Expansion(Graph& g, Node* n) : g_(g), n_(n) {}

  const Node& node() const { return *n_; }
  bool wants(size_t k) const { return k < n_->outputs.size() && n_->outputs[k] != nullptr; }
  /// Operand `k`, a tensor of numbers of known sizes; refuses otherwise.
  Value* in(size_t k) const;
  /// Operand `k`, which may also be of strings.
  Value* in_of_any_type(size_t k) const;
  /// Operand `k` as in(), null if it is absent.
  Value* optional(size_t k) const;

  /// Is the attribute given on the node?
  bool has(const std::string& name) const;
  // What is not given has the default of the operator's row, else nothing. Another type is rejected.
  int64_t attr_int(const std::string& name) const;
  float attr_float(const std::string& name) const;
  /// Those attributes of the node that are named, as they are.
  Attrs attrs_named(const std::vector<std::string>& names) const;
  std::string attr_string(const std::string& name) const;
  std::vector<int64_t> attr_ints(const std::string& name) const;
  std::vector<float> attr_floats(const std::string& name) const;
  std::vector<std::string> attr_strings(const std::string& name) const;
  /// A tensor, null if not given.
  Constant attr_tensor(const std::string& name) const;

  // Constants, named like the node's first output and `suffix`.
  Value* constant(Constant c, std::string_view suffix) const;
  /// One number, of rank 0.
  Value* number(DType t, double v, std::string_view suffix) const;
  Value* floats(DType t, Dims dims, const std::vector<double>& v, std::string_view suffix) const;
  Value* ints(DType t, Dims dims, const std::vector<int64_t>& v, std::string_view suffix) const;
  /// The first output of a new node. An empty suffix: named like the output that is replaced.
  Value* op(std::string name, std::vector<Value*> in, std::string_view suffix, Attrs attrs = {},
            std::string domain = "") const;
  /// A new node with `outputs` outputs.
  Node* node_of(std::string name, std::vector<Value*> in, int outputs, std::string_view suffix, Attrs attrs = {},
                std::string domain = "") const;
  /// x in type t.
  Value* cast(DType t, Value* x, std::string_view suffix) const;
  Value* reshape(Value* x, const Dims& dims, std::string_view suffix) const;
  /// Elements from..to-1 along an axis.
  Value* slice(Value* x, int64_t axis, int64_t from, int64_t to, const std::string& suffix) const;
  Value* unsqueeze(Value* x, const std::vector<int64_t>& axes, const std::string& suffix) const;
  Value* transpose(Value* x, const std::vector<int64_t>& perm, std::string_view suffix) const;
  /// A constant of rank 0.
  Value* scalar(DType t, double v, std::string_view suffix) const;
  /// Throws Error (TC0303) where one of the sizes has no upper bound; so does counted().
  Value* zeros(DType t, const Dims& dims, std::string_view suffix) const;
  /// 0, 1, 2, ... (I64) in a shape.
  Value* counted(const Dims& dims, std::string_view suffix) const;
  /// Output k becomes v, which has a producer that this expansion made.
  void finish(size_t k, Value* v) const;

  [[noreturn]] void reject(const std::string& why) const;
  [[noreturn]] void unsupported(const std::string& why) const;

 private:
  ModelText derived(std::string_view suffix) const;
  void check_types(std::string_view name, const std::vector<Value*>& in) const;
  void need_bounds(const Dims& dims) const;

  Graph& g_;
  Node* n_;
};

/// The row of an operator of `domain` that only expands.
OpRow expanding_row(std::string_view domain, std::string_view name, int since, std::vector<AttrSpec> attrs,
                    bool (*expand)(Graph&, Node*));

/// The sizes of a tensor of known sizes.
Dims dims_of_type(const Value* v);

}  // namespace tc
