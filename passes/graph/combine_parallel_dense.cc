// Makes one matrix product of several that read the same operand, such as the query, key and value of attention.
//   q = MatMul(x, wq) + bq   k = MatMul(x, wk) + bk     ->   y = MatMul(x, [wq wk]) + [bq bk]
//   ... Reshape(q), Reshape(k)                               q = Slice(y)   k = Slice(y)
// The slices are moves that the next kernels read through (compose_moves, fuse_ops). So only results that are reshaped
// or transposed next take part: elementwise work after a product is better off in the kernel of that product.
//
// Preconditions: the products have one left operand, computed and with two axes at least; their weights are constants of
// two axes; all have a bias or none has; a bias is a constant vector with one number for each column, added to a product
// that nobody else reads, and does not raise its rank; results are no outputs, and only Reshapes and Transposes read
// them.
//
// Needs: canonicalize_ops, folded constants. Leaves: one such product for each operand.
#include <algorithm>
#include <map>

#include "passes/graph/match.h"
#include "passes/graph/passes.h"

namespace tc {

namespace {

struct Branch {
  Node* product;
  Value* weight;
  Value* bias;  // null: none
  Value* result;
};

bool only_moves_follow(const Value* v) {
  return v->output_uses == 0 && !v->users.empty() && std::all_of(v->users.begin(), v->users.end(), [](const Node* n) {
           return n->is("Reshape") || n->is("Transpose");
         });
}

/// The product with the constant of one value per column that is added to it.
std::optional<Branch> branch_of(Node* n) {
  if (!n->is("MatMul") || !n->outputs[0]->type.is_static_tensor() || !n->inputs[1]->constant) return std::nullopt;
  if (rank_of(n->inputs[1]) != 2 || rank_of(n->inputs[0]) < 2 || n->inputs[0]->constant) return std::nullopt;
  Branch b{n, n->inputs[1], nullptr, n->outputs[0]};
  if (only_moves_follow(b.result)) return b;
  const Node* add = only_user(b.result);
  if (!add || !add->is("Add") || add->outputs[0]->type != b.result->type) return std::nullopt;
  b.bias = add->inputs[0] == b.result ? add->inputs[1] : add->inputs[0];
  b.result = add->outputs[0];
  if (!b.bias->constant || dims_of(b.bias) != Dims{dims_of(b.weight)[1]} || !only_moves_follow(b.result))
    return std::nullopt;
  return b;
}

std::vector<Value*> all_of(const std::vector<Branch>& list, Value* Branch::*member) {
  std::vector<Value*> v;
  for (const Branch& b : list) v.push_back(b.*member);
  return v;
}

void combine(Graph& g, const std::vector<Branch>& list) {
  Node* at = list[0].product;
  const std::string suffix = "_x" + to_text(int64_t(list.size()));
  auto joined = [&](Value* Branch::*member, int64_t axis) {
    return constant_op(g, at, "Concat", all_of(list, member), derived((list[0].*member)->name, suffix),
                       {{"axis", axis}});
  };
  Value* y =
      add_op(g, at, "MatMul", {at->inputs[0], joined(&Branch::weight, 1)}, derived(list[0].result->name, suffix));
  std::vector<ModelText> origins;
  for (const Branch& b : list) add_origins(origins, b.product->origins);
  y->producer->origins = origins;
  if (list[0].bias) {
    y = add_op(g, at, "Add", {y, joined(&Branch::bias, 0)}, derived(list[0].result->name, suffix + "_bias"));
    y->producer->origins.clear();
    for (const Branch& b : list) add_origins(y->producer->origins, b.result->producer->origins);
  }
  int64_t begin = 0;
  for (const Branch& b : list) {
    const ModelText name = b.result->name;
    const int64_t end = begin + dims_of(b.weight)[1];
    auto number = [&](std::string_view what, int64_t v) {
      return g.add_constant(derived(name, what), int64_constant({v}));
    };
    Value* part = add_op(g, at, "Slice", {y, number("_from", begin), number("_to", end), number("_axis", -1)}, name);
    part->producer->origins.clear();
    g.replace_uses(b.result, part);
    begin = end;
  }
  for (const Branch& b : list) erase_unused(g, b.result->producer);
}

}  // namespace

void combine_parallel_dense(Graph& g, PassContext& cx) {
  std::map<std::pair<int, bool>, std::vector<Branch>> groups;  // by operand, in order of creation
  for (const auto& n : g.nodes()) {
    for (const auto& r : n->regions) combine_parallel_dense(*r, cx);
    if (const auto b = branch_of(n.get())) groups[{b->product->inputs[0]->id, b->bias != nullptr}].push_back(*b);
  }
  for (const auto& [key, list] : groups)
    if (list.size() > 1) combine(g, list);
  g.drop_unused_constants();
}

}  // namespace tc
