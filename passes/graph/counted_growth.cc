// States of a Loop that grow: tokens that a text gets, keys and values of what has been read. They have room for the longest, and a
// number beside them says how long they are; what an iteration appends is written behind that.
//   t = Loop(8, t0) { t' = Concat(t, x) }   t0: i64[1], x: i64[1]
//   ->   t, n = Loop(8, Pad(t0), 1) { t' = tc.append(t, x, 1, n, n + 1)   n' = n + 1 }   t counted by n, of at most 9
//
// Preconditions: one axis grows, by the same number in every iteration (check_growth); how often the loop runs has a bound. States that
// begin alike and grow alike share a number, so that they fit each other in the body.
#include "ir/open_size.h"
#include "ir/ops/helpers.h"
#include "ir/ops/op.h"
#include "ir/ops/regions.h"
#include "passes/graph/bounded_sizes.h"
#include "passes/graph/counted_node.h"

namespace tc {
namespace {

constexpr int64_t kMostBytes = int64_t(1) << 31;  // of a state: more than any that is meant to grow

/// The only axis along which `after` is longer; nothing if they differ otherwise.
std::optional<int> longer_axis(const ValueType& before, const ValueType& after) {
  if (!before.is_static_tensor() || !after.is_static_tensor() || before.dtype != after.dtype ||
      info(before.dtype).bytes == 0 || before.shape.size() != after.shape.size())
    return std::nullopt;
  std::optional<int> axis;
  for (size_t d = 0; d < before.shape.size(); d++) {
    if (before.shape[d] == after.shape[d]) continue;
    if (axis || after.shape[d].value < before.shape[d].value) return std::nullopt;
    axis = int(d);
  }
  return axis;
}

}  // namespace

Node* BoundedSizes::widen_states(Graph& g, Node* n, const std::vector<ValueType>& after,
                                 std::vector<GrowingState>& growing) {
  const auto trips = trips_of(*n);
  const int64_t most = trips ? counts_.bound(*trips) : -1;
  if (most < 0 || is_open(most)) return n;
  std::vector<GrowingState> all;
  std::vector<Counter> counters;
  // Of the counters: how long states are first, and by how much they grow.
  std::vector<std::pair<SizeForm, int64_t>> kinds;
  for (size_t k = 0; k < after.size(); k++) {
    const Value* x = n->inputs[2 + k];
    if (x->type == after[k]) continue;
    const auto axis = longer_axis(x->type, after[k]);
    if (!axis) return n;
    const Dims dims = dims_of(x);
    const int64_t length = dims[size_t(*axis)], step = after[k].shape[size_t(*axis)].value - length;
    const int64_t row = std::max<int64_t>(1, num_elements(without_axis(dims, *axis)) * info(x->type.dtype).bytes);
    if (is_open(length) || is_open(row) || length + step > kMostBytes / row / (most + 1)) return n;
    const std::pair kind(form_along(x, *axis), step);
    const auto known = std::find(kinds.begin(), kinds.end(), kind);
    all.push_back({k, *axis, step, length + step * most, after.size() + size_t(known - kinds.begin())});
    if (known != kinds.end()) continue;
    kinds.push_back(kind);
    const auto size = find(x, *axis);
    const ModelText name = derived(n->regions.at(0)->inputs().at(2 + k)->name, "_size");
    Value* first =
        size ? size->count : g.add_constant(derived(name, "_first"), scalar_constant(DType::I64, double(length)));
    counters.push_back({name, first, step});
  }
  if (all.empty()) return n;
  growing = std::move(all);
  for (const GrowingState& s : growing) {
    Value* x = n->inputs[2 + s.state];
    std::vector<int64_t> pads(2 * size_t(rank_of(x)), 0);
    pads[size_t(rank_of(x)) + size_t(s.axis)] = s.capacity - dims_of(x)[size_t(s.axis)];
    Value* wide = add_op(g, n, "Pad", {x, g.add_constant(derived(x->name, "_pads"), int64_constant(pads))},
                         derived(x->name, "_room"));
    note_others(wide, x, s.axis);
    g.set_input(n, 2 + s.state, wide);
  }
  return with_counters(g, n, after.size(), counters);
}

void BoundedSizes::begin_growing(Value* state, Value* counter, const GrowingState& s) {
  counts_.add(counter, std::max<int64_t>(0, s.capacity - s.step));  // before an iteration
  note(state, {s.axis, counter, s.capacity});
  growing_.insert(state->id);
}

void BoundedSizes::fit_states(Graph& body, const std::vector<GrowingState>& growing) {
  for (const GrowingState& s : growing) {
    Value* v = body.outputs().at(1 + s.state);
    if (!v->type.is_static_tensor() || s.axis >= rank_of(v)) continue;
    const int64_t room = dims_of(v)[size_t(s.axis)];
    if (room <= s.capacity) continue;
    const auto size = find(v, s.axis);
    const auto ints = [&](const char* suffix, int64_t number) {
      return body.add_constant(derived(v->name, suffix), int64_constant({number}));
    };
    Node* fitted = body.append("Slice", {v, ints("_begin", 0), ints("_end", s.capacity), ints("_axis", s.axis)},
                               {derived(v->name, "_fitted")});
    infer_types(body, *fitted);
    note_others(fitted->outputs[0], v, s.axis);
    if (size) note(fitted->outputs[0], {s.axis, size->count, s.capacity});
    body.set_output(1 + s.state, fitted->outputs[0]);
  }
}

void BoundedSizes::note_grown(const Node& n, const std::vector<GrowingState>& growing) {
  for (const GrowingState& s : growing)
    if (n.outputs[s.state]) note(n.outputs[s.state], {s.axis, n.outputs[s.counter], s.capacity});
}

void BoundedSizes::check_growth(const Node& n, const Value* part, const GrowingState& s,
                                std::vector<BoundedSize>& sizes) const {
  const Value* counter = n.regions.at(0)->inputs().at(2 + s.counter);
  if (form_along(part, s.axis) != *counts_.find(counter) + fixed_size(s.step))
    throw Error(problem_of(
        n, "TC0301", ExitCode::Unsupported,
        "state \"" + printable(n.regions.at(0)->inputs().at(2 + s.state)->name.raw()) +
            "\" does not grow by the same number of elements in every iteration",
        {"such a loop is unrolled where it is known when the model is compiled how often it runs, at most 256 times"}));
  std::erase_if(sizes, [&](const BoundedSize& size) { return size.axis == s.axis; });
}

}  // namespace tc
