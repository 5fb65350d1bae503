// Sizes that the model computes from counts: lists of them for Reshape, Expand and ConstantOfShape, the end of a Range.
// The operator gets the list of the upper bounds, and its result is counted by the same number.
//   s = Shape(x)   x counted along 0   z = ConstantOfShape(s)   ->   z = ConstantOfShape([bound, 4]), counted
#include <algorithm>

#include "ir/ops/op.h"
#include "passes/graph/bounded_sizes.h"
#include "passes/graph/rewrite.h"

namespace tc {

std::optional<SizeElement> BoundedSizes::element(const Value* v, int64_t k, int depth) const {
  if (v->constant) return SizeElement{v->constant->as_int(k), nullptr};
  for (const auto& [id, size] : sizes_)
    if (size.count == v) return SizeElement{size.room, size.count};
  const Node* n = v->producer;
  if (!n || depth == 0 || n->inputs.empty() || !n->inputs[0]) return std::nullopt;
  for (const char* op : {"Reshape", "Squeeze", "Unsqueeze", "Identity", "Cast"})
    if (n->is(op)) return element(n->inputs[0], k, depth - 1);
  if (n->is("Add") && n->inputs[1]) {
    const auto last = [&](const Value* operand) {  // one number goes with all
      return element(operand, operand->type.is_static_tensor() && num_elements(dims_of(operand)) == 1 ? 0 : k,
                     depth - 1);
    };
    const auto a = last(n->inputs[0]), b = last(n->inputs[1]);
    if (!a || !b) return std::nullopt;
    if (!a->count && a->bound == 0) return b;
    if (!b->count && b->bound == 0) return a;
    return a->count || b->count ? std::nullopt : std::optional<SizeElement>({a->bound + b->bound, nullptr});
  }
  if (n->is("Where")) {  // exporters' Where(Equal(sizes, -1), 1, sizes): a count is no negative number
    const Node* equal = made_by(n->inputs[0], "Equal");
    if (!equal || !equal->inputs[1]->constant || equal->inputs[0] != n->inputs[2]) return std::nullopt;
    const auto size = element(n->inputs[2], k, depth - 1);
    const int64_t other = equal->inputs[1]->constant->as_int(equal->inputs[1]->constant->size() == 1 ? 0 : k);
    if (!size || (size->count && other >= 0)) return std::nullopt;
    return size->count || size->bound != other ? size : element(n->inputs[1], k, depth - 1);
  }
  if (n->is("Concat")) {
    for (const Value* part : n->inputs) {
      if (!part->type.is_static_tensor() || part->type.shape.size() != 1) return std::nullopt;
      const int64_t size = dims_of(part)[0];
      if (k < size) return element(part, k, depth - 1);
      k -= size;
    }
    return std::nullopt;
  }
  const auto list = [&](size_t i) {
    return i < n->inputs.size() && n->inputs[i] ? ints_of(n->inputs[i]) : std::nullopt;
  };
  if (!n->inputs[0]->type.is_static_tensor() || n->inputs[0]->type.shape.size() != 1) return std::nullopt;
  const int64_t length = dims_of(n->inputs[0])[0];
  if (n->is("Gather")) {
    const auto places = list(1);
    if (!places || k >= int64_t(places->size())) return std::nullopt;
    const int64_t at = (*places)[size_t(k)];
    return element(n->inputs[0], at < 0 ? at + length : at, depth - 1);
  }
  if (n->is("Slice")) {
    const auto starts = list(1), steps = list(4);
    if (!starts || starts->size() != 1 || (n->inputs.size() > 4 && n->inputs[4] && (!steps || (*steps)[0] != 1)))
      return std::nullopt;
    const int64_t first = std::clamp<int64_t>((*starts)[0] < 0 ? (*starts)[0] + length : (*starts)[0], 0, length);
    return element(n->inputs[0], first + k, depth - 1);
  }
  return std::nullopt;
}

/// x[0 : count] of a tensor that is counted by just that is the whole of it.
Node* BoundedSizes::bound_slice(Graph& g, Node* n) {
  const auto size = n->inputs.size() > 3 && n->inputs[2] && !n->inputs[2]->constant ? find(n->inputs[0]) : std::nullopt;
  const auto starts = size ? ints_of(n->inputs[1]) : std::nullopt, axes = size ? ints_of(n->inputs[3]) : std::nullopt;
  if (!starts || !axes || starts->size() != axes->size()) return n;
  const auto rank = int64_t(n->inputs[0]->type.shape.size());
  std::vector<int64_t> ends;
  for (size_t k = 0; k < axes->size(); k++) {
    const auto e = element(n->inputs[2], int64_t(k), 16);
    const int64_t axis = (*axes)[k] < 0 ? (*axes)[k] + rank : (*axes)[k];
    if (!e || (e->count && (e->count != size->count || axis != size->axis || (*starts)[k] != 0))) return n;
    ends.push_back(e->bound);
  }
  g.set_input(n, 2, g.add_constant(derived(n->outputs.at(0)->name, "_ends"), int64_constant(ends)));
  return n;
}

Node* BoundedSizes::bound_sizes(Graph& g, Node* n) {
  if (n->is("Slice")) return bound_slice(g, n);
  const bool range = n->is("Range");
  if (!range && !n->is("Reshape") && !n->is("Expand") && !n->is("ConstantOfShape")) return n;
  const size_t operand = n->is("ConstantOfShape") ? 0 : 1;
  if (operand >= n->inputs.size() || !n->inputs[operand] || n->inputs[operand]->constant) return n;
  const Value* sizes = n->inputs[operand];
  if (!sizes->type.is_static_tensor() || (n->outputs.at(0) && n->outputs[0]->type.is_static_tensor())) return n;
  if (range && (!is_scalar(n->inputs[0], 0) || n->inputs.size() < 3 || !is_scalar(n->inputs[2], 1))) return n;
  const int64_t length = range ? 1 : dims_of(sizes).at(0);
  std::vector<int64_t> bounds;
  BoundedSize found;
  for (int64_t k = 0; k < length; k++) {
    const auto e = element(sizes, k, 16);
    if (!e || (e->count && found.count)) return n;
    if (e->count) found = {int(k), e->count, e->bound};
    bounds.push_back(e->bound);
  }
  if (!found.count) return n;
  Value* constant =
      g.add_constant(derived(n->outputs.at(0)->name, "_bounds"),
                     range ? scalar_constant(sizes->type.dtype, double(bounds[0])) : int64_constant(bounds));
  g.set_input(n, operand, constant);
  if (n->is("Reshape")) return n;  // its result follows its operand
  if (n->is("Expand")) {           // broadcasting adds axes in front of the list's, never behind
    const auto rank = int64_t(n->inputs[0]->type.shape.size());
    found.axis += int(std::max<int64_t>(0, rank - length));
  }
  sizes_[n->outputs[0]->id] = found;
  return n;
}

}  // namespace tc
