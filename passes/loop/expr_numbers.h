// Value numbers: expressions that compute the same thing at the same time have the same number.
#pragma once
#include <map>
#include <vector>

#include "ir/loop/ir.h"

namespace tc {

/// Hash-consing of expressions. Loads carry the version of their buffer, which a store to it raises, so that a load
/// before and one after a store are told apart.
class ExprNumbers {
 public:
  /// `views`: Aliases are about, a store may change any buffer.
  explicit ExprNumbers(bool views = false) : views_(views) {}

  struct Node {
    Expr e;                     // first one seen
    std::vector<int> children;  // operands
    std::vector<bool> lazy;     // the operand may not be evaluated: sides of a select, right side of && and ||
    bool may_fault = false;     // a load or an Index is inside
  };

  int number(const Expr& e);
  const Node& node(int n) const { return nodes_[size_t(n)]; }
  int size() const { return int(nodes_.size()); }

  /// Later loads of `b` are others than those so far.
  void stored(const Buffer& b);
  /// Everything that `s` stores.
  void stored_in(const Stmt& s);

 private:
  int64_t id(const void* p);

  std::vector<Node> nodes_;
  std::map<std::vector<int64_t>, int> table_;
  std::map<const void*, int64_t> ids_;                        // buffers and variables, in order of appearance
  std::map<const void*, int64_t> versions_;                   // of buffers
  std::map<std::pair<const ExprNode*, int64_t>, int> known_;  // node and epoch -> number
  bool views_;
  int64_t epoch_ = 0;  // counts stores: known_ holds within one
  Exprs keep_;         // keeps the keys of known_ alive
};

bool has_views(const Stmt& s);

/// Worth a name: something that costs more than reading a variable. Affine index arithmetic without divisions is not.
bool is_worth_binding(const Expr& e);

/// A short name for what `e` computes: "sum", "exp_v", the buffer of a load.
std::string binding_name(const Expr& e);

/// A variable of e's type, and a reference to it of e's shape.
Expr reference(const Var& v, const Expr& e);

/// `e` with its operands replaced; the node itself if none changed.
Expr with_operands(const Expr& e, const Exprs& operands);
Exprs operands_of(const Expr& e);

}  // namespace tc
