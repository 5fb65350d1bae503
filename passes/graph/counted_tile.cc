// Tile of a tensor whose sizes are known at run time, or as often as a size says: an axis of its own for the copies.
//   y = Tile(x, [n, 1])   x: [1, 8]   ->   y = Expand(x, [n, 8])
//   y = Tile(x, [2])      x: [n]      ->   y = Reshape(Expand(Reshape(x, [1, n]), [2, n]), [2 n])
//
// Preconditions: all repeats are constants or forms of counts.
#include "passes/graph/counted_node.h"

namespace tc {

// Sizes as a list of i64.
Value* BoundedSizes::list_of(Graph& g, Node* n, const std::vector<SizeForm>& sizes, const ModelText& name) {
  Value* one = g.add_constant(derived(name, "_one"), int64_constant({1}));
  std::vector<Value*> parts;
  for (const SizeForm& f : sizes) {
    const std::string suffix = "_" + to_text(int64_t(parts.size()));
    parts.push_back(constant_op(g, n, "Reshape", {number_of(g, n, f, derived(name, suffix)), one},
                                derived(name, suffix + "_list")));
  }
  return constant_op(g, n, "Concat", parts, name, {{"axis", int64_t(0)}});
}

Node* BoundedSizes::tile(Graph& g, Node* n) {
  Value *x = operand(*n, 0), *repeats = operand(*n, 1), *y = n->outputs.at(0);
  if (!x || !repeats || !x->type.is_static_tensor() || !repeats->type.is_static_tensor()) return n;
  if (rank_of(repeats) != 1 || dims_of(repeats)[0] != rank_of(x)) return n;
  if (repeats->constant ? !is_counted(x) : y->type.is_static_tensor()) return n;
  const std::vector<SizeForm> from = forms(x);
  std::vector<SizeForm> split, wide, to;
  for (size_t d = 0; d < from.size(); d++) {
    const auto times = element(repeats, int64_t(d));
    if (!times || counts_.least(*times) < 0 || *times == fixed_size(0)) return n;
    to.push_back(from[d] * *times);
    if (*times != fixed_size(1) && from[d] != fixed_size(1)) {
      split.push_back(fixed_size(1));
      wide.push_back(*times);
    }
    split.push_back(from[d]);
    wide.push_back(from[d] == fixed_size(1) ? *times : from[d]);
  }
  Value* v = split == from ? x : viewed(g, n, x, split, derived(y->name, "_split"));
  v = made(g, n, "Expand", {v, list_of(g, n, wide, derived(y->name, "_sizes"))}, derived(y->name, "_copies"));
  if (wide != to) v = viewed(g, n, v, to, derived(y->name, "_merged"));
  return replaced(g, n, v);
}

}  // namespace tc
