// Positions that count from the end of a counted axis are positions from its front once the count is added.
//   y = Gather(x, [-1])   x counted along 0 by n   ->   i = Where([-1] < 0, [-1] + n, [-1])   y = Gather(x, i)
//
// Preconditions: the axis is the counted one; positions that are known not to be negative stay.
#include <algorithm>

#include "ir/ops/op.h"
#include "passes/graph/bounded_sizes.h"

namespace tc {
namespace {

/// Are these positions from the front, whatever the data?
bool from_front(const Value* v, int& budget) {
  if (!v || --budget < 0) return false;
  if (v->constant) {
    for (int64_t k = 0; k < v->constant->size(); k++)
      if (v->constant->as_int(k) < 0) return false;
    return true;
  }
  const Node* n = v->producer;
  if (!n) return false;
  for (const char* op : {"NonZero", "NonMaxSuppression", "ArgMax", "ArgMin", "Shape"})
    if (n->is(op)) return true;
  if ((n->is("TopK") && v->index == 1) || (n->is("Unique") && v->index > 0)) return true;
  for (const char* op : {"Gather", "GatherND", "Slice", "Squeeze", "Unsqueeze", "Reshape", "Transpose", "Identity",
                         "Cast", "Split", "Expand"})
    if (n->is(op)) return from_front(n->inputs[0], budget);
  if (n->is("Range")) return is_scalar(n->inputs[0], 0) && n->inputs.size() > 2 && is_scalar(n->inputs[2], 1);
  if (n->domain == "tc" && n->op == "regroup") return from_front(n->inputs[0], budget);
  if (!n->is("Concat")) return false;
  return std::all_of(n->inputs.begin(), n->inputs.end(), [&](const Value* part) { return from_front(part, budget); });
}

}  // namespace

void BoundedSizes::count_positions(Graph& g, Node* n) {
  if (!n->is("Gather") && !n->is("GatherND")) return;
  Value *x = n->inputs.at(0), *at = n->inputs.at(1);
  if (!x || !at || !x->type.is_static_tensor() || !at->type.is_static_tensor() || !is_int(at->type.dtype)) return;
  const auto rank = int64_t(x->type.shape.size()), axis = n->attr_int("axis", 0);
  if (n->is("GatherND") && n->attr_int("batch_dims", 0) != 0) return;
  const auto size = find(x, n->is("Gather") ? int(axis < 0 ? axis + rank : axis) : 0);
  int budget = 200;
  if (!size || from_front(at, budget)) return;
  const ModelText& name = n->outputs.at(0)->name;
  Value* length = size->count;
  if (n->is("GatherND")) {  // a position has one number for each of the first axes
    const Dims dims = dims_of(x), list = dims_of(at);
    const int64_t numbers = list.empty() ? 0 : list.back();
    if (numbers < 1 || numbers > rank) return;
    for (int d = 1; d < numbers; d++)
      if (find(x, d)) return;
    const auto constant = [&](const std::string& suffix, const std::vector<int64_t>& v) {
      return g.add_constant(derived(name, suffix), int64_constant(v));
    };
    Value* first = add_op(g, n, "Reshape", {length, constant("_one", {1})}, derived(name, "_length"));
    Value* rest = constant("_lengths", std::vector<int64_t>(dims.begin() + 1, dims.begin() + std::ptrdiff_t(numbers)));
    length = add_op(g, n, "Concat", {first, rest}, derived(name, "_all_lengths"), {{"axis", int64_t(0)}});
  }
  if (at->type.dtype != DType::I64) at = add_op(g, n, "Cast", {at}, derived(name, "_places"), {{"to", int64_t(7)}});
  Value* zero = g.add_constant(derived(name, "_zero"), scalar_constant(DType::I64, 0));
  Value* behind = add_op(g, n, "Less", {at, zero}, derived(name, "_from_end"));
  Value* moved = add_op(g, n, "Add", {at, length}, derived(name, "_moved"));
  Value* index = add_op(g, n, "Where", {behind, moved, at}, derived(name, "_place"));
  // What is counted along the positions' axes stays counted along the same ones.
  note_others(index, n->inputs[1], -1);
  g.set_input(n, 1, index);
}

}  // namespace tc
