// Scattering of counted updates: those behind the last one go to a row of their own behind the data, which is cut off
// again.
//   y = ScatterElements(x, i, u)   i, u counted by n   ->   f = tc.fill_behind(i, n, rows of x)
//                                                           y = the rows of ScatterElements(Concat(x, row), f, u)
//   y = ScatterND(x, i, u)         ->   positions in the flattened first axes of x, and the same
//   y = TensorScatter(x, u, i)     u counted by n along the axis   ->   the same with n as an operand
//
// Preconditions: positions and updates have one count along the same axis; the data has a known shape, or is counted along the
// axis that is scattered along.
#include "ir/ops/op.h"
#include "passes/graph/counted_node.h"

namespace tc {

/// Updates behind the last one go to a row of their own behind the data, which is cut off again.
Node* BoundedSizes::scatter(Graph& g, Node* n) {
  const auto size = n->inputs.size() == 3 ? only_size(n->inputs[1]) : std::nullopt;
  if (!size || !n->inputs[0] || !n->inputs[0]->type.is_static_tensor()) return n;
  Value *data = n->inputs[0], *indices = n->inputs[1];
  const int64_t along = n->attr_int("axis", 0);
  const int axis = int(along < 0 ? along + rank_of(data) : along);
  const auto own = only_size(data), updates = only_size(n->inputs[2]);
  if (!updates || updates->count != size->count || updates->axis != size->axis) return n;
  if (is_counted(data) && (!own || own->axis != axis)) return n;
  Dims row = dims_of(data);
  const int64_t rows = row[size_t(axis)];
  row[size_t(axis)] = 1;
  const ModelText name = n->outputs.at(0)->name;
  const auto constant = [&](const std::string& suffix, const std::vector<int64_t>& v) {
    return g.add_constant(derived(name, suffix), int64_constant(v));
  };
  Value* spare = g.add_constant(derived(name, "_spare_row"),
                                std::make_shared<const TensorData>(new_tensor(data->type.dtype, row).data));
  Value* longer = add_op(g, n, "Concat", {data, spare}, derived(name, "_longer"), {{"axis", int64_t(axis)}});
  Node* f = insert_for(g, *n, n, "fill_behind", {indices, size->count, constant("_spare", {rows})},
                       {derived(indices->name, "_filled")}, {{"axis", int64_t(size->axis)}}, "tc");
  infer_types(g, *f);
  Value* whole = add_op(g, n, n->op, {longer, f->outputs[0], filled(g, n, n->inputs[2], *updates, "zero")},
                        derived(name, "_scattered"), n->attrs);
  Node* cut = insert_for(g, *n, n, "Slice",
                         {whole, constant("_from", {0}), constant("_to", {rows}), constant("_along", {axis})}, {name});
  g.replace_uses(n->outputs[0], cut->outputs[0]);
  g.erase(n);
  if (own) note(cut->outputs[0], *own);
  return cut;
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

Node* BoundedSizes::scatter_nd(Graph& g, Node* n) {
  const auto size = n->inputs.size() == 3 ? only_size(n->inputs[1]) : std::nullopt;
  const auto updates = size ? only_size(n->inputs[2]) : std::nullopt;
  if (!updates || updates->count != size->count || updates->axis != size->axis) return n;
  Value *data = n->inputs[0], *indices = n->inputs[1];
  if (!data->type.is_static_tensor() || is_counted(data) || size->axis == rank_of(indices) - 1) return n;
  const Dims dims = dims_of(data);
  const int64_t numbers = dims_of(indices).back();
  if (numbers < 1 || numbers > int64_t(dims.size())) return n;
  const ModelText name = n->outputs.at(0)->name;
  const auto constant = [&](const std::string& suffix, const std::vector<int64_t>& v) {
    return g.add_constant(derived(name, suffix), int64_constant(v));
  };
  // One number instead of several: the index in the first axes, flattened.
  const auto middle = dims.begin() + std::ptrdiff_t(numbers);
  const std::vector<int64_t> first(dims.begin(), middle);
  std::vector<int64_t> strides(first.size(), 1), flat(middle, dims.end());
  for (size_t k = strides.size() - 1; k-- > 0;) strides[k] = checked_mul(strides[k + 1], first[k + 1]);
  const int64_t rows = checked_mul(strides[0], first[0]);
  flat.insert(flat.begin(), rows);
  Value* zero = g.add_constant(derived(name, "_zero"), scalar_constant(DType::I64, 0));
  Value* behind = add_op(g, n, "Less", {indices, zero}, derived(name, "_from_end"));
  Value* moved = add_op(g, n, "Add", {indices, constant("_lengths", first)}, derived(name, "_moved"));
  Value* index = add_op(g, n, "Where", {behind, moved, indices}, derived(name, "_place"));
  Value* parts = add_op(g, n, "Mul", {index, constant("_strides", strides)}, derived(name, "_parts"));
  Value* linear = add_op(g, n, "ReduceSum", {parts, constant("_last", {-1})}, derived(name, "_linear"));
  note(linear, *size);
  Value* table = add_op(g, n, "Reshape", {data, constant("_rows", flat)}, derived(name, "_table"));
  Dims row = flat;
  row[0] = 1;
  Value* spare = g.add_constant(derived(name, "_spare_row"),
                                std::make_shared<const TensorData>(new_tensor(data->type.dtype, row).data));
  Value* longer = add_op(g, n, "Concat", {table, spare}, derived(name, "_longer"), {{"axis", int64_t(0)}});
  Node* f = insert_for(g, *n, n, "fill_behind", {linear, size->count, constant("_spare", {rows})},
                       {derived(indices->name, "_filled")}, {{"axis", int64_t(size->axis)}}, "tc");
  infer_types(g, *f);
  Value* whole = add_op(g, n, n->op, {longer, f->outputs[0], filled(g, n, n->inputs[2], *updates, "zero")},
                        derived(name, "_scattered"), n->attrs);
  Value* cut = add_op(g, n, "Slice", {whole, constant("_from", {0}), constant("_to", {rows}), constant("_along", {0})},
                      derived(name, "_cut"));
  Node* shaped = insert_for(g, *n, n, "Reshape", {cut, constant("_shape", dims)}, {name}, {{"allowzero", int64_t(1)}});
  g.replace_uses(n->outputs[0], shaped->outputs[0]);
  g.erase(n);
  return shaped;
}

}  // namespace tc
