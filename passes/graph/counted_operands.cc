// Operators that look across a counted axis. What lies behind the counted elements must not matter to them: it is
// replaced by what changes no result, and the operand then has a fixed size.
//   y = ReduceMax(x)   x counted   ->   f = tc.fill_behind(x, count) {fill = "lowest"}   y = ReduceMax(f)
//   y = ArgMax(x) {select_last_index = 1}   ->   y = Min(ArgMax(f), count - 1)
//   y = Concat(a, b)   a counted   ->   y = tc.join(a, a_count, b, b_size), counted by a_count + b_size
//   y = If(c) {return []} else {return f(x)}   ->   y = f(x), counted by c ? 0 : count
//   v, i = TopK(x, k)  k unknown   ->   v, i = TopK(f, bound of k), counted by k
//
// Preconditions: a reduction reduces the counted axis (one that keeps it goes on as it is), and has a number that changes
// nothing; Concat joins along the counted axis, or all its operands have the same count; TopK's k is at most the bound.
#include <algorithm>
#include <limits>

#include "ir/ops/op.h"
#include "passes/graph/counted_node.h"
#include "passes/graph/rewrite.h"

namespace tc {
namespace {

/// What changes no result of a reduction; "" for what is no reduction of this kind.
std::string neutral_fill(const Node& n) {
  if (n.is("TopK")) {  // what comes last in its order
    if (n.attr_int("largest", 1) != 0) return "lowest";
    return n.inputs.at(0) && is_float(n.inputs[0]->type.dtype) ? "nan" : "highest";
  }
  const OpRow* row = row_of(n);
  return row ? std::string(row->neutral) : "";
}

/// Does the operator look along this axis of its first operand?
bool looks_along(const Node& n, int axis) {
  if (n.is("NonZero")) return true;
  if (n.is("TopK")) return axis_from_front(n.attr_int("axis", -1), n.inputs[0]) == axis;
  if (n.is("ArgMax") || n.is("ArgMin")) return axis_from_front(n.attr_int("axis", 0), n.inputs[0]) == axis;
  const auto axes = n.inputs.size() > 1 && n.inputs[1] ? ints_of(n.inputs[1]) : std::vector<int64_t>();
  if (!axes) return false;
  if (axes->empty()) return n.attr_int("noop_with_empty_axes", 0) == 0;
  return std::any_of(axes->begin(), axes->end(), [&](int64_t a) { return axis_from_front(a, n.inputs[0]) == axis; });
}

/// An upper bound of a number of elements, from the constants that it is the least of.
std::optional<int64_t> upper_bound(const Value* v, int depth = 16) {
  if (const auto known = ints_of(v); known && known->size() == 1) return known->front();
  const Node* n = v->producer;
  if (!n || depth == 0) return std::nullopt;
  if (has_trait(*n, OpTrait::KeepsElements) || n->is("Cast")) return upper_bound(n->inputs[0], depth - 1);
  if (n->is("ReduceMin") && n->inputs.size() == 1) return upper_bound(n->inputs[0], depth - 1);
  if (!n->is("Min") && !n->is("Concat")) return std::nullopt;
  // The least of a list: of the operands of a Min, or of the parts that a ReduceMin joins.
  std::optional<int64_t> least;
  for (const Value* part : n->inputs)
    if (const auto b = upper_bound(part, depth - 1)) least = least ? std::min(*least, *b) : *b;
  return least;
}

/// Are all outputs constants without elements, one axis of which has none?
bool gives_nothing(const Graph& branch) {
  return std::all_of(branch.outputs().begin(), branch.outputs().end(), [](const Value* v) {
    return v->constant && std::count(v->constant->dims.begin(), v->constant->dims.end(), 0) == 1;
  });
}

/// Equal but for one axis?
bool same_beside(Dims a, Dims b, size_t axis) {
  if (a.size() != b.size()) return false;
  a[axis] = b[axis] = 0;
  return a == b;
}

Value* as_scalar(Graph& g, Node* before, Value* v, const ModelText& name) {
  if (v->type.dtype != DType::I64) v = add_op(g, before, "Cast", {v}, derived(name, "_i64"), {{"to", int64_t(7)}});
  if (v->type.shape.empty()) return v;
  return add_op(g, before, "Reshape", {v, g.add_constant(derived(name, "_scalar"), int64_constant({}))},
                derived(name, "_value"));
}

}  // namespace

Value* BoundedSizes::filled(Graph& g, Node* n, Value* x, const BoundedSize& size, const std::string& fill,
                            Value* number) {
  std::vector<Value*> operands = {x, size.count};
  if (number) operands.push_back(number);
  Node* f = insert_for(g, *n, n, "fill_behind", operands, {derived(x->name, "_filled")},
                       {{"axis", int64_t(size.axis)}, {"fill", fill}}, "tc");
  infer_types(g, *f);
  note_others(f->outputs[0], x, size.axis);
  return f->outputs[0];
}

std::optional<NodeIterator> BoundedSizes::take_branch(Graph& g, Node* n) {
  if (!n->is("If") ||
      std::none_of(n->inputs.begin() + 1, n->inputs.end(), [&](const Value* v) { return v && is_counted(v); }))
    return std::nullopt;
  size_t empty = 0;
  while (empty < 2 && !gives_nothing(*n->regions.at(empty))) empty++;
  if (empty == 2) return std::nullopt;
  Value* condition = n->inputs[0];
  counts_.remember(condition);
  const InsertionPoint point(g, *n);
  const auto results = inline_graph(g, n, *n->regions.at(1 - empty), {n->inputs.begin() + 1, n->inputs.end()});
  for (size_t k = 0; k < n->outputs.size(); ++k) {
    if (!n->outputs[k]) continue;
    const Dims dims = n->regions[empty]->outputs()[k]->constant->dims;
    Node* same = insert_for(g, *n, n, "Identity", {results.at(k)}, {n->outputs[k]->name});
    or_none_[same->outputs[0]->id] = {condition, empty == 0,
                                      int(std::find(dims.begin(), dims.end(), 0) - dims.begin())};
    g.replace_uses(n->outputs[k], same->outputs[0]);
  }
  g.erase(n);
  return point.next();
}

void BoundedSizes::count_or_none(Graph& g, Node* n) {
  Value *x = n->inputs[0], *y = n->outputs[0];
  const OrNone& none = or_none_.at(y->id);
  if (!x->type.is_static_tensor() || none.axis >= int(x->type.shape.size())) return;
  const int64_t capacity = dims_of(x)[size_t(none.axis)];
  const auto size = find(x, none.axis);
  Value* count =
      size ? size->count : g.add_constant(derived(y->name, "_size"), scalar_constant(DType::I64, double(capacity)));
  Value* zero = g.add_constant(derived(y->name, "_none"), scalar_constant(DType::I64, 0));
  if (none.when) std::swap(zero, count);
  Value* chosen = as_scalar(g, n, add_op(g, n, "Where", {none.condition, count, zero}, derived(y->name, "_chosen")),
                            derived(y->name, "_count"));
  note(y, {none.axis, chosen, capacity});
  note_others(y, x, none.axis);
}

bool BoundedSizes::says_sizes(const Node& n) const {
  return std::any_of(n.outputs.begin(), n.outputs.end(),
                     [&](const Value* v) { return v && (is_counted(v) || told_.count(v->id) != 0); });
}

Node* BoundedSizes::look_across(Graph& g, Node* n) {
  if (n->is("Identity") && n->outputs.at(0) && or_none_.count(n->outputs[0]->id)) count_or_none(g, n);
  fit(g, n);
  if (n->is("Concat")) return join(g, n);
  if (n->is("Split")) return split(g, n);
  if (n->is("Attention")) return attend(g, n);
  if (n->is("ScatterElements") || n->is("ScatterND")) return scatter(g, n);
  if (n->is("TensorScatter")) scatter_rows(g, n);
  if (n->is("Reshape") || n->is("Flatten")) return view(g, n);
  if ((n->is("Unsqueeze") || n->is("Squeeze")) &&
      n->inputs.at(0)) {  // formulas have no index along an axis of one element
    const auto& counted = sizes(n->inputs[0]);
    if (std::any_of(counted.begin(), counted.end(), [](const BoundedSize& s) { return s.capacity == 1; }))
      return view(g, n);
  }
  if (Node* view = take_in_order(g, n); view != n) return view;
  if (n->is("Tile")) return tile(g, n);
  if (n->is("Compress")) return choose(g, n);
  if (n->is("Unique")) return distinct(g, n);
  if (Node* counted = count_mask(g, n); counted != n) return counted;
  for (const auto rewrite : {&BoundedSizes::slide, &BoundedSizes::resample, &BoundedSizes::layer})
    if (Node* done = (this->*rewrite)(g, n); done != n || says_sizes(*n)) return done;
  n = look_along(g, n);
  count_positions(g, n);
  n = bound_sizes(g, n);
  if (n->is("TopK")) n = limit_top_k(g, n);
  if (n->is("NonMaxSuppression")) ignore_boxes_behind(g, n);
  const std::string fill = neutral_fill(*n);
  if (fill.empty() || !n->inputs.at(0)) return n;
  if (n->inputs[0]->type.dtype == DType::Bool && !n->is("NonZero")) return n;
  for (const BoundedSize& size : std::vector<BoundedSize>(sizes(n->inputs[0])))
    if (looks_along(*n, size.axis)) {
      g.set_input(n, 0, filled(g, n, n->inputs[0], size, fill));
      if (n->attr_int("select_last_index", 0) != 0) return limit_position(g, n, size);
      if (n->is("TopK") && !says_sizes(*n)) return select_rows(g, n);
    }
  return n;
}

Node* BoundedSizes::limit_position(Graph& g, Node* n, const BoundedSize& size) {
  const ModelText name = n->outputs.at(0)->name;
  Value* place = add_op(g, n, n->op, n->inputs, derived(name, "_place"), n->attrs);
  follow(g, place->producer);
  Value* one = g.add_constant(derived(name, "_one"), scalar_constant(DType::I64, 1));
  Value* last = add_op(g, n, "Sub", {size.count, one}, derived(name, "_last"));
  return replaced(g, n, made(g, n, "Min", {place, last}, name));
}

Node* BoundedSizes::limit_top_k(Graph& g, Node* n) {
  if (n->inputs.size() != 2 || !n->inputs[0] || !n->inputs[1] || n->inputs[1]->constant) return n;
  if (!n->inputs[0]->type.is_static_tensor() || n->inputs[1]->type.kind != ValueType::Kind::Tensor) return n;
  for (const Value* v : n->outputs)
    if (v && v->type.is_static_tensor()) return n;  // the model says how many there are
  const int axis = int(axis_from_front(n->attr_int("axis", -1), n->inputs[0]));
  const Dims dims = dims_of(n->inputs[0]);
  if (axis < 0 || axis >= int(dims.size())) return n;
  const int64_t capacity = dims[size_t(axis)],
                most = std::clamp<int64_t>(upper_bound(n->inputs[1]).value_or(capacity), 0, capacity);
  const ModelText& name = n->outputs.at(0) ? n->outputs[0]->name : n->outputs.at(1)->name;
  const auto form = element(n->inputs[1], 0);
  Value* count = form && !form->fixed() ? counts_.value_of(g, n, *form, derived(name, "_k"))
                                        : as_scalar(g, n, n->inputs[1], derived(name, "_k"));
  g.set_input(n, 1, g.add_constant(derived(name, "_most"), int64_constant({most})));
  for (const Value* v : n->outputs) {
    if (!v) continue;
    note(v, {axis, count, most});
    note_others(v, n->inputs[0], axis);
  }
  return n;
}

void BoundedSizes::ignore_boxes_behind(Graph& g, Node* n) {
  const std::vector<BoundedSize> all = sizes(n->inputs.at(1));
  if (all.empty()) return;
  // Boxes behind the last one have the lowest score, which the least one that counts is above; so have all of images and classes
  // behind the last one.
  for (const BoundedSize& size : all) {
    const int axis = size.axis == 2 ? 1 : 0;
    const auto boxes = size.axis == 1 ? std::nullopt : find(n->inputs[0], axis);
    if (boxes && boxes->count == size.count) g.set_input(n, 0, filled(g, n, n->inputs[0], *boxes, "zero"));
    g.set_input(n, 1, filled(g, n, n->inputs[1], size, "lowest"));
  }
  const float lowest = std::numeric_limits<float>::lowest();
  Value* least = g.add_constant(derived(n->inputs[1]->name, "_least"), make_constant(DType::F32, {1}, &lowest));
  Value* given = operand(*n, 4);
  if (given) least = constant_op(g, n, "Max", {given, least}, derived(n->inputs[1]->name, "_threshold"));
  while (n->inputs.size() < 5) g.add_node_input(n, nullptr);
  g.set_input(n, 4, least);
}

// Parts without elements leave nothing but their size, which the others have, too.
void BoundedSizes::drop_empty_parts(Graph& g, Node* n, int axis) {
  const auto is_empty = [&](const Value* v) { return dims_of(v)[size_t(axis)] == 0 && !find(v, axis); };
  for (size_t k = n->inputs.size(); k-- > 0;)
    if (n->inputs.size() > 1 && is_empty(n->inputs[k])) g.erase_node_input(n, k);
}

Node* BoundedSizes::join(Graph& g, Node* n) {
  bool along = false;
  const int axis = n->inputs.empty() || !n->inputs[0] ? 0 : int(axis_from_front(n->attr_int("axis", 0), n->inputs[0]));
  for (const Value* v : n->inputs) {
    // Concat tells what is wrong with parts that do not fit.
    if (!v || !v->type.is_static_tensor() || axis < 0 || axis >= rank_of(v)) return n;
    if (!same_beside(dims_of(v), dims_of(n->inputs[0]), size_t(axis))) return n;
    along = along || find(v, axis);
  }
  if (std::any_of(n->inputs.begin(), n->inputs.end(), [&](const Value* v) { return is_counted(v); }))
    drop_empty_parts(g, n, axis);
  if (!along) return n;
  // Along the other axes all parts have the same counts.
  for (const Value* v : n->inputs)
    for (int d = 0; d < rank_of(v); d++) {
      const auto here = find(v, d), there = find(n->inputs[0], d);
      if (d != axis && (here.has_value() != there.has_value() || (here && here->count != there->count))) return n;
    }
  const ModelText name = n->outputs.at(0)->name;
  std::vector<Value*> parts;
  SizeForm total;
  for (Value* v : n->inputs) {
    const auto size = find(v, axis);
    const std::string number = to_text(int64_t(parts.size() / 2));
    Value* count = size ? size->count
                        : g.add_constant(derived(name, "_size" + number),
                                         scalar_constant(DType::I64, double(dims_of(v)[size_t(axis)])));
    parts.insert(parts.end(), {v, count});
    total = total + (size ? *counts_.find(size->count) : fixed_size(dims_of(v)[size_t(axis)]));
  }
  const StatePair* state = state_of(g, n->outputs[0]);
  const bool grows = is_growing(parts[0]) || (state && parts[0] == g.inputs()[state->input]);
  if (grows && parts.size() > 2) return grow(g, n, axis, total);
  Value* count = counts_.value_of(g, n, total, derived(name, "_count"));
  Node* joined = insert_for(g, *n, n, "join", parts, {name}, {{"axis", int64_t(axis)}}, "tc");
  note_others(joined->outputs[0], n->inputs[0], axis);
  g.replace_uses(n->outputs[0], joined->outputs[0]);
  g.erase(n);
  infer_types(g, *joined);
  note(joined->outputs[0], {axis, count, dims_of(joined->outputs[0])[size_t(axis)]});
  return joined;
}

}  // namespace tc
