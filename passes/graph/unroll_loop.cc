// One iteration of a Loop in front of what is left of it, as often as it runs.
//   s = Loop(3, , s0) {s' = Concat(s, f(s))}   ->   s1 = Concat(s0, f(s0))   s = Loop(3, go, s1) {...}, which has begun
//
// Preconditions: the trip count and each condition are constants when they are asked for; at most kMostIterations.
#include "passes/graph/unroll_loop.h"

#include "ir/ops/regions.h"
#include "passes/graph/rewrite.h"

namespace tc {
namespace {

constexpr int64_t kMostIterations = 256;  // of a loop that is unrolled
constexpr size_t kMostNodes = 200'000;    // of the graph that such loops make

}  // namespace

bool may_be_unrolled(const Node& loop, int64_t iterations) {
  if (iterations < 0) return true;
  return iterations <= kMostIterations && loop.regions.at(0)->num_nodes() * size_t(iterations) <= kMostNodes;
}

/// What the iterations have kept for the end goes.
void LoopUnroller::forget(Graph& g, const Node& n) {
  for (const auto& list : unrolled_[n.id].scanned)
    for (Node* kept : list) g.erase(kept);
  unrolled_.erase(n.id);
}

void LoopUnroller::refuse(Graph& g, const Node& n, const std::string& why, int input) {
  forget(g, n);
  throw Error(problem_of(n, code_, ExitCode::Unsupported, why, {}, input));
}

/// The trip count or condition of a Loop, `otherwise` where it is absent.
int64_t LoopUnroller::known_bound(Graph& g, const Node& n, size_t k, int64_t otherwise) {
  if (k >= n.inputs.size() || !n.inputs[k]) return otherwise;
  const Constant c = n.inputs[k]->constant;
  if (!c || c->size() != 1)
    refuse(g, n, what_ + " must end after a number of iterations that is known when the model is compiled", int(k));
  return c->as_int(0);
}

/// The results of a Loop that has ended, in its place. Returns the first node of what is stacked, or the one behind the loop.
NodeIterator LoopUnroller::end(Graph& g, Node* n, const std::vector<Value*>& states, const Copied& copied) {
  const Unrolled& u = unrolled_[n->id];
  for (size_t k = 0; k < states.size(); k++) {
    Value* out = n->outputs[k];
    if (!out || !out->is_used()) continue;
    // An Identity, also of a list, says the same with a name of its own.
    Node* copy = insert_for(g, *n, n, "Identity", {states[k]}, {out->name});
    g.set_type(copy->outputs[0], states[k]->type);
    if (copied) copied(states[k], copy->outputs[0]);
    g.replace_uses(out, copy->outputs[0]);
  }
  const InsertionPoint point(g, *n);
  for (size_t k = states.size(); k < n->outputs.size(); k++) {
    Value* out = n->outputs[k];
    if (!out || !out->is_used()) continue;
    if (k - states.size() >= u.scanned.size()) refuse(g, *n, "a loop without iterations that collects results");
    std::vector<Value*> rows;
    Value* axes = g.add_constant(derived(out->name, "_axis"), int64_constant({0}));
    for (const Node* row : u.scanned.at(k - states.size()))
      rows.push_back(add_op(g, n, "Unsqueeze", {row->inputs[0], axes},
                            derived(out->name, "_row" + to_text(int64_t(rows.size())))));
    g.replace_uses(out, add_op(g, n, "Concat", rows, out->name, {{"axis", int64_t(0)}}));
  }
  forget(g, *n);
  g.erase(n);
  return point.next();
}

/// The Loop that goes on behind an iteration of these results: `n`'s body and outputs, the next states.
Node* LoopUnroller::rest_of(Graph& g, Node* n, const std::vector<Value*>& results) {
  const auto own = std::ptrdiff_t(own_inputs(*n));
  std::vector<Value*> inputs = {n->inputs[0], results[0]};
  inputs.insert(inputs.end(), results.begin() + 1, results.begin() + own - 1);
  inputs.insert(inputs.end(), n->inputs.begin() + own, n->inputs.end());
  Node* rest = insert_for(g, *n, n, "Loop", inputs, output_names(*n), n->attrs);
  rest->captures = n->captures;
  rest->regions = std::move(n->regions);
  for (size_t k = 0; k < n->outputs.size(); k++) {
    if (!n->outputs[k]) continue;
    g.set_type(rest->outputs[k], n->outputs[k]->type);
    g.replace_uses(n->outputs[k], rest->outputs[k]);
  }
  return rest;
}

NodeIterator LoopUnroller::step(Graph& g, Node* n, const Copied& copied) {
  const size_t own = own_inputs(*n);
  const std::vector<Value*> states(n->inputs.begin() + 2, n->inputs.begin() + std::ptrdiff_t(own));
  const int64_t trips = known_bound(g, *n, 0, INT64_MAX), go = trips <= 0 ? 0 : known_bound(g, *n, 1, 1);
  const int64_t done = unrolled_[n->id].iterations;
  if (done >= trips || go == 0) return end(g, n, states, copied);
  if (done >= kMostIterations || g.num_nodes() > kMostNodes)
    refuse(g, *n, what_ + " runs for more than " + to_text(kMostIterations) + " iterations");
  const InsertionPoint point(g, *n);
  std::vector<Value*> args = {g.add_constant(derived(n->name, "_iteration"), scalar_constant(DType::I64, double(done))),
                              g.add_constant(derived(n->name, "_go"), scalar_constant(DType::Bool, 1))};
  args.insert(args.end(), n->inputs.begin() + 2, n->inputs.end());
  const std::vector<Value*> results = inline_graph(g, n, *n->regions.at(0), args);
  Node* rest = rest_of(g, n, results);
  Unrolled u = std::move(unrolled_[n->id]);
  u.iterations++;
  u.scanned.resize(results.size() - (own - 1));
  const NodeIterator next = std::next(NodeIterator(n->self));
  Node* behind = next == g.nodes().end() ? nullptr : next->get();
  for (size_t k = own - 1; k < results.size(); k++)
    u.scanned[k - (own - 1)].push_back(
        g.insert(behind, "SequenceConstruct", {results[k]}, {derived(results[k]->name, "_kept")}));
  unrolled_.erase(n->id);
  unrolled_[rest->id] = std::move(u);
  n->regions.clear();
  n->captures = 0;
  g.erase(n);
  return point.next();
}

}  // namespace tc
