// Counted sizes in If, Loop and Scan. What a body captures is counted there by a count that is captured too. A state may be counted,
// if an iteration leaves its sizes as they are; what is stacked has the sizes of its parts beside that of the iterations:
//   ys = Scan(xs) { y = f(x) }   xs counted by n   ->   ys = Loop(n) { y = f(Gather(xs, i)) }
//   ys = Loop(n) { y }           n a size          ->   zs: f32[bound, ...] = Loop(n) { y }   ys = tc.fill_behind(zs, n)
//   ys = Loop(8) { go, y }       ends early        ->   c, zs = Loop(8, 0) { go, c + 1, y }   ys = tc.fill_behind(zs, c)
//
// Preconditions: scanned tensors are counted alike; sizes of parts and of states are counted outside of the body. Without a bound
// of the iterations the model has to declare how many there are (ir/ops/regions.cc).
#include "ir/open_size.h"
#include "ir/ops/op.h"
#include "ir/ops/regions.h"
#include "passes/graph/bounded_sizes.h"
#include "passes/graph/counted_node.h"

namespace tc {
namespace {

/// More than any loop stacks that is meant to: exporters write "no limit" as a large number.
constexpr int64_t kMostStacked = int64_t(1) << 31;

/// The operands of an If, Loop or Scan that a body has itself: input k of it is operand k.
bool is_handed_over(const Node& n, size_t k) { return n.is("Loop") ? k >= 2 : n.is("Scan"); }

/// The axis along which operand k is cut into parts; -1: it is a state.
int64_t cut_axis(const Node& n, size_t k) {
  const size_t states = own_inputs(n) - size_t(n.attr_int("num_scan_inputs", 0));
  if (!n.is("Scan") || k < states) return -1;
  return scan_axis(n, "scan_input_axes", k - states, size_t(rank_of(n.inputs[k])));
}

/// The sizes of a result of a body by counts of outside; nothing if one is counted inside.
std::optional<std::vector<BoundedSize>> seen_outside(const Node& n, const Graph& body, std::vector<BoundedSize> sizes) {
  const auto& in = body.inputs();
  for (BoundedSize& s : sizes) {
    const auto captured = std::find(in.end() - n.captures, in.end(), s.count);
    if (captured == in.end()) return std::nullopt;
    s.count = n.inputs[n.inputs.size() - size_t(in.end() - captured)];
  }
  return sizes;
}

bool alike(const std::vector<BoundedSize>& a, const std::vector<BoundedSize>& b) {
  const auto same = [](const BoundedSize& x, const BoundedSize& y) {
    return x.axis == y.axis && x.count == y.count && x.capacity == y.capacity;
  };
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), same);
}

/// What becomes the body of another loop: its inputs, and what the old body is given for its own.
struct NewBody {
  Graph graph;
  std::vector<Value*> args;
  explicit NewBody(const Graph& old) : graph(old.name()) {}
  Value* input(const Value* like) { return graph.add_input(like->name, like->type); }
  /// One more argument, which is an input.
  void pass(const Value* like) { args.push_back(input(like)); }
};

/// A Loop of that body in the place of `n`, which it leaves without users.
Node* insert_loop(Graph& g, Node* n, NewBody body, std::vector<Value*> inputs, std::vector<ModelText> outputs,
                  int captures) {
  const bool has_first = !outputs.empty() && !outputs[0].empty();
  Node* loop = insert_for(g, *n, n, "Loop", std::move(inputs), std::move(outputs), n->attrs);
  if (!has_first && !loop->outputs.empty()) g.drop_output(loop, 0);
  loop->attrs.erase("num_scan_inputs");
  loop->attrs.erase("scan_input_axes");
  loop->attrs.erase("scan_input_directions");
  loop->regions.push_back(std::make_unique<Graph>(std::move(body.graph)));
  loop->captures = captures;
  return loop;
}

/// Is it declared how many iterations there are?
bool is_declared(const Node& n, size_t states) {
  for (size_t k = states; k < n.outputs.size(); k++)
    if (n.outputs[k] && n.outputs[k]->type.is_static_tensor()) return true;
  return false;
}

int64_t bytes_of_parts(const Node& n, size_t states) {
  int64_t bytes = 1;
  for (size_t k = states; k < n.outputs.size(); k++) {
    const ValueType& t = n.regions.at(0)->outputs().at(1 + k)->type;
    if (n.outputs[k] && t.is_static_tensor()) bytes += num_elements(static_dims(t.shape)) * info(t.dtype).bytes;
  }
  return bytes;
}

}  // namespace

// A number that a body captures, if it is a size: then by the value that all sizes of its form are.
std::optional<SizeForm> BoundedSizes::captured_size(Graph& g, Node* n, size_t k) {
  const Value* v = n->inputs[k];
  if (v->constant || v->type != ValueType::tensor(DType::I64, {})) return std::nullopt;
  auto form = element(v, 0);
  if (!form || form->fixed() || counts_.least(*form) < 0) return std::nullopt;
  g.set_input(n, k, counts_.value_of(g, n, *form, derived(v->name, "_size")));
  return form;
}

std::vector<BoundedSizes> BoundedSizes::capture(Graph& g, Node* n, size_t own,
                                                const std::vector<GrowingState>& growing) {
  std::vector<BoundedSizes> inside(n->regions.size());
  for (BoundedSizes& s : inside) s.in_body_ = true;
  if (n->is("Loop")) inside.at(0).iteration_ = n->regions.at(0)->inputs().at(0);
  std::map<int, size_t> captures;  // of a captured count among the captures, by id
  const size_t operands = own + size_t(n->captures);
  for (size_t k = own; k < operands; k++)
    if (const auto form = captured_size(g, n, k)) {
      captures.emplace(n->inputs[k]->id, k - own);
      for (size_t r = 0; r < inside.size(); r++) {
        const auto& in = n->regions[r]->inputs();
        inside[r].counts_.add(in[in.size() - size_t(n->captures) + k - own], counts_.bound(*form),
                              counts_.least(*form));
      }
    }
  for (size_t k = 0; k < operands; k++) {
    if (!n->inputs[k]) continue;  // a Loop without a trip count, or a condition
    const std::vector<BoundedSize> all = sizes(n->inputs[k]);
    const int64_t cut = k < own ? cut_axis(*n, k) : -1;
    for (const BoundedSize& size : all) {
      if ((k < own && !is_handed_over(*n, k)) || size.axis == cut)
        refuse_counted(*n, n->inputs[k],
                       "a tensor whose size is known only at run time cannot be the condition of a loop");
      const auto [captured, fresh] = captures.try_emplace(size.count->id, size_t(n->captures));
      if (fresh) {
        g.add_node_input(n, size.count);
        ++n->captures;
        for (const auto& r : n->regions) r->add_input(size.count->name, size.count->type);
      }
      for (size_t r = 0; r < inside.size(); r++) {
        const auto& in = n->regions[r]->inputs();
        const size_t first = in.size() - size_t(n->captures);
        const int axis = size.axis - (cut >= 0 && size.axis > cut ? 1 : 0);
        inside[r].note(in[k < own ? k : first + k - own], {axis, in[first + captured->second], size.capacity});
      }
    }
  }
  for (const GrowingState& s : growing) {
    const auto& in = n->regions.at(0)->inputs();
    inside.at(0).begin_growing(in[2 + s.state], in[2 + s.counter], s);
  }
  return inside;
}

void BoundedSizes::take_results(const Node& n, const std::vector<BoundedSizes>& inside,
                                const std::vector<GrowingState>& growing) {
  if (!n.is("If")) return take_iterations(n, inside.at(0), growing);
  for (size_t k = 0; k < n.regions.at(0)->outputs().size(); k++) {
    std::vector<std::optional<std::vector<BoundedSize>>> branches;
    const Value* counted = nullptr;
    for (size_t r = 0; r < inside.size(); r++) {
      const Value* v = n.regions[r]->outputs().at(k);
      if (inside[r].is_counted(v)) counted = v;
      branches.push_back(seen_outside(n, *n.regions[r], inside[r].sizes(v)));
    }
    if (!counted) continue;
    const bool agree = branches.size() == 2 && branches[0] && branches[1] && alike(*branches[0], *branches[1]);
    if (!agree || n.regions[0]->outputs()[k]->type != n.regions[1]->outputs().at(k)->type)
      refuse_counted(n, counted, "the size of a result of a condition is known only at run time");
    for (const BoundedSize& s : *branches[0])
      if (n.outputs.at(k)) note(n.outputs[k], s);
  }
}

void BoundedSizes::take_iterations(const Node& n, const BoundedSizes& inside,
                                   const std::vector<GrowingState>& growing) {
  const bool is_loop = n.is("Loop");
  const size_t first = is_loop ? 2 : 0, skip = is_loop ? 1 : 0;  // of the states; outputs of the body before them
  const size_t states = own_inputs(n) - first - size_t(n.attr_int("num_scan_inputs", 0));
  const Graph& body = *n.regions.at(0);
  for (size_t k = 0; k < n.outputs.size(); k++) {
    const Value* part = body.outputs().at(skip + k);
    const auto grown =
        std::find_if(growing.begin(), growing.end(), [&](const GrowingState& s) { return s.state == k; });
    std::vector<BoundedSize> here = inside.sizes(part);
    if (grown != growing.end()) inside.check_growth(n, part, *grown, here);
    const auto now = seen_outside(n, body, here);
    if (!now) refuse_counted(n, part, "the size of a result of a loop is known only at run time");
    if (k < states && !alike(*now, sizes(n.inputs[first + k])))
      refuse_counted(n, part, "a state has another size, known only at run time, behind an iteration than before");
    if (!n.outputs[k]) continue;
    const bool at_front = k < states || is_loop;
    const int64_t stacked = at_front ? 0 : scan_axis(n, "scan_output_axes", k - states, part->type.shape.size() + 1);
    for (BoundedSize s : *now) {
      if (k >= states && s.axis >= stacked) s.axis++;
      note(n.outputs[k], s);
    }
  }
}

Node* BoundedSizes::loop_of_scan(Graph& g, Node* n) {
  if (!n->is("Scan")) return n;
  require_directions(*n);
  const size_t own = own_inputs(*n), scanned = size_t(n->attr_int("num_scan_inputs", 0)), states = own - scanned;
  std::vector<int64_t> axes;
  std::vector<SizeForm> lengths;
  for (size_t k = states; k < own; k++) {
    if (!n->inputs[k]->type.is_static_tensor() || rank_of(n->inputs[k]) == 0) return n;  // as its types will say
    axes.push_back(cut_axis(*n, k));
    lengths.push_back(form_along(n->inputs[k], int(axes.back())));
    if (lengths.back() != lengths[0]) refuse_counted(*n, n->inputs[k], "the scanned inputs have different lengths");
  }
  if (lengths[0].fixed()) return n;
  const Graph& old = *n->regions.at(0);
  const ModelText name = derived(old.name(), "_step");
  Value* length = counts_.value_of(g, n, lengths[0], derived(name, "s"));
  NewBody body(old);
  Value* step = body.graph.add_input(name, ValueType::tensor(DType::I64, {}));
  Value* go = body.graph.add_input(derived(name, "_more"), ValueType::tensor(DType::Bool, {}));
  std::vector<Value*> inputs = {length, nullptr}, captured, whole;
  inputs.insert(inputs.end(), n->inputs.begin(), n->inputs.begin() + std::ptrdiff_t(states));
  inputs.insert(inputs.end(), n->inputs.begin() + std::ptrdiff_t(own), n->inputs.end());
  inputs.insert(inputs.end(), n->inputs.begin() + std::ptrdiff_t(states), n->inputs.begin() + std::ptrdiff_t(own));
  for (size_t k = 0; k < states; k++) body.pass(old.inputs()[k]);
  for (size_t k = own; k < n->inputs.size(); k++) captured.push_back(body.input(old.inputs()[k]));
  for (size_t k = states; k < own; k++) whole.push_back(body.graph.add_input(n->inputs[k]->name, n->inputs[k]->type));
  const auto backwards = n->attr_ints("scan_input_directions", std::vector<int64_t>(scanned, 0));
  Value* from_end = nullptr;
  if (std::find(backwards.begin(), backwards.end(), 1) != backwards.end()) {
    Value* one = g.add_constant(derived(name, "_one"), scalar_constant(DType::I64, 1));
    inputs.push_back(add_op(g, n, "Sub", {length, one}, derived(name, "_last")));
    Value* last = body.graph.add_input(inputs.back()->name, inputs.back()->type);
    from_end = body.graph.append("Sub", {last, step}, {derived(name, "_from_end")})->outputs[0];
  }
  for (size_t k = 0; k < scanned; k++) {
    Value* at = backwards[k] == 1 ? from_end : step;
    const ModelText part = old.inputs()[states + k]->name;
    body.args.push_back(body.graph.append("Gather", {whole[k], at}, {part}, {{"axis", axes[k]}})->outputs[0]);
  }
  body.args.insert(body.args.end(), captured.begin(), captured.end());
  std::vector<Value*> results = inline_graph(body.graph, nullptr, old, body.args);
  results.insert(results.begin(), go);
  body.graph.set_outputs(std::move(results));
  const int captures = int(inputs.size() - 2 - states);
  Node* loop = insert_loop(g, n, std::move(body), std::move(inputs), output_names(*n), captures);
  for (size_t k = 0; k < n->outputs.size(); k++)
    if (n->outputs[k]) g.replace_uses(n->outputs[k], loop->outputs[k]);
  g.erase(n);
  return loop;
}

std::optional<SizeForm> BoundedSizes::trips_of(const Node& loop) {
  const LoopFacts facts = loop_facts(loop);
  if (facts.limit >= 0) return fixed_size(facts.limit);
  const auto trips = loop.inputs[0] ? element(loop.inputs[0], 0) : std::nullopt;
  return trips ? std::optional(counts_.larger(*trips, fixed_size(0))) : std::nullopt;
}

Node* BoundedSizes::count_iterations(Graph& g, Node* n) {
  if (!n->is("Loop")) return n;
  const size_t states = own_inputs(*n) - 2;
  const LoopFacts facts = loop_facts(*n);
  const bool stacks = std::any_of(n->outputs.begin() + std::ptrdiff_t(states), n->outputs.end(),
                                  [](const Value* v) { return v && v->is_used(); });
  if (!stacks || facts.exact() || is_declared(*n, states)) return n;
  const auto trips = trips_of(*n);
  if (!trips) return n;
  const int64_t capacity = counts_.bound(*trips);
  // Where a size has no upper bound, an instance says how many there are.
  const int64_t bytes = bytes_of_parts(*n, states);
  if ((trips->fixed() || !is_open(capacity)) && capacity > kMostStacked / (is_open(bytes) ? 1 : bytes)) return n;
  const bool counts = facts.asks_start || facts.asks_end;
  const ModelText name = derived(n->regions.at(0)->name(), "_iterations");
  if (counts) {
    Value* none = g.add_constant(derived(name, "_none"), scalar_constant(DType::I64, 0));
    n = with_counters(g, n, states, {{name, none, 1}});
  }
  n->attrs["capacity"] = capacity;
  if (!counts && trips->fixed()) return n;  // always as many: none, of a size less a number that is never less
  Value* number = counts ? n->outputs[states] : counts_.value_of(g, n, *trips, name);
  for (size_t k = states + (counts ? 1 : 0); k < n->outputs.size(); k++)
    if (n->outputs[k]) note(n->outputs[k], {0, number, capacity});
  return n;
}

Node* BoundedSizes::with_counters(Graph& g, Node* n, size_t states, const std::vector<Counter>& counters) {
  const Graph& old = *n->regions.at(0);
  NewBody body(old);
  for (size_t k = 0; k < 2 + states; k++) body.pass(old.inputs()[k]);
  std::vector<Value*> before, after;
  for (const Counter& c : counters) before.push_back(body.graph.add_input(c.name, ValueType::tensor(DType::I64, {})));
  for (size_t k = 2 + states; k < old.inputs().size(); k++) body.pass(old.inputs()[k]);
  std::vector<Value*> results = inline_graph(body.graph, nullptr, old, body.args);
  for (size_t k = 0; k < counters.size(); k++) {
    const ModelText& name = counters[k].name;
    Value* step =
        body.graph.add_constant(derived(name, "_step"), scalar_constant(DType::I64, double(counters[k].step)));
    Node* next = body.graph.append("Add", {before[k], step}, {derived(name, "_next")});
    infer_types(body.graph, *next);
    after.push_back(next->outputs[0]);
  }
  results.insert(results.begin() + 1 + std::ptrdiff_t(states), after.begin(), after.end());
  body.graph.set_outputs(std::move(results));
  std::vector<Value*> inputs = n->inputs;
  std::vector<ModelText> names = output_names(*n);
  for (size_t k = counters.size(); k-- > 0;) {
    inputs.insert(inputs.begin() + 2 + std::ptrdiff_t(states), counters[k].first);
    names.insert(names.begin() + std::ptrdiff_t(states), counters[k].name);
  }
  Node* loop = insert_loop(g, n, std::move(body), std::move(inputs), std::move(names), n->captures);
  for (size_t k = 0; k < n->outputs.size(); k++) {
    if (!n->outputs[k]) continue;
    Value* same = loop->outputs[k < states ? k : k + counters.size()];
    for (const BoundedSize& s : std::vector<BoundedSize>(sizes(n->outputs[k]))) note(same, s);
    g.set_type(same, n->outputs[k]->type);
    g.replace_uses(n->outputs[k], same);
  }
  g.erase(n);
  return loop;
}

std::vector<Node*> BoundedSizes::finish_stacked(Graph& g, Node* n) {
  std::vector<Node*> made;
  if (!n->is("Loop")) return made;
  Node* const next = std::next(n->self)->get();  // what holds the counts is the last of all
  const size_t states = own_inputs(*n) - 2;
  const auto backwards = n->attr_ints("scan_output_directions");
  const auto ints = [&](const ModelText& name, const char* suffix, int64_t number) {
    return g.add_constant(derived(name, suffix), int64_constant({number}));
  };
  for (size_t k = states; k < n->outputs.size(); k++) {
    Value* y = n->outputs[k];
    const auto size = y ? find(y, 0) : std::nullopt;
    if (!y || !y->is_used() || n->attrs.count("capacity") == 0) continue;
    const ModelText name = y->name;
    std::vector<Node*> chain;
    const auto add = [&](const char* op, std::vector<Value*> inputs, const char* suffix, const Attrs& attrs,
                         const char* domain = "") {
      inputs.insert(inputs.begin(), chain.empty() ? y : chain.back()->outputs[0]);
      chain.push_back(insert_for(g, *n, next, op, std::move(inputs), {derived(name, suffix)}, attrs, domain));
    };
    if (size) {
      add("fill_behind", {size->count}, "_filled", {{"axis", int64_t(0)}, {"fill", std::string("zero")}}, "tc");
      infer_types(g, *chain[0]);
      for (const BoundedSize& s : std::vector<BoundedSize>(sizes(y))) note(chain[0]->outputs[0], s);
    }
    if (k - states < backwards.size() && backwards[k - states] == 1)
      add("Slice",
          {ints(name, "_start", -1), ints(name, "_end", INT64_MIN), ints(name, "_axis", 0), ints(name, "_by", -1)},
          "_turned", {});
    const int64_t axis = scan_axis(*n, "scan_output_axes", k - states, size_t(rank_of(y)));
    if (axis > 0) add("Transpose", {}, "_moved", {{"perm", moved_axis(rank_of(y), 0, axis)}});
    if (chain.empty()) continue;
    y->name = derived(name, "_stacked");
    chain.back()->outputs[0]->name = name;
    g.replace_uses(y, chain.back()->outputs[0]);
    g.set_input(chain[0], 0, y);
    made.insert(made.end(), chain.begin() + (size ? 1 : 0), chain.end());
  }
  n->attrs.erase("scan_output_axes");
  n->attrs.erase("scan_output_directions");
  return made;
}

}  // namespace tc
