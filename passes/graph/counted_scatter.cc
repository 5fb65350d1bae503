// Scattering along axes whose sizes are known at run time. How many updates and rows there are become operands:
//   y = ScatterElements(x, i, u)   i, u counted by n along the axis, x by m   ->   y = ScatterElements(x, i, u, n, m)
//   y = ScatterND(x, i, u)         by n along the first axis                  ->   the same
// Where updates are counted along other axes, those behind the last one go to a row of their own behind the data, which is cut off
// again. Positions that count from the end are positions from the front first.
//   y = ScatterElements(x, i, u)   i, u counted by n   ->   f = tc.fill_behind(i, n, rows of x)
//                                                           y = the rows of ScatterElements(Concat(x, row), f, u)
//   y = ScatterND(x, i, u)         ->   positions in the flattened first axes of x, and the same
// Along an axis that is not scattered along, and by which data and positions have the same count, what is behind stays behind.
//   y = TensorScatter(x, u, i)     u counted by n along the axis   ->   the same with n as an operand
//
// Preconditions: positions and updates have the same counts; the axis of ScatterND's position tuples has a known size.
#include <algorithm>

#include "ir/ops/op.h"
#include "passes/graph/counted_node.h"

namespace tc {

// Positions that count from the front, of which none is out of range: along one axis, or, by the elements of the last axis, along
// several.
Value* BoundedSizes::positions_from_front(Graph& g, Node* n, Value* at, const std::vector<SizeForm>& lengths,
                                          const ModelText& name) {
  std::vector<Value*> operands = {at};
  std::vector<int64_t> shape, axes;
  for (const SizeForm& f : lengths) {
    shape.push_back(f.fixed() ? f.addend : -1);
    if (!f.fixed()) operands.push_back(counts_.value_of(g, n, f, derived(name, "_length")));
  }
  for (const BoundedSize& s : sizes(at)) {
    axes.push_back(s.axis);
    operands.push_back(s.count);
  }
  Node* made = insert_for(g, *n, n, "positions", operands, {derived(name, "_place")},
                          {{"axes", std::move(axes)}, {"shape", std::move(shape)}}, "tc");
  infer_types(g, *made);
  note_others(made->outputs[0], at, -1);
  return made->outputs[0];
}

// Scatters into `data` with a spare row behind it, along `axis`, which the updates behind the last one of each of `open` go to.
Value* BoundedSizes::scatter_open(Graph& g, Node* n, Value* data, Value* at, const std::vector<BoundedSize>& open,
                                  int axis) {
  const ModelText name = n->outputs.at(0)->name;
  if (open.empty()) return add_op(g, n, n->op, {data, at, n->inputs[2]}, derived(name, "_scattered"), n->attrs);
  const auto constant = [&](const std::string& suffix, int64_t v) {
    return g.add_constant(derived(name, suffix), int64_constant({v}));
  };
  Dims row = dims_of(data);
  const int64_t rows = std::exchange(row[size_t(axis)], 1);
  Value* spare = g.add_constant(derived(name, "_spare_row"),
                                std::make_shared<const TensorData>(new_tensor(data->type.dtype, row).data));
  Value* longer = add_op(g, n, "Concat", {data, spare}, derived(name, "_longer"), {{"axis", int64_t(axis)}});
  Value* past_end = constant("_spare", rows);
  for (const BoundedSize& size : open) at = filled(g, n, at, size, "zero", past_end);
  Value* whole = add_op(g, n, n->op, {longer, at, n->inputs[2]}, derived(name, "_scattered"), n->attrs);
  return add_op(g, n, "Slice", {whole, constant("_from", 0), past_end, constant("_along", axis)},
                derived(name, "_cut"));
}

void BoundedSizes::scatter_rows(Graph& g, Node* n) {
  Value *cache = n->inputs.at(0), *news = n->inputs.at(1);
  if (!cache || !news || is_counted(cache) || !news->type.is_static_tensor() || n->inputs.size() > 3) return;
  const auto size = only_size(news);
  if (!size || size->axis != axis_from_front(n->attr_int("axis", -2), news)) return;
  while (n->inputs.size() < 4) g.add_node_input(n, nullptr);
  g.set_input(n, 3, size->count);
  infer_types(g, *n);
  if (n->outputs[0]) told_.insert(n->outputs[0]->id);
}

Node* BoundedSizes::scatter(Graph& g, Node* n) {
  const auto open = [&](const Value* v) { return !v || !v->type.is_static_tensor(); };
  if (n->inputs.size() != 3 || std::any_of(n->inputs.begin(), n->inputs.end(), open)) return n;
  if (std::none_of(n->inputs.begin(), n->inputs.end(), [&](const Value* v) { return is_counted(v); })) return n;
  if (n->is("ScatterElements")) return scatter_elements(g, n);
  Node* put = put_by_mask(g, n);
  return put != n ? put : scatter_tuples(g, n);
}

// The same with counts of its updates, which lie along `axis` of the positions, and of the rows that these mean. Null where other axes
// of the positions are counted.
Node* BoundedSizes::scatter_counted(Graph& g, Node* n, int axis, const SizeForm& rows) {
  const auto& counted = sizes(n->inputs[1]);
  if (counted.size() > 1 || (!counted.empty() && counted[0].axis != axis)) return nullptr;
  if (counted.empty() && rows.fixed()) return nullptr;
  const ModelText name = n->outputs.at(0)->name;
  std::vector<Value*> operands = n->inputs;
  operands.push_back(counted.empty() ? nullptr : counted[0].count);
  if (!rows.fixed()) operands.push_back(counts_.value_of(g, n, rows, derived(name, "_rows")));
  Value* y = add_op(g, n, n->op, operands, derived(name, "_scattered"), n->attrs);
  note_others(y, n->inputs[0], -1);
  told_.insert(y->id);
  return replaced(g, n, y);
}

Node* BoundedSizes::scatter_elements(Graph& g, Node* n) {
  Value *data = n->inputs[0], *at = n->inputs[1];
  const auto axis = int(axis_from_front(n->attr_int("axis", 0), data));
  if (axis < 0 || axis >= rank_of(data) || rank_of(at) != rank_of(data) || forms(at) != forms(n->inputs[2])) return n;
  if (Node* counted = scatter_counted(g, n, axis, form_along(data, axis))) return counted;
  std::vector<BoundedSize> open;
  for (const BoundedSize& s : sizes(at)) {
    const auto own = find(data, s.axis);
    if (s.axis == axis || !own || own->count != s.count) open.push_back(s);
  }
  // A spare row would be the last one, from the end.
  if (find(data, axis) || !open.empty())
    at = positions_from_front(g, n, at, {form_along(data, axis)}, n->outputs.at(0)->name);
  Value* y = scatter_open(g, n, data, at, open, axis);
  note_others(y, data, -1);
  return replaced(g, n, y);
}

Node* BoundedSizes::scatter_tuples(Graph& g, Node* n) {
  Value *data = n->inputs[0], *at = n->inputs[1];
  const Dims dims = dims_of(data);
  const int last = rank_of(at) - 1;
  const int64_t numbers = last < 0 ? 0 : dims_of(at).back();
  if (numbers < 1 || numbers > int64_t(dims.size()) || find(at, last)) return n;
  std::vector<SizeForm> updates = forms(at);
  updates.pop_back();
  const std::vector<SizeForm> all = forms(data);
  updates.insert(updates.end(), all.begin() + std::ptrdiff_t(numbers), all.end());
  if (updates != forms(n->inputs[2])) return n;
  const auto fixed = [](const SizeForm& f) { return f.fixed(); };
  const bool one = numbers == 1;  // of several, rows are counted along none
  if (last > 0 && (one || std::all_of(all.begin(), all.begin() + numbers, fixed)))
    if (Node* counted = scatter_counted(g, n, 0, one ? all[0] : SizeForm{})) return counted;
  const ModelText name = n->outputs.at(0)->name;
  const auto constant = [&](const std::string& suffix, const std::vector<int64_t>& v) {
    return g.add_constant(derived(name, suffix), int64_constant(v));
  };
  // One number instead of several: the place in the first axes, flattened.
  const auto middle = dims.begin() + std::ptrdiff_t(numbers);
  std::vector<int64_t> strides(size_t(numbers), 1), flat(middle, dims.end());
  for (size_t k = strides.size() - 1; k-- > 0;) strides[k] = checked_mul(strides[k + 1], dims[k + 1]);
  flat.insert(flat.begin(), checked_mul(strides[0], dims[0]));
  const std::vector<SizeForm> lengths(all.begin(), all.begin() + std::ptrdiff_t(numbers));
  Value* index = positions_from_front(g, n, at, lengths, name);
  Value* parts = add_op(g, n, "Mul", {index, constant("_strides", strides)}, derived(name, "_parts"));
  // The tuples stay tuples, of one number.
  Value* linear = add_op(g, n, "ReduceSum", {parts, constant("_last", {-1})}, derived(name, "_linear"));
  Value* table =
      add_op(g, n, "Reshape", {data, constant("_rows", flat)}, derived(name, "_table"), {{"allowzero", int64_t(1)}});
  const std::vector<BoundedSize> open = sizes(at);
  Value* cut = scatter_open(g, n, table, linear, open, 0);
  Value* y =
      add_op(g, n, "Reshape", {cut, constant("_shape", dims)}, derived(name, "_whole"), {{"allowzero", int64_t(1)}});
  note_others(y, data, -1);
  return replaced(g, n, y);
}

}  // namespace tc
