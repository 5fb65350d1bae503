// Reductions along an axis whose size the run chooses end with what is there, instead of having something that changes nothing put
// behind it first.
//   y = tc.fill_behind(Softmax(tc.fill_behind(x, n) {"lowest"}), n)   ->   y = tc.fill_behind(tc.counted_softmax(x, n), n)
//   y = MatMul(tc.fill_behind(a, n), tc.fill_behind(b, n))            ->   y = tc.counted_matmul(a, b, n)
// So it is with tc.softmax_or_zero.
// What is put behind a softmax goes where nothing but such products reads it. Loops of C end at n, and no element behind is computed:
// attention over a few words takes the time of a few, however many there could be. Blocks of a GPU load tiles, which have no such ends:
// there, weights are zero behind n without being told, and attention is the pattern that its template knows, with a mask:
//   p = Softmax(tc.fill_behind(x, n) {"lowest"})   y = MatMul(tc.fill_behind(p, n), v)   ->   y = MatMul(p, v), where n is 1 at least
//
// Preconditions: zeros behind both factors, along the axis that is summed, by one count; the least number behind the softmax's
// operand and zeros behind its result, along its axis, by one count.
//
// Needs: dynamic_to_static, before to_functions. Leaves: tc.fill_behind where something else reads it.
#include <algorithm>
#include <optional>

#include "ir/ops/op.h"
#include "passes/graph/passes.h"
#include "passes/graph/rewrite.h"

namespace tc {

namespace {

/// The node that puts `fill` behind the first elements of v along `axis`; null: none does.
Node* filled_by(const Value* v, std::string_view fill, int64_t axis) {
  Node* n = v->producer;
  return n && fills_behind(*n, fill) && n->attr_int("axis", 0) == axis ? n : nullptr;
}

/// What lies in front of fills by the same count, of which the outermost is `n`.
Value* in_front_of(const Node* n) {
  Value* x = n->inputs[0];
  while (const Node* inner = filled_by(x, n->attr_string("fill", ""), n->attr_int("axis", 0))) {
    if (inner->inputs[1] != n->inputs[1]) break;
    x = inner->inputs[0];
  }
  return x;
}

/// A softmax, whose rows are NaN or zero where they cannot be numbers; null: another node.
Node* softmax_of(const Value* v) {
  Node* n = v->producer;
  return n && (n->is("Softmax") || (n->domain == "tc" && n->op == "softmax_or_zero")) ? n : nullptr;
}

int64_t axis_of(const Node& softmax) {
  const int64_t axis = softmax.attr_int("axis", -1);
  return axis < 0 ? axis + rank_of(softmax.inputs[0]) : axis;
}

void replace(Graph& g, Node* n, std::string_view op, std::vector<Value*> inputs, Attrs attrs) {
  Value* y = n->outputs[0];
  Node* made = insert_for(g, *n, n, std::string(op), std::move(inputs), {y->name}, std::move(attrs), "tc");
  infer_types(g, *made);
  replace_node(g, n, made->outputs[0]);
}

void end_softmax(Graph& g, Node* behind) {
  const int64_t axis = behind->attr_int("axis", 0);
  Value* x = in_front_of(behind);
  Node* softmax = softmax_of(x);
  if (!softmax || only_user(x) == nullptr) return;
  const Node* lowest = filled_by(softmax->inputs[0], "lowest", axis);
  if (!lowest || lowest->inputs[1] != behind->inputs[1] || axis_of(*softmax) != axis) return;
  replace(g, softmax, "counted_softmax", {in_front_of(lowest), lowest->inputs[1]},
          {{"axis", axis}, {"or_zero", int64_t(softmax->is("Softmax") ? 0 : 1)}});
}

/// The fills of a product's factors, along what it sums, by one count.
struct FilledFactors {
  Node *left = nullptr, *right = nullptr;
};
std::optional<FilledFactors> filled_factors(const Node& n) {
  const Value *a = n.inputs[0], *b = n.inputs[1];
  if (!n.is("MatMul") || rank_of(a) < 2 || rank_of(b) < 2) return {};
  const FilledFactors f{filled_by(a, "zero", rank_of(a) - 1), filled_by(b, "zero", rank_of(b) - 2)};
  return f.left && f.right && f.left->inputs[1] == f.right->inputs[1] ? std::optional(f) : std::nullopt;
}

void end_product(Graph& g, Node* n) {
  if (const auto f = filled_factors(*n))
    replace(g, n, "counted_matmul", {in_front_of(f->left), in_front_of(f->right), f->left->inputs[1]}, {});
}

/// Weights whose exponents are -inf behind the count are zero there, as long as there is one in front of it.
void drop_zeros(Graph& g, Node* n) {
  const auto f = filled_factors(*n);
  if (!f) return;
  const int64_t axis = f->left->attr_int("axis", 0);
  int64_t least = 0;
  for (const Node* k = f->left; k && k->inputs[1] == f->left->inputs[1]; k = filled_by(k->inputs[0], "zero", axis))
    least = std::max(least, k->attr_int("least", 0));
  Value* p = in_front_of(f->left);
  const Node* softmax = softmax_of(p);
  const Node* lowest = softmax ? filled_by(softmax->inputs[0], "lowest", axis) : nullptr;
  if (!lowest || lowest->inputs[1] != f->left->inputs[1] || axis_of(*softmax) != axis) return;
  if (softmax->is("Softmax") && least < 1) return;  // the softmax of nothing is NaN
  g.set_input(n, 0, p);
  if (!f->left->outputs[0]->is_used()) erase_unused(g, f->left);
}

void end_all(Graph& g, bool loops) {
  for (auto it = g.nodes().begin(); it != g.nodes().end();) {
    Node* n = (it++)->get();
    for (const auto& r : n->regions) end_all(*r, loops);
    if (loops && fills_behind(*n, "zero"))
      end_softmax(g, n);
    else if (n->is("MatMul"))
      loops ? end_product(g, n) : drop_zeros(g, n);
  }
}

}  // namespace

void end_at_counts(Graph& g, PassContext& cx) { end_all(g, !cx.target.device_memory); }

}  // namespace tc
