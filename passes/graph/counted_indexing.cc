// PyTorch's x[i, j] with numbers in order, which its exporter writes as positions in a view that joins the axes.
//   f = Flatten(x, axis = 2)   p = j + i * m   y = Gather(f, p)   x: [n, m], i = 0, 1, ... n - 1 along 0 of p, j = 0, 1, ... m - 1 along 3
//     ->   y = Reshape(x, [n, 1, 1, m])
//
// Positions are a sum of numbers in order, each times a size: what Range, constants, Unsqueeze, Expand, Add and Mul make.
//
// Preconditions: each joined axis of x has one axis of the positions, in order, which is as long and steps over what lies behind it; the
// others have one element; nothing is added.
#include <algorithm>

#include "ir/ops/op.h"
#include "passes/graph/counted_node.h"

namespace tc {

namespace {

std::vector<int64_t> longer_than_one(const Dims& dims) {
  std::vector<int64_t> axes;
  for (size_t k = 0; k < dims.size(); k++)
    if (dims[k] != 1) axes.push_back(int64_t(k));
  return axes;
}

}  // namespace

// The one axis along which a constant counts up.
std::optional<BoundedSizes::PositionForm> BoundedSizes::counted_up(const TensorData& c) {
  const std::vector<int64_t> axes = longer_than_one(c.dims);
  if (axes.size() != 1 || c.size() < 2) return std::nullopt;
  const int64_t first = c.as_int(0), step = c.as_int(1) - first;
  for (int64_t k = 0; k < c.size(); k++)
    if (c.as_int(k) - first != k * step) return std::nullopt;
  return PositionForm{{{axes[0], fixed_size(step)}}, fixed_size(first)};
}

BoundedSizes::PositionForm BoundedSizes::PositionForm::plus(const PositionForm& other) const {
  PositionForm sum{axes, added + other.added};
  for (const auto& [axis, step] : other.axes) sum.axes[axis] = sum.axes[axis] + step;
  return sum;
}

BoundedSizes::PositionForm BoundedSizes::PositionForm::times(const SizeForm& factor) const {
  PositionForm product{{}, added * factor};
  for (const auto& [axis, step] : axes) product.axes[axis] = step * factor;
  return product;
}

std::optional<BoundedSizes::PositionForm> BoundedSizes::positions_in_order(const Value* v, int& budget) {
  if (!v || --budget < 0 || !v->type.is_static_tensor() || v->type.dtype != DType::I64) return std::nullopt;
  if (has_one_element(dims_of(v)))
    if (const auto number = element(v, 0)) return PositionForm{{}, *number};
  if (v->constant) return counted_up(*v->constant);
  const Node* n = v->producer;
  if (!n || n->inputs.empty()) return std::nullopt;
  if (n->is("Range") && n->inputs.size() > 2) {
    const auto first = element(n->inputs[0], 0), step = element(n->inputs[2], 0);
    return first && step ? std::optional(PositionForm{{{0, *step}}, *first}) : std::nullopt;
  }
  if (n->is("Add") || n->is("Mul")) return sum_or_product(*n, v, budget);
  if (n->is("Identity") || n->is("Cast") || n->is("Expand")) return aligned_positions(n->inputs[0], v, budget);
  if (n->is("Unsqueeze") || n->is("Squeeze") || n->is("Reshape")) return reshaped_positions(n->inputs[0], v, budget);
  return std::nullopt;
}

std::optional<BoundedSizes::PositionForm> BoundedSizes::aligned_positions(const Value* part, const Value* whole,
                                                                          int& budget) {
  const auto inner = positions_in_order(part, budget);
  if (!inner) return std::nullopt;
  PositionForm moved{{}, inner->added};
  for (const auto& [axis, step] : inner->axes) moved.axes[axis + rank_of(whole) - rank_of(part)] = step;
  return moved;
}

std::optional<BoundedSizes::PositionForm> BoundedSizes::sum_or_product(const Node& n, const Value* v, int& budget) {
  const auto a = aligned_positions(n.inputs[0], v, budget), b = aligned_positions(n.inputs[1], v, budget);
  if (!a || !b) return std::nullopt;
  if (n.is("Add")) return a->plus(*b);
  if (b->axes.empty()) return a->times(b->added);
  return a->axes.empty() ? std::optional(b->times(a->added)) : std::nullopt;
}

// Axes of one element come and go.
std::optional<BoundedSizes::PositionForm> BoundedSizes::reshaped_positions(const Value* from, const Value* to,
                                                                           int& budget) {
  const auto inner = positions_in_order(from, budget);
  if (!inner) return std::nullopt;
  const std::vector<int64_t> axes = longer_than_one(dims_of(from)), to_axes = longer_than_one(dims_of(to));
  if (axes.size() != to_axes.size()) return std::nullopt;
  PositionForm moved{{}, inner->added};
  for (size_t k = 0; k < axes.size(); k++) {
    if (dims_of(from)[size_t(axes[k])] != dims_of(to)[size_t(to_axes[k])]) return std::nullopt;
    if (const auto at = inner->axes.find(axes[k]); at != inner->axes.end()) moved.axes[to_axes[k]] = at->second;
  }
  return moved;
}

Node* BoundedSizes::take_in_order(Graph& g, Node* n) {
  if (!n->is("Gather") || n->inputs.size() < 2 || !n->outputs.at(0)) return n;
  const Value *joined = n->inputs[0], *at = n->inputs[1];
  const Node* view = joined ? joined->producer : nullptr;
  if (!view || (!view->is("Reshape") && !is_regroup(view))) return n;
  Value* x = view->inputs[0];
  for (const Value* v : {joined, at, static_cast<const Value*>(x)})
    if (!v || !v->type.is_static_tensor()) return n;
  if (axis_from_front(n->attr_int("axis", 0), joined) != 0 || (!is_counted(x) && !is_counted(at))) return n;
  const std::vector<SizeForm> whole = forms(x), lengths = forms(at), parts = forms(joined);
  SizeForm rows = fixed_size(1), step = fixed_size(1);
  size_t last = 0;  // of x's axes, the one behind those that are joined
  while (last < whole.size() && (last < 2 || rows != parts[0])) rows = rows * whole[last++];
  int budget = 200;
  const auto positions = last > 1 && rows == parts[0] ? positions_in_order(at, budget) : std::nullopt;
  if (!positions || positions->added != fixed_size(0)) return n;
  auto p = positions->axes.rbegin();
  for (size_t k = last; k-- > 0; step = step * whole[k]) {
    if (whole[k] == fixed_size(1)) continue;
    if (p == positions->axes.rend() || p->second != step || lengths[size_t(p->first)] != whole[k]) return n;
    ++p;
  }
  SizeForm elements = fixed_size(1);
  for (const SizeForm& f : lengths) elements = elements * f;
  if (p != positions->axes.rend() || elements != rows) return n;
  std::vector<SizeForm> to = lengths;
  to.insert(to.end(), parts.begin() + 1, parts.end());
  return replaced(g, n, viewed(g, n, x, to, derived(n->outputs[0]->name, "_taken")));
}

}  // namespace tc
