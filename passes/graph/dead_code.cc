// Removes what no output of the graph needs: nodes, single outputs of nodes, captures of bodies, constants.
//   y, mask = Dropout(x)   z = Relu(x)   return y   ->   y, _ = Dropout(x)   return y
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
    for (const auto& r : n->regions) dead_code(*r, cx);
    drop_captures(g, n);
  }
  g.drop_unused_constants();
}

}  // namespace tc
