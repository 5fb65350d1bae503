// Makes one matrix product of several that read the same operand, such as the query, key and value of attention.
//   q = MatMul(x, wq) + bq   k = MatMul(x, wk) + bk     ->   y = MatMul(x, [wq wk]) + [bq bk]
//   ... Reshape(q), Reshape(k)                               q = Slice(y)   k = Slice(y)
// The slices are moves that the next kernels read through (compose_moves, fuse_ops). So only results that are reshaped
// or transposed next take part, or reshaped or transposed behind an activation that all of them have: other work after a
// product is better off in the kernel of that product. Weights may have more axes, of heads for example.
//
// Preconditions: the products have one left operand, computed and with two axes at least; their weights are constants of
// two axes at least, equal in size but for the last one; all have a bias or none has; a bias is a constant with one number for
// each column, added to a product that nobody else reads, and does not raise its rank; biases are equal in size but for
// their last axes; activations are the same operator with the same attributes and constant bounds, of biased products that
// nobody else reads; results are no outputs, and only Reshapes and Transposes read them.
//
// Needs: canonicalize_ops, folded constants. Leaves: one such product for each operand.
#include "ir/ops/op.h"
#include "passes/graph/match.h"
#include "passes/graph/parallel_branches.h"
#include "passes/graph/passes.h"

namespace tc {

namespace {

struct Branch {
  Node* product;
  Value* weight;
  Value* bias;       // null: none
  Node* activation;  // null: none
  Value* result;
};

bool only_moves_follow(const Value* v) {
  return v->output_uses == 0 && !v->users.empty() && std::all_of(v->users.begin(), v->users.end(), [](const Node* n) {
           return n->is("Reshape") || n->is("Transpose");
         });
}

/// Does it work on each element of its first operand alike, whatever its place? What is computed for it may come too late.
bool is_activation(const Node& n) {
  if (!std::all_of(n.inputs.begin() + 1, n.inputs.end(), [](const Value* v) { return !v || v->constant; }))
    return false;
  return has_trait(n, OpTrait::Activation);
}

/// The product with the constant of one value per column that is added to it, and the activation behind.
std::optional<Branch> branch_of(Node* n) {
  if (!n->is("MatMul") || !n->outputs[0]->type.is_static_tensor() || !n->inputs[1]->constant) return std::nullopt;
  if (rank_of(n->inputs[1]) < 2 || rank_of(n->inputs[0]) < 2 || n->inputs[0]->constant) return std::nullopt;
  Branch b{n, n->inputs[1], nullptr, nullptr, n->outputs[0]};
  if (Node* add = only_user(b.result); add && add->is("Add")) {
    b.bias = add->inputs[0] == b.result ? add->inputs[1] : add->inputs[0];
    if (add->outputs[0]->type != b.result->type || !b.bias->constant || rank_of(b.bias) < 1 ||
        dims_of(b.bias).back() != dims_of(b.weight).back())
      return std::nullopt;
    b.result = add->outputs[0];
  }
  if (Node* f = only_user(b.result); f && is_activation(*f) && f->inputs[0] == b.result) {
    b.activation = f;
    b.result = f->outputs[0];
  }
  return only_moves_follow(b.result) ? std::optional(b) : std::nullopt;
}

bool equal_but_last(const Value* a, const Value* b) {
  if (!a || !b) return !a && !b;
  Dims x = dims_of(a), y = dims_of(b);
  x.back() = y.back() = 0;
  return x == y && a->type.dtype == b->type.dtype;
}

bool go_together(const Branch& a, const Branch& b) {
  return equal_but_last(a.weight, b.weight) && equal_but_last(a.bias, b.bias) &&
         same_activation(a.activation, b.activation);
}

std::vector<Value*> all_of(const std::vector<Branch>& list, Value* Branch::*member) {
  std::vector<Value*> v;
  for (const Branch& b : list) v.push_back(b.*member);
  return v;
}

void combine(Graph& g, const std::vector<Branch>& list) {
  Node* at = list[0].product;
  const std::string suffix = "_x" + to_text(int64_t(list.size()));
  auto joined = [&](Value* Branch::*member) {
    return constant_op(g, at, "Concat", all_of(list, member), derived((list[0].*member)->name, suffix),
                       {{"axis", int64_t(rank_of(list[0].*member)) - 1}});
  };
  Value* y = add_op(g, at, "MatMul", {at->inputs[0], joined(&Branch::weight)}, derived(list[0].result->name, suffix));
  std::vector<ModelText> origins;
  for (const Branch& b : list) add_origins(origins, b.product->origins);
  y->producer->origins = origins;
  if (list[0].bias) {
    y = add_op(g, at, "Add", {y, joined(&Branch::bias)}, derived(list[0].result->name, suffix + "_bias"));
    y->producer->origins.clear();
    for (const Branch& b : list) add_origins(y->producer->origins, only_user(b.product->outputs[0])->origins);
  }
  if (const Node* f = list[0].activation) {
    std::vector<Value*> in = f->inputs;
    in[0] = y;
    y = add_op(g, at, f->op, std::move(in), derived(list[0].result->name, suffix + "_activation"), f->attrs);
    y->producer->origins.clear();
    for (const Branch& b : list) add_origins(y->producer->origins, b.activation->origins);
  }
  std::vector<BranchPart> parts;
  parts.reserve(list.size());
  for (const Branch& b : list) parts.push_back({b.result, dims_of(b.weight).back()});
  read_parts(g, at, y, -1, parts);
}

}  // namespace

void combine_parallel_dense(Graph& g, PassContext& cx) {
  BranchGroups<Branch> groups;
  for (const auto& n : g.nodes()) {
    for (const auto& r : n->regions) combine_parallel_dense(*r, cx);
    if (const auto b = branch_of(n.get())) groups.add(b->product->inputs[0]->id, *b, go_together);
  }
  for (const auto& [operand, list] : groups.all())
    for (const auto& branches : list)
      if (branches.size() > 1) combine(g, branches);
  g.drop_unused_constants();
}

}  // namespace tc
