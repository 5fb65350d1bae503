// Pad along axes whose numbers of elements are known at run time.
//   y = Pad(x, [0, 1, 0, 2])           x: [1, n]   ->   y = Pad(zeros behind x), counted by n + 3
//   y = Pad(x, [0, p, 0, q])           x: [1, n]   ->   i = [0, 1, 2, ...] - p
//                                                       y = Where(0 <= i < n, Gather(x, i), 0), counted by n + p + q
// As the second where pads are counts, or where they wrap: i is the remainder by n then.
//
// Preconditions: pads are constants, or forms of counts that are never negative; what is mirrored or repeated has enough elements.
#include <algorithm>

#include "ir/ops/op.h"
#include "passes/graph/counted_node.h"
#include "passes/graph/counted_order.h"

namespace tc {
namespace {

/// How many elements pads of up to `most` read.
int64_t most_read(const std::string& mode, int64_t most) {
  if (most == 0 || mode == "constant") return 0;
  return mode == "reflect" ? most + 1 : 1;
}

}  // namespace

Node* BoundedSizes::pad(Graph& g, Node* n) {
  Value* x = n->inputs[0];
  const std::string mode = n->attr_string("mode", "constant");
  const auto rank = size_t(rank_of(x));
  const auto pads = operand(*n, 1) ? ints_of(n->inputs[1]) : std::nullopt;
  if (mode == "wrap" || (!pads && operand(*n, 1))) return pad_by_forms(g, n);
  const auto axes = ints_or(*n, 3, in_order(rank));
  if (!pads || !axes || pads->size() != 2 * axes->size()) return n;
  if (std::any_of(pads->begin(), pads->end(), [](int64_t p) { return p < INT32_MIN || p > INT32_MAX; })) return n;
  std::vector<int64_t> all(2 * rank, 0);  // of every axis
  for (size_t k = 0; k < axes->size(); k++) {
    const int64_t d = axis_from_front((*axes)[k], x);
    if (d < 0 || d >= int64_t(rank)) return n;
    all[size_t(d)] = (*pads)[k];
    all[size_t(d) + rank] = (*pads)[k + axes->size()];
  }
  std::vector<SizeForm> out = forms(x);
  const std::vector<BoundedSize> counted = sizes(x);
  for (const BoundedSize& size : counted) {
    const auto d = size_t(size.axis);
    const int64_t before = all[d], after = all[d + rank];
    ask_elements(*n, size.axis, most_read(mode, std::max<int64_t>({before, after, 0})), out[d]);
    out[d] = out[d] + fixed_size(before + after);
    if (counts_.least(out[d]) < 0) return n;
  }
  for (size_t d = 0; d < rank; d++)
    if (!find(x, int(d))) out[d] = fixed_size(0);  // the type has it
  for (const BoundedSize& size : counted) pad_end(g, n, size, all);
  const ModelText& name = n->outputs.at(0)->name;
  g.set_input(n, 1, g.add_constant(derived(name, "_pads"), int64_constant(all)));
  if (operand(*n, 3)) g.set_input(n, 3, nullptr);
  note_sized(g, n, x, out);
  return n;
}

// What Pad reads behind the last element, along one axis.
void BoundedSizes::pad_end(Graph& g, Node* n, const BoundedSize& size, std::vector<int64_t>& pads) {
  const size_t rank = pads.size() / 2, d = size_t(size.axis);
  const std::string mode = n->attr_string("mode", "constant");
  if (pads[d + rank] <= 0) return;
  Value *x = n->inputs[0], *number = mode == "constant" ? as_number(g, n, operand(*n, 2)) : nullptr;
  const ModelText name = derived(n->outputs.at(0)->name, "_axis" + to_text(int64_t(d)));
  if (mode == "reflect") {  // room for what is mirrored
    std::vector<int64_t> room(2 * rank, 0);
    std::swap(room[d + rank], pads[d + rank]);
    Value* wide =
        add_op(g, n, "Pad", {x, g.add_constant(derived(name, "_room"), int64_constant(room))}, derived(name, "_wide"));
    const std::vector<BoundedSize> all = sizes(x);
    for (const BoundedSize& s : all) note(wide, {s.axis, s.count, dims_of(wide)[size_t(s.axis)]});
    x = wide;
  }
  g.set_input(n, 0, filled(g, n, x, size, mode == "constant" ? "zero" : mode, number));
}

// Pads that come at run time: one axis after the other.
Node* BoundedSizes::pad_by_forms(Graph& g, Node* n) {
  Value *x = n->inputs[0], *pads = n->inputs[1];
  const std::string mode = n->attr_string("mode", "constant");
  const auto axes = ints_or(*n, 3, in_order(size_t(rank_of(x))));
  if (!axes || !pads->type.is_static_tensor() || dims_of(pads) != Dims{2 * int64_t(axes->size())}) return n;
  std::vector<AxisPads> list;
  for (size_t k = 0; k < axes->size(); k++) {
    const int64_t d = axis_from_front((*axes)[k], x);
    const auto before = element(pads, int64_t(k)), after = element(pads, int64_t(k + axes->size()));
    if (d < 0 || d >= int64_t(rank_of(x)) || !before || !after) return n;
    if (*before == fixed_size(0) && *after == fixed_size(0)) continue;
    const AxisPads p = {int(d), *before, *after};
    if (std::any_of(list.begin(), list.end(), [&](const AxisPads& o) { return o.axis == p.axis; })) return n;
    const int64_t most = std::max(counts_.bound(*before), counts_.bound(*after));
    if (counts_.least(*before) < 0 || counts_.least(*after) < 0 || most > INT32_MAX) return n;
    ask_elements(*n, p.axis, most_read(mode, most), form_along(x, p.axis));
    list.push_back(p);
  }
  Value* number = mode == "constant" ? as_number(g, n, operand(*n, 2)) : nullptr;
  for (const AxisPads& p : list) x = pad_along(g, n, x, p, mode, number);
  return replaced(g, n, x);
}

// Throws Error TC0303 where a run may have fewer elements than Pad reads.
void BoundedSizes::ask_elements(const Node& n, int axis, int64_t needed, const SizeForm& length) const {
  if (const int64_t least = counts_.least(length); least < needed)
    refuse_counted(n, n.inputs[0],
                   "pads of mode " + n.attr_string("mode", "constant") + " need " + to_text(needed) +
                       " elements along axis " + to_text(int64_t(axis)) + ", but a run may have " + to_text(least) +
                       ": let the range of the size begin later");
}

Value* BoundedSizes::pad_along(Graph& g, Node* n, Value* x, const AxisPads& p, const std::string& mode, Value* number) {
  const ModelText name = derived(n->outputs.at(0)->name, "_axis" + to_text(int64_t(p.axis)));
  const SizeForm length = form_along(x, p.axis);
  std::vector<SizeForm> out = forms(x);
  out[size_t(p.axis)] = length + p.before + p.after;
  const auto list = [&](const std::string& suffix, const std::vector<int64_t>& v) {
    return g.add_constant(derived(name, suffix), int64_constant(v));
  };
  const auto op = [&](const char* what, Value* a, Value* b, const std::string& suffix) {
    return add_op(g, n, what, {a, b}, derived(name, suffix));
  };
  Value *zero = list("_zero", {0}), *end = number_of(g, n, length, derived(name, "_length"));
  Value* at = op("Sub", numbers_in_steps(g, n, counts_.bound(out[size_t(p.axis)]), 1, derived(name, "_order")),
                 number_of(g, n, p.before, derived(name, "_before")), "_at");
  Value *place = at, *last = op("Sub", end, list("_one", {1}), "_last");
  if (mode == "reflect") {
    place = add_op(g, n, "Abs", {place}, derived(name, "_mirrored"));
    place = op("Min", place, op("Sub", op("Add", last, last, "_twice"), place, "_back"), "_folded");
  }
  if (mode == "wrap") place = op("Mod", place, end, "_wrapped");
  place = op("Max", op("Min", place, last, "_below"), zero, "_place");
  Node* part = insert_for(g, *n, n, "Gather", {x, place}, {derived(name, "_moved")}, {{"axis", int64_t(p.axis)}});
  infer_types(g, *part);
  if (mode == "constant") {
    Value* inside = op("And", op("GreaterOrEqual", at, zero, "_begun"), op("Less", at, end, "_not_ended"), "_inside");
    std::vector<int64_t> shape(size_t(rank_of(x)), 1);
    shape[size_t(p.axis)] = -1;
    inside = op("Reshape", inside, list("_shape", shape), "_along");
    if (!number) number = g.add_constant(derived(name, "_fill"), scalar_constant(x->type.dtype, 0));
    part = insert_for(g, *n, n, "Where", {inside, part->outputs[0], number}, {derived(name, "_padded")});
  }
  note_sized(g, part, x, out);
  return part->outputs[0];
}

}  // namespace tc
