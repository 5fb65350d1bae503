// Removes what no output of the graph needs: nodes, single outputs of nodes, captures of bodies, constants.
//   y, mask = Dropout(x)   z = Relu(x)   return y   ->   y, _ = Dropout(x)   return y
// A state of a Loop or Scan that nobody reads but itself, or other such states, is handed on as it is: then no iteration
// computes or moves it.
// Inputs of the model stay: they are part of its interface.
//
// Needs: nothing. Leaves: every value is used, except inputs of the model and of Loop and Scan bodies, outputs of fused
// nodes, and the number by which an operator counts: without it a node means another thing.
#include <algorithm>

#include "ir/ops/regions.h"
#include "passes/graph/bounded_sizes.h"
#include "passes/graph/passes.h"

namespace tc {

namespace {

bool is_needed(const Node& n) {
  return std::any_of(n.outputs.begin(), n.outputs.end(), [](const Value* v) { return v && v->is_used(); });
}

void drop_outputs(Graph& g, Node* n) {
  for (size_t k = 0; k < n->outputs.size(); ++k) {
    if (!n->outputs[k] || n->outputs[k]->is_used() || int(k) == counting_output(*n)) continue;
    g.drop_output(n, k);
    n->fn = nullptr;
  }
}

/// Captures that no body reads.
void drop_captures(Graph& g, Node* n) {
  const size_t own = own_inputs(*n);
  for (size_t k = size_t(n->captures); k-- > 0;) {
    auto input = [&](const Graph& body) { return body.inputs().size() - size_t(n->captures) + k; };
    const bool read = std::any_of(n->regions.begin(), n->regions.end(),
                                  [&](const auto& r) { return r->inputs()[input(*r)]->is_used(); });
    if (read) continue;
    for (const auto& r : n->regions) r->erase_input(input(*r));
    g.erase_node_input(n, own + k);
    --n->captures;
  }
}

/// Lets states that reach nothing else keep what they are.
///   Loop(m, , a, b) { a' = Add(a, k)  b' = Mul(b, a) }, whose b alone is read: a' stays, for b needs it. But when a
///   alone is read, the body is { a' = Add(a, k)  b' = b }.
void keep_unread_states(Node* n) {
  if (!n->is("Loop") && !n->is("Scan")) return;
  Graph& body = *n->regions.at(0);
  const bool loop = n->is("Loop");
  const size_t first = loop ? 2 : 0, skip = loop ? 1 : 0;
  const size_t scanned = loop ? 0 : size_t(n->attr_int("num_scan_inputs", 0));
  const size_t states = own_inputs(*n) - first - scanned;
  std::vector<int> state(size_t(body.value_ids()), -1);  // by id: which state it is the body's input of
  for (size_t k = 0; k < states; ++k) state[size_t(body.inputs()[first + k]->id)] = int(k);
  std::vector<bool> seen(state.size(), false), live(states, false);
  std::vector<const Value*> work;
  auto needs = [&](const Value* v) {
    if (!v || seen[size_t(v->id)]) return;
    seen[size_t(v->id)] = true;
    work.push_back(v);
  };
  auto lives = [&](size_t k) {
    if (live[k]) return;
    live[k] = true;
    needs(body.outputs()[skip + k]);
  };
  if (loop) needs(body.outputs()[0]);
  for (size_t k = 0; k < n->outputs.size(); ++k) {
    if (k >= states)
      needs(body.outputs()[skip + k]);
    else if (n->outputs[k] && n->outputs[k]->is_used())
      lives(k);
  }
  while (!work.empty()) {
    const Value* v = work.back();
    work.pop_back();
    if (state[size_t(v->id)] >= 0) lives(size_t(state[size_t(v->id)]));
    if (!v->producer) continue;
    for (const Value* o : v->producer->inputs) needs(o);
  }
  for (size_t k = 0; k < states; ++k)
    if (!live[k]) body.set_output(skip + k, body.inputs()[first + k]);
}

}  // namespace

void dead_code(Graph& g, PassContext& cx) {
  for (auto it = g.nodes().end(); it != g.nodes().begin();) {
    Node* n = std::prev(it)->get();
    if (!is_needed(*n)) {
      g.erase(n);
      continue;
    }
    --it;
    if (n->domain != "tc") drop_outputs(g, n);
    keep_unread_states(n);
    for (const auto& r : n->regions) dead_code(*r, cx);
    drop_captures(g, n);
  }
  g.drop_unused_constants();
}

}  // namespace tc
