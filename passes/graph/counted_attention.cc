// Attention over keys whose number is known at run time: the definition with the numbers of queries and keys as operands.
//   y = Attention(q, k, v) <is_causal = 1>        q, k, v counted by n   ->
//       y = tc.attention(q, k, zeros behind v, , , , n for each batch, 0)   or without zeros, behind n keys
//   y, k2, v2 = Attention(q, k, v, , past_k, past_v)   past counted by p   ->
//       k2 = tc.append(past_k, k, n, p)   y = tc.attention(q, k2, v2, , , , p + n, p)
// GroupQueryAttention and RotaryEmbedding of com.microsoft expand themselves (ir/ops/microsoft_language.cc) and get the
// counts as operands behind their own.
//
// Preconditions: q, k and v have the same counts along other axes; heads are not counted.
#include <algorithm>

#include "ir/open_size.h"
#include "ir/ops/microsoft_counts.h"
#include "ir/ops/op.h"
#include "passes/graph/counted_node.h"

namespace tc {
namespace {

int sequence_axis(const Value* v) { return rank_of(v) == 4 ? 2 : 1; }

bool is_of(const Node& n, std::string_view domain, std::string_view op) { return n.domain == domain && n.op == op; }

/// A layer of com.microsoft that ai.onnx has, too.
bool keeps_state(const Node& n, std::string_view op) { return n.is(op) || is_of(n, "com.microsoft", op); }

}  // namespace

Value* BoundedSizes::count_along(Graph& g, const Value* v, int axis, const ModelText& name) const {
  if (const auto size = find(v, axis)) return size->count;
  return g.add_constant(name, scalar_constant(DType::I64, double(dims_of(v)[size_t(axis)])));
}

SizeForm BoundedSizes::form_along(const Value* v, int axis) const {
  const auto size = find(v, axis);
  return size ? *counts_.find(size->count) : fixed_size(dims_of(v)[size_t(axis)]);
}

Value* BoundedSizes::number_of(Graph& g, Node* n, const SizeForm& f, const ModelText& name) {
  if (f.fixed()) return g.add_constant(name, scalar_constant(DType::I64, double(f.addend)));
  return counts_.value_of(g, n, f, name);
}

void BoundedSizes::follow_append(Node* n) {
  const Value *y = n->outputs[0], *total = operand(*n, 4);
  const int axis = int(n->attr_int("axis", 0));
  if (total && !total->constant) note(y, {axis, const_cast<Value*>(total), dims_of(y)[size_t(axis)]});
  note_others(y, n->inputs[1], axis);
}

void BoundedSizes::follow_attention(Node* n) {
  const Value *q = n->inputs[0], *k = n->inputs[1];
  const int row = sequence_axis(q);
  const std::vector<BoundedSize> all = sizes(q);
  for (const BoundedSize& s : all) {
    if (s.axis != 0 && s.axis != row) forbid(*n);
    note(n->outputs[0], s);
  }
  told_.insert(n->outputs[0]->id);  // queries may be as many in every run
  const Value* scores = n->outputs.size() > 3 ? n->outputs[3] : nullptr;
  if (!scores) return;
  told_.insert(scores->id);
  for (const BoundedSize& s : all) note(scores, {s.axis == row ? 2 : 0, s.count, s.capacity});
  if (const auto keys = find(k, sequence_axis(k))) note(scores, {3, keys->count, keys->capacity});
}

// Steps depend on those before: what a state goes through is as long as its first operand, and the state has the batch's size.
void BoundedSizes::follow_steps(Node* n) {
  const Value* steps = n->inputs[n->op == "last_steps" ? 1 : 0];
  const std::vector<BoundedSize> all = sizes(steps);
  const int axis = n->op == "linear_attention" || n->attr_int("channels_last", 0) != 0 ? 1 : 2;
  for (const BoundedSize& s : all)
    if (s.axis != 0 && s.axis != axis) forbid(*n);
  for (size_t k = 0; k < n->outputs.size(); k++) {
    const Value* y = n->outputs[k];
    const bool is_state = k == 1 || n->op == "last_steps";
    for (const BoundedSize& s : all)
      if (y && (s.axis == 0 || !is_state)) note(y, {s.axis, s.count, dims_of(y)[size_t(s.axis)]});
    if (y) told_.insert(y->id);
  }
}

/// Keys or values as four axes behind those of the past.
Value* BoundedSizes::appended(Graph& g, Node* n, size_t fresh_operand, size_t past_operand, const Value* result) {
  Value *past = n->inputs[past_operand], *fresh = n->inputs[fresh_operand];
  const ModelText name =
      derived(n->outputs.at(0) ? n->outputs[0]->name : n->name, "_past" + to_text(int64_t(past_operand)));
  const auto made = [&](Value* v) {
    follow(g, v->producer);
    return v;
  };
  if (rank_of(fresh) == 3) {
    const Dims d = dims_of(fresh), p = dims_of(past);
    Node* split =
        insert_for(g, *n, n, "Reshape",
                   {fresh, g.add_constant(derived(name, "_heads"),
                                          int64_constant({d[0], d[1], p[1], d[2] / std::max<int64_t>(1, p[1])}))},
                   {derived(name, "_split")}, {{"allowzero", int64_t(1)}});
    infer_types(g, *split);
    const std::vector<BoundedSize> all = sizes(fresh);
    for (const BoundedSize& s : all) note(split->outputs[0], s);
    fresh = made(add_op(g, n, "Transpose", {split->outputs[0]}, derived(name, "_fresh"),
                        {{"perm", std::vector<int64_t>{0, 2, 1, 3}}}));
  }
  const SizeForm total = form_along(past, 2) + form_along(fresh, 2);
  if (result) limit_state(g, total, result, 2);
  Value* number = number_of(g, n, total, derived(name, "_total"));
  Node* append = insert_for(
      g, *n, n, "append",
      {past, fresh, count_along(g, fresh, 2, derived(name, "_number")),
       count_along(g, past, 2, derived(name, "_first")), number},
      {derived(name, "_appended")},
      {{"axis", int64_t(2)}, {"capacity", counts_.bound(total)}, {"past_ends", int64_t(is_open(counts_.bound(total)))}},
      "tc");
  infer_types(g, *append);
  follow_append(append);
  return append->outputs[0];
}

Node* BoundedSizes::attend(Graph& g, Node* n) {
  for (size_t k = 0; k < 3; k++)
    if (!operand(*n, k) || !n->inputs[k]->type.is_static_tensor() || rank_of(n->inputs[k]) < 3) return n;
  Value *q = n->inputs[0], *k = n->inputs[1], *v = n->inputs[2], *past = operand(*n, 4);
  const bool counts_keys = find(k, sequence_axis(k)) || (past && find(past, 2));
  if (!find(q, sequence_axis(q)) && !counts_keys) return n;
  const ModelText name = n->outputs.at(0) ? n->outputs[0]->name : n->name;
  const int64_t batch = dims_of(q)[0];
  const auto each = [&](Value* number, const std::string& suffix) {
    return add_op(g, n, "Expand", {number, g.add_constant(derived(name, suffix + "_batch"), int64_constant({batch}))},
                  derived(name, suffix));
  };
  Value *first = nullptr, *lengths = operand(*n, 6), *keys = nullptr;
  if (past && operand(*n, 5)) {
    if (rank_of(past) != 4 || rank_of(n->inputs[5]) != 4) return n;
    first = each(count_along(g, past, 2, derived(name, "_past")), "_first");
    k = appended(g, n, 1, 4, n->outputs.size() > 1 ? n->outputs[1] : nullptr);
    v = appended(g, n, 2, 5, n->outputs.size() > 2 ? n->outputs[2] : nullptr);
  } else {
    // No kernel writes all that there is room for, where no memory holds it.
    const auto size = find(v, sequence_axis(v));
    if (size && is_open(size->capacity))
      keys = size->count;
    else if (size)
      v = filled(g, n, v, *size, "zero");
    Value* queries = count_along(g, q, sequence_axis(q), derived(name, "_queries"));
    if (lengths)
      first = add_op(g, n, "Sub", {lengths, queries}, derived(name, "_first"));
    else
      first = g.add_constant(derived(name, "_first"), int64_constant({0}));
  }
  // What no memory holds is not summed behind the keys that there are.
  if (past && !lengths && is_open(dims_of(k)[sequence_axis(k)]))
    keys = number_of(g, n, form_along(k, sequence_axis(k)), derived(name, "_number"));
  if (!lengths && !keys)
    lengths = each(number_of(g, n, form_along(k, sequence_axis(k)), derived(name, "_number")), "_keys");
  std::vector<ModelText> outputs = output_names(*n);
  for (size_t out = 1; out < 3 && out < n->outputs.size(); out++) {
    if (!n->outputs[out]) continue;
    if (!past) return n;  // keys as they are: nobody asks for them without a past
    replace_value(g, n, n->outputs[out], out == 1 ? k : v);
    outputs[out] = {};
  }
  std::vector<Value*> operands = {q, k, v, operand(*n, 3), nullptr, nullptr, lengths, first};
  if (keys) operands.insert(operands.end(), {nullptr, keys});
  Node* seen = insert_for(g, *n, n, "attention", std::move(operands), outputs, n->attrs, "tc");
  for (const size_t out : {size_t(0), size_t(3)})
    if (out < n->outputs.size() && n->outputs[out]) g.replace_uses(n->outputs[out], seen->outputs[out]);
  g.erase(n);
  infer_types(g, *seen);
  follow_attention(seen);
  return seen;
}

// The places of tokens, where the model gives none: 0, 1, 2 ... as many as there are.
void BoundedSizes::give_places(Graph& g, Node* n) {
  constexpr size_t kPlaces = 8;
  Value* ids = operand(*n, 0);
  const auto size = ids && ids->type.is_static_tensor() && rank_of(ids) == 2 ? find(ids, 1) : std::nullopt;
  if (!size || operand(*n, kPlaces)) return;
  const ModelText name = n->outputs.at(0) ? n->outputs[0]->name : n->name;
  Node* steps =
      insert_for(g, *n, n, "steps", {size->count}, {derived(name, "_places")}, {{"capacity", dims_of(ids)[1]}}, "tc");
  infer_types(g, *steps);
  note(steps->outputs[0], {1, size->count, dims_of(ids)[1]});
  while (n->inputs.size() <= kPlaces) g.add_node_input(n, nullptr);
  g.set_input(n, kPlaces, steps->outputs[0]);
}

// How many tokens each row has, where no mask says so: 0, of as many rows as there are.
void BoundedSizes::give_no_lengths(Graph& g, Node* n) {
  constexpr size_t kLengths = 1, kMask = 7;
  const Value *ids = operand(*n, 0), *lengths = n->outputs.size() > kLengths ? n->outputs[kLengths] : nullptr;
  if (!lengths || operand(*n, kMask) || !ids || !ids->type.is_static_tensor() || rank_of(ids) != 2) return;
  const auto size = find(ids, 0);
  if (!size) return;
  const ModelText name = lengths->name;
  Value* zero = g.add_constant(derived(name, "_none"), scalar_constant(DType::I32, 0));
  Value* shape = g.add_constant(derived(name, "_rows"), int64_constant({size->capacity}));
  Value* none = add_op(g, n, "Expand", {zero, shape}, name);
  note(none, *size);
  g.replace_uses(n->outputs[kLengths], none);
  g.drop_output(n, kLengths);
}

// How many steps there are of the sequence that a state goes through.
void BoundedSizes::give_steps(Graph& g, Node* n) {
  const bool last = keeps_state(*n, "CausalConvWithState") && n->attr_int("channels_last", 0) == 0;
  const Value* x = operand(*n, 0);
  const int axis = last ? 2 : 1;
  if (!x || !x->type.is_static_tensor() || rank_of(x) != 3 || !find(x, axis)) return;
  while (n->inputs.size() <= kCountOperand) g.add_node_input(n, nullptr);
  g.set_input(n, kCountOperand, find(x, axis)->count);
}

bool BoundedSizes::makes_state(const Graph& g, const Node& n) const {
  return std::any_of(n.outputs.begin(), n.outputs.end(), [&](const Value* v) { return v && state_of(g, v); });
}

// The present of a GroupQueryAttention has the past's rows, or as many as total_sequence_length says if those are more. A state whose
// past has a fixed size, or one whose length nobody knows, is a buffer that past and present share.
SizeForm BoundedSizes::keys_of_present(const Graph& g, const Node& n, const SizeForm& fresh, const Value* past) {
  SizeForm before = past ? form_along(past, 2) : fixed_size(0);
  const bool slides = n.attr_int("sliding_window_cache", 0) != 0;
  if (past && !find(past, 2) && (slides || makes_state(g, n))) return before;
  if (const auto stated = element(operand(n, 6), 0)) return counts_.larger(before, *stated);
  return past && !find(past, 2) ? before : before + fresh;
}

void BoundedSizes::give_counts(Graph& g, Node* n) {
  if (is_of(*n, "com.microsoft", "EmbedLayerNormalization")) {
    give_no_lengths(g, n);
    return give_places(g, n);
  }
  const bool rotary = is_of(*n, "com.microsoft", "RotaryEmbedding"),
             attends = is_of(*n, "com.microsoft", "GroupQueryAttention"),
             steps = keeps_state(*n, "CausalConvWithState") || keeps_state(*n, "LinearAttention");
  if ((rotary || attends || steps) && n->inputs.size() > kCountOperand)
    throw Error(problem_of(*n, "TC0302", ExitCode::Unsupported, "the node has more operands than the operator"));
  if (steps) return give_steps(g, n);
  if ((!rotary && !attends) || !operand(*n, 0) || !n->inputs[0]->type.is_static_tensor() || rank_of(n->inputs[0]) < 3)
    return;
  Value *x = n->inputs[0], *past = attends ? operand(*n, 3) : nullptr;
  const int axis = sequence_axis(x);
  if (past && find(past, 2) && n->attr_int("sliding_window_cache", 0) != 0)
    throw Error(problem_of(*n, "TC0303", ExitCode::Unsupported, "a cache of a window has as many rows in every run",
                           {"give --dim a number in place of a range: local_window_size, " +
                            to_text(n->attr_int("local_window_size", -1)) + ", or more"}));
  if (!find(x, axis) && !(past && find(past, 2))) return;
  while (n->inputs.size() <= kCountOperand + 1) g.add_node_input(n, nullptr);
  const ModelText name = n->outputs.at(0) ? n->outputs[0]->name : n->name;
  g.set_input(n, kCountOperand, count_along(g, x, axis, derived(name, "_queries")));
  if (!attends || (past && rank_of(past) != 4)) return;
  const SizeForm total = keys_of_present(g, *n, form_along(x, axis), past);
  for (size_t k = 1; k < 3 && k < n->outputs.size(); k++)
    if (n->outputs[k]) limit_state(g, total, n->outputs[k], 2);
  n->attrs[std::string(kCapacityAttr)] = counts_.bound(total);
  n->attrs[std::string(kOwnCacheAttr)] = int64_t(past && !makes_state(g, *n));
  g.set_input(n, kCountOperand + 1, number_of(g, n, total, derived(name, "_total")));
}

}  // namespace tc
