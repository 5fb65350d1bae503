// BoundedSizes::recur: RNN, GRU and LSTM over as many rows as a run has.
//   y, last = LSTM(x)                        ->   y, last = LSTM(fill(x), lengths = n)
// Where n has no upper bound, the loop ends where the rows do, and holds no state behind:
//   y, last = LSTM(x)                        ->   y = LSTM(x), last = y[-1]
//   y, last = LSTM(x) {direction = reverse}  ->   r = LSTM(x[::-1]), y = r[::-1], last = r[-1]; so each of both directions
//
// Preconditions: three axes, rows counted along the first (layout 1: the second) and perhaps along the batch, features never;
// without an upper bound no last cells of a backward layer, and no numbers for its activations.
#include "ir/open_size.h"
#include "ir/ops/op.h"
#include "passes/graph/bounded_sizes.h"
#include "passes/graph/counted_node.h"
#include "passes/graph/rewrite.h"

namespace tc {

namespace {

/// Backwards as well or only, over all rows, with nothing asked for that rows of all outputs are not: its cells; and no numbers for each of
/// its functions.
bool runs_backwards(const Node& n) {
  const bool has_cells = n.outputs.size() > 2 && n.outputs[2] && n.outputs[2]->is_used();
  const bool any = n.outputs[0] || (n.outputs.size() > 1 && n.outputs[1]);
  const auto given = [&](const char* name) {
    const auto a = n.attrs.find(name);
    return a != n.attrs.end() && !std::holds_alternative<std::monostate>(a->second);
  };
  return any && !has_cells && !given("activation_alpha") && !given("activation_beta") && !operand(n, 4) &&
         n.attr_string("direction", "forward") != "forward";
}

}  // namespace

Node* BoundedSizes::recur(Graph& g, Node* n) {
  Value* x = n->inputs[0];
  if (rank_of(x) != 3 || find(x, 2)) return n;
  const bool batch_first = n->attr_int("layout", 0) != 0;
  const int time = batch_first ? 1 : 0, batch = 1 - time;
  const auto steps = find(x, time), rows = find(x, batch);
  if (!steps) return n;
  for (size_t k = 1; k < n->inputs.size(); k++)  // first states and lengths may be counted as the rows are
    for (const BoundedSize& s : n->inputs[k] ? sizes(n->inputs[k]) : std::vector<BoundedSize>())
      if (!rows || s.count != rows->count || k < 4 || k > 6) return n;
  if (is_open(steps->capacity) && runs_backwards(*n)) return each_forward(g, n, *steps);
  const ModelText name = n->outputs[0] ? n->outputs[0]->name : n->name;
  const bool all_rows = !operand(*n, 4);
  if (all_rows) {
    Value* length = add_op(g, n, "Cast", {steps->count}, derived(name, "_length"), {{"to", int64_t(DType::I32)}});
    Value* list = g.add_constant(derived(name, "_batch"), int64_constant({dims_of(x)[size_t(batch)]}));
    while (n->inputs.size() < 5) g.add_node_input(n, nullptr);
    g.set_input(n, 4, add_op(g, n, "Expand", {length, list}, derived(name, "_lengths")));
  }
  g.set_input(n, 0, filled(g, n, x, *steps, "zero"));
  const bool has_last = n->outputs.size() > 1 && n->outputs[1];
  if (is_open(steps->capacity) && has_last && all_rows && n->attr_string("direction", "forward") == "forward")
    return with_last_row(g, n, *steps);
  note_layer(g, n, *steps, rows);
  return n;
}

/// A layer that runs backwards over a size without an upper bound as one that runs forwards over the reversed rows; one of both
/// directions as two.
Node* BoundedSizes::each_forward(Graph& g, Node* n, const BoundedSize& steps) {
  const Value* any = n->outputs[0] ? n->outputs[0] : n->outputs[1];
  const bool both = n->attr_string("direction", "forward") == "bidirectional";
  const bool batch_first = n->attr_int("layout", 0) != 0;
  const auto reversed = [&](Value* v, const std::string& step) {
    const auto list = [&](const char* of, int64_t k) {
      return g.add_constant(derived(any->name, step + of), int64_constant({k}));
    };
    return made(g, n, "Slice",
                {v, list("_from", -1), list("_to", INT64_MIN), list("_axis", steps.axis), list("_by", -1)},
                derived(any->name, step));
  };
  std::vector<Value*> all, last;
  for (int64_t d = 0; d < (both ? 2 : 1); d++) {
    const bool backwards = !both || d == 1;
    const std::string side = backwards ? "_backward" : "_forward";
    std::vector<Value*> in = n->inputs;
    for (size_t k = 1; both && k < in.size(); k++) {
      if (!in[k]) continue;
      Value* index = g.add_constant(derived(any->name, side + "_part" + to_text(int64_t(k))), int64_constant({d}));
      const bool is_state = k == 5 || k == 6;
      in[k] = made(g, n, "Gather", {in[k], index}, derived(any->name, side + to_text(int64_t(k))),
                   {{"axis", int64_t(is_state && batch_first ? 1 : 0)}});
    }
    if (backwards) in[0] = reversed(in[0], side + "_x");
    Attrs attrs = n->attrs;
    attrs["direction"] = std::string("forward");
    if (const auto a = attrs.find("activations"); both && a != attrs.end())
      if (auto* names = std::get_if<std::vector<std::string>>(&a->second)) {
        const auto half = std::ptrdiff_t(names->size() / 2);
        *names = {names->begin() + d * half, d == 0 ? names->begin() + half : names->end()};
      }
    Value* y = made(g, n, n->op, in, derived(any->name, side), attrs);
    Value* end = g.add_constant(derived(any->name, side + "_end"), scalar_constant(DType::I64, -1));
    last.push_back(made(g, n, "Gather", {y, end}, derived(any->name, side + "_last"), {{"axis", int64_t(steps.axis)}}));
    all.push_back(backwards ? reversed(y, side + "_y") : y);
  }
  const auto joined = [&](const std::vector<Value*>& parts, Value* of, int64_t axis) {
    Value* y = parts[0];
    if (both) y = made(g, n, "Concat", parts, derived(of->name, "_both"), {{"axis", axis}});
    return made(g, n, "Identity", {y}, of->name);
  };
  Node* made_last = nullptr;
  for (size_t k = 0; k < 2 && k < n->outputs.size(); k++) {
    Value* of = n->outputs[k];
    if (!of) continue;
    Value* y = joined(k == 0 ? all : last, of, k == 0 ? (batch_first ? 2 : 1) : (batch_first ? 1 : 0));
    g.replace_uses(of, y);
    made_last = y->producer;
  }
  g.erase(n);
  return made_last;
}

/// What is known of the sizes of a recurrent layer's results.
void BoundedSizes::note_layer(Graph& g, Node* n, const BoundedSize& steps, const std::optional<BoundedSize>& rows) {
  const bool batch_first = n->attr_int("layout", 0) != 0;
  infer_types(g, *n);
  // [time, directions, batch, features], or batch, time, directions; the last states without the time.
  for (size_t k = 0; k < n->outputs.size(); k++) {
    Value* y = n->outputs[k];
    if (!y) continue;
    const int batch_at = batch_first ? 0 : k == 0 ? 2 : 1;
    if (k == 0) note(y, {steps.axis, steps.count, dims_of(y)[size_t(steps.axis)]});
    if (rows) note(y, {batch_at, rows->count, dims_of(y)[size_t(batch_at)]});
  }
}

/// A layer over a size without an upper bound ends where the size does, and holds no state behind: its last output is the last row of
/// all outputs. Not where sequences have lengths of their own, which end before.
Node* BoundedSizes::with_last_row(Graph& g, Node* n, const BoundedSize& steps) {
  Value* last = n->outputs[1];
  const ModelText all_name = n->outputs[0] ? n->outputs[0]->name : derived(last->name, "_all");
  const bool has_cells = n->outputs.size() > 2 && n->outputs[2] && n->outputs[2]->is_used();
  std::vector<ModelText> names = {all_name};
  if (has_cells) names = {all_name, {}, n->outputs[2]->name};
  Node* layer = insert_for(g, *n, n, n->op, n->inputs, names, n->attrs);
  note_layer(g, layer, steps, find(n->inputs[0], 1 - steps.axis));
  Value* end = g.add_constant(derived(last->name, "_end"), scalar_constant(DType::I64, -1));
  Value* y = made(g, n, "Gather", {layer->outputs[0], end}, last->name, {{"axis", int64_t(steps.axis)}});
  g.replace_uses(last, y);
  if (n->outputs[0]) g.replace_uses(n->outputs[0], layer->outputs[0]);
  if (has_cells) g.replace_uses(n->outputs[2], layer->outputs[2]);
  g.erase(n);
  return y->producer;
}

}  // namespace tc
