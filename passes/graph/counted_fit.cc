// Parts of what is counted, and parts that meet again: pieces of a Split, frames of a signal, tensors that have as many elements
// but room for different numbers.
//   a, b = Split(x, [n, m])   x counted by n + m      ->   a = Slice(x, [0], [n])   b = Slice(x, [n], [n + m])
//   y = Add(a, b)   both counted by n, room for 189 and 252   ->   y = Add(a, Slice(b, [0], [189]))
//   y = STFT(x, 4, w, 16)     x: [1, n, 1]            ->   y counted along 1 by (n - 16) / 4 + 1
//
// Preconditions: the lengths of parts are constants or forms of counts; a frame fits into the least signal.
#include <algorithm>

#include "ir/ops/op.h"
#include "passes/graph/counted_node.h"

namespace tc {
// What is counted alike has room for as many elements.
void BoundedSizes::fit(Graph& g, Node* n) {
  if (!has_trait(*n, OpTrait::Broadcasts)) return;
  const auto cut = [&](size_t k, int axis, int64_t room) {
    Value* x = n->inputs[k];
    const BoundedSize size = *find(x, axis);
    const auto list = [&](const char* suffix, int64_t v) {
      return g.add_constant(derived(x->name, suffix), int64_constant({v}));
    };
    Value* y = add_op(g, n, "Slice", {x, list("_from", 0), list("_room", room), list("_along", axis)},
                      derived(x->name, "_fitting"));
    note(y, {axis, size.count, room});
    note_others(y, x, axis);
    g.set_input(n, k, y);
  };
  for (size_t k = 1; k < n->inputs.size(); k++)
    for (size_t j = 0; j < k; j++)
      for (int from_end = 1;; from_end++) {
        const Value *a = n->inputs[j], *b = n->inputs[k];
        if (!a || !b || !a->type.is_static_tensor() || !b->type.is_static_tensor()) break;
        const int at_a = rank_of(a) - from_end, at_b = rank_of(b) - from_end;
        if (at_a < 0 || at_b < 0) break;
        const auto size_a = find(a, at_a), size_b = find(b, at_b);
        if (!size_a || !size_b) continue;
        if (size_a->count != size_b->count) {
          const auto is_a = counts_.find(size_a->count), is_b = counts_.find(size_b->count);
          if (is_a && is_b) forbid_table_ends(*n, a, *is_a, *is_b);
          continue;
        }
        if (size_a->capacity > size_b->capacity) cut(j, at_a, size_b->capacity);
        if (size_b->capacity > size_a->capacity) cut(k, at_b, size_a->capacity);
      }
}

/// Of two sizes of `n` that have to be equal: throws Error TC0303 if one of them is that of a table which ends where the other goes
/// on. The first `seq` of 512 positions are as many as there are words up to 512 of these.
void BoundedSizes::forbid_table_ends(const Node& n, const Value* v, const SizeForm& a, const SizeForm& b) const {
  auto end = counts_.end_within(a, b);
  const SizeForm& whole = end ? b : a;
  if (!end) end = counts_.end_within(b, a);
  if (!end || *end < 2) return;  // a single one is broadcast
  const Value* count = counts_.only_count(whole);
  const bool is_input = count && !count->producer;
  const std::string name = is_input ? printable(count->name.raw()) : "";
  refuse_counted(n, v,
                 "a table of " + to_text(*end) + " meets " + (is_input ? "\"" + name + "\"" : "a size") +
                     ", which may be more: an error in ONNX",
                 is_input ? "it ends there: --dim " + name + "=" + to_text(counts_.least(whole)) + ".." + to_text(*end)
                          : "give sizes bounds by which it is at most " + to_text(*end));
}

Node* BoundedSizes::split(Graph& g, Node* n) {
  Value *x = operand(*n, 0), *list = operand(*n, 1);
  if (!x || !x->type.is_static_tensor() || rank_of(x) == 0) return n;
  const auto axis = int(axis_from_front(n->attr_int("axis", 0), x));
  if (axis < 0 || axis >= rank_of(x) || (list ? !list->type.is_static_tensor() || rank_of(list) != 1 : false)) return n;
  if (!find(x, axis) && (!list || list->constant)) return n;
  const auto parts = int64_t(n->outputs.size());
  const SizeForm whole = form_along(x, axis);
  std::vector<SizeForm> ends = {fixed_size(0)};
  for (int64_t k = 0; k < parts; k++) {
    // Equal parts are rounded up, and the last one is what is left.
    const auto length = list ? element(list, k) : counts_.quotient(whole + fixed_size(parts - 1), parts);
    if (!length || counts_.least(*length) < 0) return n;
    ends.push_back(list || k + 1 < parts ? counts_.lesser(ends.back() + *length, whole) : whole);
  }
  Value* along = g.add_constant(derived(n->name, "_along"), int64_constant({axis}));
  Node* last = n;
  for (size_t k = 0; k < n->outputs.size(); k++) {
    Value* y = n->outputs[k];
    if (!y) continue;
    const auto border = [&](size_t at, const char* suffix) {
      return list_of(g, n, {ends[at]}, derived(y->name, suffix));
    };
    Value* part = made(g, n, "Slice", {x, border(k, "_from"), border(k + 1, "_to"), along}, derived(y->name, "_part"));
    part->name = y->name;
    g.replace_uses(y, part);
    last = part->producer;
  }
  if (last != n) g.erase(n);
  return last;
}

Node* BoundedSizes::frames(Graph& g, Node* n) {
  const Value *x = n->inputs[0], *window = operand(*n, 2);
  const auto step = operand(*n, 1) ? scalar_of(n->inputs[1]) : std::nullopt;
  auto length = operand(*n, 3) ? scalar_of(n->inputs[3]) : std::nullopt;
  if (!operand(*n, 3) && window && window->type.is_static_tensor()) length = double(num_elements(dims_of(window)));
  if (!find(x, 1) || find(x, 2) || !step || !length || *step < 1 || *length < 1 || rank_of(x) > 3) return n;
  const std::vector<SizeForm> in = forms(x);
  const SizeForm room = in[1] - fixed_size(int64_t(*length));
  if (counts_.least(room) < 0) return n;
  infer_types(g, *n);
  std::vector<SizeForm> out;
  for (const int64_t d : dims_of(n->outputs[0])) out.push_back(fixed_size(d));
  out.at(0) = in[0];
  out.at(1) = counts_.quotient(room, int64_t(*step)) + fixed_size(1);
  note_sized(g, n, x, out);
  return n;
}

}  // namespace tc
