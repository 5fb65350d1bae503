// Slices between positions that come at run time, of a tensor with a known size: the elements from the start on, as many
// as there are up to the end.
//   y = Slice(x, [s], [e])   x: f32[8,4]   ->   i = Min([0, 1, ..., 7] + s, 7)   y = Gather(x, i), counted by e - s
// A slice of what is counted up to its count is the whole of it. One whose ends are forms is counted by a form:
//   y = Slice(x, [1], [-1])   x counted by n   ->   y = Slice(x, [1], [most]), counted by max(max(n - 1, 0) - min(n, 1), 0)
//   y = Slice(x, [-1], [-inf], step -1)        ->   y = Gather(x, Max([0, -1, -2, ...] + n - 1, 0)), counted by n
#include <algorithm>
#include <array>
#include <cstdlib>

#include "ir/open_size.h"
#include "ir/ops/op.h"
#include "passes/graph/counted_node.h"
#include "passes/graph/counted_order.h"

namespace tc {
namespace {

bool is_list(const Value* v) {
  return v && v->type.is_static_tensor() && v->type.shape.size() == 1 && is_int(v->type.dtype);
}

/// Where element k of a list comes from: a value and an index in it, or a number. Lists of one number are looked
/// through.
std::array<int64_t, 2> origin_of(const Value* v, int64_t k) {
  if (v->constant) return {-1, v->constant->as_int(k)};
  const auto one = [](const Value* x) { return x && x->type.is_static_tensor() && has_one_element(dims_of(x)); };
  while (one(v) && v->producer && v->producer->domain.empty()) {
    const Node& n = *v->producer;
    if (!n.is("Unsqueeze") && !n.is("Squeeze") && !n.is("Reshape") && !n.is("Identity")) break;
    if (!one(n.inputs[0])) break;
    v = n.inputs[0];
    k = 0;
  }
  return {v->id, k};
}

Value* number(Graph& g, const ModelText& name, int64_t n) {
  return g.add_constant(name, make_constant(DType::I64, {}, &n));
}

}  // namespace

std::optional<BoundedSizes::Cut> BoundedSizes::only_open_cut(Graph& g, Node* n) {
  const Value *starts = n->inputs.at(1), *ends = n->inputs.at(2);
  if (!is_list(starts) || !is_list(ends) || dims_of(starts) != dims_of(ends)) return std::nullopt;
  const auto length = size_t(dims_of(starts)[0]);
  const auto axes = ints_or(*n, 3, in_order(length)), steps = ints_or(*n, 4, std::vector<int64_t>(length, 1));
  if (!axes || !steps || axes->size() != length || steps->size() != length) return std::nullopt;
  std::optional<Cut> open;
  std::vector<int64_t> lists[4];  // what is known: starts, ends, axes, steps
  const auto rank = int64_t(rank_of(n->inputs[0]));
  for (size_t k = 0; k < length; k++) {
    const auto from = element(starts, int64_t(k)), to = element(ends, int64_t(k));
    if (from && to && from->fixed() && to->fixed()) {
      const int64_t known[4] = {from->addend, to->addend, (*axes)[k], (*steps)[k]};
      for (size_t i = 0; i < 4; i++) lists[i].push_back(known[i]);
      continue;
    }
    const int64_t axis = (*axes)[k] < 0 ? (*axes)[k] + rank : (*axes)[k];
    if (open || (*steps)[k] != 1 || axis < 0 || axis >= rank) return std::nullopt;
    open = Cut{int(axis), {from, n->inputs[1], int64_t(k)}, {to, n->inputs[2], int64_t(k)}};
  }
  if (!open || lists[0].empty()) return open;
  // What is known is cut first.
  for (int64_t a : lists[2])
    if (find(n->inputs[0], int(a < 0 ? a + rank : a))) return std::nullopt;
  const ModelText& name = n->outputs.at(0)->name;
  std::vector<Value*> operands = {n->inputs[0]};
  for (const auto& l : lists) operands.push_back(g.add_constant(derived(name, "_known"), int64_constant(l)));
  g.set_input(n, 0, add_op(g, n, "Slice", operands, derived(name, "_known_part")));
  note_others(n->inputs[0], operands[0], -1);
  return open;
}

Value* BoundedSizes::border(Graph& g, Node* n, const Border& b, Value* length, const std::string& suffix) {
  const ModelText name = derived(n->outputs.at(0)->name, suffix);
  if (b.form && b.form->fixed() && b.form->addend == 0) return number(g, name, 0);
  Value* at = b.list;
  if (at->type.dtype != DType::I64) at = add_op(g, n, "Cast", {at}, derived(name, "_i64"), {{"to", int64_t(7)}});
  at = add_op(g, n, "Gather", {at, number(g, derived(name, "_at"), b.index)}, derived(name, "_given"));
  Value* zero = number(g, derived(name, "_zero"), 0);
  Value* moved = add_op(g, n, "Add", {at, length}, derived(name, "_moved"));
  Value* behind = add_op(g, n, "Less", {at, zero}, derived(name, "_from_end"));
  Value* index = add_op(g, n, "Where", {behind, moved, at}, derived(name, "_place"));
  return add_op(g, n, "Max", {add_op(g, n, "Min", {index, length}, derived(name, "_most")), zero}, name);
}

BoundedSizes::CutParts BoundedSizes::parts_of(Graph& g, Node* n, const Cut& c, Value* length,
                                              const std::vector<int64_t>& key) {
  CutParts& p = cuts_[key];
  if (p.count) return p;
  const ModelText& name = n->outputs.at(0)->name;
  Value *start = border(g, n, c.start, length, "_start"), *end = border(g, n, c.end, length, "_end");
  Value* distance = add_op(g, n, "Sub", {end, start}, derived(name, "_distance"));
  Value* count = add_op(g, n, "Max", {distance, number(g, derived(name, "_none"), 0)}, derived(name, "_count"));
  counts_.remember(start);
  counts_.remember(count);
  return p = {start, count};
}

Node* BoundedSizes::cut(Graph& g, Node* n, const Cut& c) {
  Value *x = n->inputs[0], *y = n->outputs.at(0);
  const auto own = find(x, c.axis);
  const int64_t size = dims_of(x)[size_t(c.axis)];
  const bool from_front = c.start.form && *c.start.form == fixed_size(0);
  // x[0 : count] with no more counted than there is.
  if (from_front && c.end.form && !own && counts_.least(*c.end.form) >= 0 && counts_.bound(*c.end.form) <= size) {
    const int64_t capacity = counts_.bound(*c.end.form);
    Value* count = counts_.value_of(g, n, *c.end.form, derived(y->name, "_count"));
    const auto list = [&](const std::string& suffix, int64_t v) {
      return g.add_constant(derived(y->name, suffix), int64_constant({v}));
    };
    Node* part =
        insert_for(g, *n, n, "Slice", {x, list("_from", 0), list("_to", capacity), list("_along", c.axis)}, {y->name});
    g.replace_uses(y, part->outputs[0]);
    g.erase(n);
    infer_types(g, *part);
    note(part->outputs[0], {c.axis, count, capacity});
    note_others(part->outputs[0], x, c.axis);
    return part;
  }
  if (size == 0) return n;
  if (c.start.form && c.end.form)
    if (Node* part = cut_by_forms(g, n, c.axis, *c.start.form, *c.end.form, 1); part != n) return part;
  Value* length = own ? own->count : number(g, derived(y->name, "_length"), size);
  std::vector<int64_t> key = {own ? own->count->id : -1, size};
  for (const Border* b : {&c.start, &c.end})
    for (int64_t part : origin_of(b->list, b->index)) key.push_back(part);
  const auto [start, count] = parts_of(g, n, c, length, key);
  Value* all = numbers_in_steps(g, n, size, 1, derived(y->name, "_order"));
  Value* indices = add_op(
      g, n, "Min",
      {add_op(g, n, "Add", {all, start}, derived(y->name, "_moved")), number(g, derived(y->name, "_last"), size - 1)},
      derived(y->name, "_places"));
  Node* part = insert_for(g, *n, n, "Gather", {x, indices}, {y->name}, {{"axis", int64_t(c.axis)}});
  g.replace_uses(y, part->outputs[0]);
  g.erase(n);
  infer_types(g, *part);
  note(part->outputs[0], {c.axis, count, size});
  note_others(part->outputs[0], x, c.axis);
  return part;
}

// Where an end of a Slice lies, from the front and within the axis; nothing where the run decides from which end it counts.
std::optional<SizeForm> BoundedSizes::within(SizeForm at, const SizeForm& length, bool backwards) {
  const int64_t most = counts_.bound(length);
  // As large a number as exporters write means the end, also of what has no upper bound.
  if (at.fixed() && is_open(most) && std::abs(std::max(at.addend, -INT64_MAX)) >= INT32_MAX)
    at.addend = at.addend < 0 ? -most - 1 : most + 1;
  if (at.fixed()) at.addend = std::clamp<int64_t>(at.addend, -most - 1, most + 1);
  const int64_t more = backwards ? 1 : 0;  // the place behind it: before the first element there is none
  const SizeForm zero = fixed_size(0);
  if (counts_.bound(at) < 0) return counts_.larger(length + at + fixed_size(more), zero);
  if (counts_.least(at) < 0) return std::nullopt;
  return counts_.lesser(at + fixed_size(more), length);
}

// A Slice along one axis whose ends are forms: as many elements as these say.
Node* BoundedSizes::cut_by_forms(Graph& g, Node* n, int axis, const SizeForm& from, const SizeForm& to, int64_t step) {
  Value *x = n->inputs[0], *y = n->outputs.at(0);
  const SizeForm length = form_along(x, axis);
  const int64_t capacity = dims_of(x)[size_t(axis)];
  auto start = within(from, length, step < 0);
  const auto end = within(to, length, step < 0);
  // Backwards it starts at an element, as ONNX has it.
  if (start && step < 0) start = counts_.larger(*start, counts_.lesser(fixed_size(1), length));
  if (!start || !end || capacity == 0 || step == 0 || std::abs(step) > INT32_MAX) return n;
  const int64_t stride = std::abs(step);
  const SizeForm span = counts_.larger(step > 0 ? *end - *start : *start - *end, fixed_size(0));
  const SizeForm number = counts_.simplest(counts_.quotient(span + fixed_size(stride - 1), stride));
  const auto list = [&](const std::string& suffix, const std::vector<int64_t>& v) {
    return g.add_constant(derived(y->name, suffix), int64_constant(v));
  };
  Node* part = nullptr;
  int64_t most = counts_.bound(number);
  if (step > 0 && from.fixed() && from.addend >= 0) {
    const int64_t first = std::min(from.addend, capacity), room = (capacity - first + stride - 1) / stride;
    most = std::min(most, room);
    const std::vector<Value*> operands = {x, list("_from", {first}),
                                          list("_to", {std::min(first + most * stride, capacity)}),
                                          list("_along", {axis}), list("_step", {step})};
    part = insert_for(g, *n, n, "Slice", operands, {y->name});
  } else {
    Value* first = number_of(g, n, step > 0 ? *start : *start - fixed_size(1), derived(y->name, "_start"));
    Value* places = add_op(g, n, "Add", {numbers_in_steps(g, n, most, step, derived(y->name, "_order")), first},
                           derived(y->name, "_moved"));
    places = add_op(g, n, "Min", {places, number_of(g, n, fixed_size(capacity - 1), derived(y->name, "_last"))},
                    derived(y->name, "_below"));
    places = add_op(g, n, "Max", {places, number_of(g, n, fixed_size(0), derived(y->name, "_first"))},
                    derived(y->name, "_places"));
    part = insert_for(g, *n, n, "Gather", {x, places}, {y->name}, {{"axis", int64_t(axis)}});
  }
  g.replace_uses(y, part->outputs[0]);
  g.erase(n);
  std::vector<SizeForm> out = forms(x);
  out[size_t(axis)] = number;
  note_sized(g, part, x, out);
  return part;
}

// Several axes are cut one after the other.
Node* BoundedSizes::cut_each(Graph& g, Node* n, const std::vector<int64_t>& axes, const std::vector<int64_t>& steps) {
  const ModelText name = n->outputs.at(0)->name;
  Value* x = n->inputs[0];
  for (size_t k = 0; k < axes.size(); k++) {
    const std::string suffix = "_cut" + to_text(int64_t(k));
    const auto one = [&](Value* list, const std::string& of) {
      Value* at = g.add_constant(derived(name, suffix + of), int64_constant({int64_t(k)}));
      return constant_op(g, n, "Gather", {list, at}, derived(name, suffix + of + "_of"));
    };
    Value* along = g.add_constant(derived(name, suffix + "_along"), int64_constant({axes[k]}));
    Value* step = g.add_constant(derived(name, suffix + "_by"), int64_constant({steps[k]}));
    x = made(g, n, "Slice", {x, one(n->inputs[1], "_start"), one(n->inputs[2], "_end"), along, step},
             derived(name, suffix));
  }
  return replaced(g, n, x);
}

Node* BoundedSizes::bound_slice(Graph& g, Node* n) {
  Value *x = n->inputs.at(0), *y = n->outputs.at(0);
  const bool known = n->inputs.at(1) && n->inputs[1]->constant && n->inputs.at(2) && n->inputs[2]->constant;
  if (!x || !y || !x->type.is_static_tensor() || (known ? !is_counted(x) : y->type.is_static_tensor())) return n;
  const Value *starts = n->inputs.at(1), *ends = n->inputs.at(2);
  if (!is_list(starts) || !is_list(ends) || dims_of(starts) != dims_of(ends)) return n;
  const auto length = size_t(dims_of(starts)[0]);
  auto axes = ints_or(*n, 3, in_order(length)), steps = ints_or(*n, 4, std::vector<int64_t>(length, 1));
  if (!axes || !steps || axes->size() != length || steps->size() != length) return n;
  const auto rank = int64_t(rank_of(x));
  bool across = false;  // does it look across a counted axis?
  for (size_t k = 0; k < length; k++) {
    int64_t& a = (*axes)[k];
    a = a < 0 ? a + rank : a;
    if (a < 0 || a >= rank || std::count(axes->begin(), axes->begin() + std::ptrdiff_t(k), a) != 0) return n;
    if (!known || !find(x, int(a))) continue;
    const int64_t start = starts->constant->as_int(int64_t(k)), end = ends->constant->as_int(int64_t(k));
    across = across || start != 0 || end < 0 || (*steps)[k] != 1;
  }
  if (known && !across) return n;
  const auto open = known ? std::nullopt : only_open_cut(g, n);
  if (open) {
    const auto own = find(x, open->axis);
    const bool whole = own && open->start.form == fixed_size(0) && open->end.form == counts_.find(own->count);
    if (!whole) return cut(g, n, *open);
    Node* same = insert_for(g, *n, n, "Identity", {n->inputs[0]}, {y->name});
    g.replace_uses(y, same->outputs[0]);
    g.erase(n);
    return same;
  }
  if (length > 1) return cut_each(g, n, *axes, *steps);
  const auto from = element(starts, 0), to = element(ends, 0);
  return length == 1 && from && to ? cut_by_forms(g, n, int((*axes)[0]), *from, *to, (*steps)[0]) : n;
}

}  // namespace tc
