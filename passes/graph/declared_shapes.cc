// Elementwise functions tie the shapes of their operands and results together; the ties are followed in a forest of
// values (union-find), in the order of the nodes, so that two operands are known to share a shape before their user is
// looked at.
#include "passes/graph/declared_shapes.h"

#include <algorithm>
#include <numeric>
#include <string_view>

#include "ir/ops/op.h"

namespace tc {
namespace {

class Ties {
 public:
  explicit Ties(const Graph& g) : parent_(size_t(g.value_ids())) {
    std::iota(parent_.begin(), parent_.end(), 0);
    for (const auto& n : g.nodes()) node(*n);
  }
  int root(const Value* v) {
    int id = v->id;
    while (parent_[size_t(id)] != id) id = parent_[size_t(id)] = parent_[size_t(parent_[size_t(id)])];
    return id;
  }

 private:
  void node(const Node& n) {
    if (n.outputs.empty() || !n.outputs[0]) return;
    if (has_trait(n, OpTrait::SameSizes)) {
      if (!n.inputs.empty() && n.inputs[0]) tie(n.outputs[0], n.inputs[0]);
      return;
    }
    if (!has_trait(n, OpTrait::Broadcasts)) return;
    const Value* shared = nullptr;
    for (const Value* v : n.inputs) {
      if (!v) return;
      if (v->type.is_static_tensor() && v->type.shape.empty()) continue;
      if (shared && root(shared) != root(v)) return;
      shared = v;
    }
    if (shared) tie(n.outputs[0], shared);
  }
  void tie(const Value* a, const Value* b) { parent_[size_t(root(a))] = root(b); }

  std::vector<int> parent_;
};

/// The lengths of a Slice that ends at start + length: the other operand of the sum that gives its ends. Null if they
/// are not written so, or constant.
Value* lengths_of(const Node& n) {
  if (!n.is("Slice") || n.inputs.size() < 3 || !n.inputs[1] || !n.inputs[2]) return nullptr;
  if (n.inputs.size() > 4 && n.inputs[4]) return nullptr;  // steps
  const Node* sum = n.inputs[2]->producer;
  if (!sum || !sum->is("Add")) return nullptr;
  Value* lengths = sum->inputs[0] == n.inputs[1]   ? sum->inputs[1]
                   : sum->inputs[1] == n.inputs[1] ? sum->inputs[0]
                                                   : nullptr;
  const bool list = lengths && !lengths->constant && lengths->type.is_static_tensor() &&
                    lengths->type.dtype == DType::I64 && lengths->type.shape.size() == 1;
  return list ? lengths : nullptr;
}

/// What the model declares of the results of slices also says how long they are.
void take_declared_lengths(Graph& g) {
  for (const auto& n : g.nodes()) {
    Value* lengths = lengths_of(*n);
    if (!lengths || !n->outputs[0] || !n->outputs[0]->type.is_static_tensor()) continue;
    const Dims declared = static_dims(n->outputs[0]->type.shape);
    const auto count = size_t(static_dims(lengths->type.shape)[0]);
    std::vector<int64_t> values(declared.begin(), declared.begin() + std::ptrdiff_t(std::min(count, declared.size())));
    if (n->inputs.size() > 3 && n->inputs[3]) {
      const auto rank = int64_t(declared.size());
      const std::vector<int64_t> axes =
          n->inputs[3]->constant ? n->inputs[3]->constant->as_ints() : std::vector<int64_t>{};
      values.clear();
      for (int64_t a : axes)
        if (a >= -rank && a < rank) values.push_back(declared[size_t(a < 0 ? a + rank : a)]);
    }
    if (values.size() != count) continue;
    Value* known = g.add_constant(ModelText(lengths->name.raw() + "_declared"), int64_constant(values));
    const std::vector<Node*> users = lengths->users;
    for (Node* user : users)
      for (size_t k = 0; k < user->inputs.size(); k++)
        if (user->inputs[k] == lengths) g.set_input(user, k, known);
  }
}

}  // namespace

void spread_declared_shapes(Graph& g) {
  take_declared_lengths(g);
  Ties ties(g);
  std::vector<const Value*> declared(size_t(g.value_ids()), nullptr);
  for (const auto& v : g.values())
    if (v->type.is_static_tensor() && !declared[size_t(ties.root(v.get()))])
      declared[size_t(ties.root(v.get()))] = v.get();
  for (const auto& v : g.values()) {
    const Value* from = declared[size_t(ties.root(v.get()))];
    if (from && v->producer && v->type.is_tensor() && !v->type.is_static_tensor())
      g.set_type(v.get(), ValueType::tensor(v->type.dtype, from->type.shape));
  }
}

}  // namespace tc
