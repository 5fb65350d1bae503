// What is chosen along one axis goes along with the others: Compress becomes the positions and a Gather.
//   y = Compress(x, c, axis = 1)   x counted along 0   ->   y = Gather(x, Squeeze(NonZero(c)), axis = 1), counted along 0 and 1
//
// Preconditions: the condition is a list.
#include "ir/ops/op.h"
#include "passes/graph/counted_node.h"

namespace tc {

Node* BoundedSizes::choose(Graph& g, Node* n) {
  Value *x = operand(*n, 0), *condition = operand(*n, 1), *y = n->outputs.at(0);
  if (!x || !condition || !y || !x->type.is_static_tensor() || !condition->type.is_static_tensor()) return n;
  if (rank_of(condition) != 1 || !(is_counted(x) || is_counted(condition))) return n;
  const bool flat = !n->attrs.contains("axis");
  const int64_t axis = flat ? 0 : axis_from_front(n->attr_int("axis", 0), x);
  if (!flat && (axis < 0 || axis >= rank_of(x))) return n;
  if (flat) {
    SizeForm number = fixed_size(1);
    for (const SizeForm& f : forms(x)) number = number * f;
    x = viewed(g, n, x, {number}, derived(y->name, "_flat"));
  }
  Value* first = g.add_constant(derived(y->name, "_axis"), int64_constant({0}));
  Value* where = condition->constant ? constant_op(g, n, "NonZero", {condition}, derived(y->name, "_where"))
                                     : made(g, n, "NonZero", {condition}, derived(y->name, "_where"));
  Value* places = where->constant ? constant_op(g, n, "Squeeze", {where, first}, derived(y->name, "_places"))
                                  : made(g, n, "Squeeze", {where, first}, derived(y->name, "_places"));
  return replaced(g, n, made(g, n, "Gather", {x, places}, derived(y->name, "_chosen"), {{"axis", axis}}));
}

// The grid's number of images is that of the matrices.
void BoundedSizes::bound_grid(Graph& g, Node* n) {
  const Value *theta = operand(*n, 0), *sizes = operand(*n, 1);
  if (!theta || !sizes || sizes->constant || !theta->type.is_static_tensor() || !sizes->type.is_static_tensor()) return;
  if (rank_of(theta) != 3 || rank_of(sizes) != 1) return;
  std::vector<int64_t> bounds;
  for (int64_t k = 0; k < dims_of(sizes)[0]; k++) {
    const auto e = element(sizes, k);
    if (!e || (k == 0 ? *e != form_along(theta, 0) : !e->fixed())) return;
    bounds.push_back(k == 0 ? dims_of(theta)[0] : e->addend);
  }
  g.set_input(n, 1, g.add_constant(derived(n->outputs.at(0)->name, "_bounds"), int64_constant(bounds)));
}

}  // namespace tc
