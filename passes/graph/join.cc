#include "passes/graph/join.h"

#include <algorithm>
#include <map>
#include <queue>
#include <set>

#include "passes/graph/rewrite.h"

namespace tc {

namespace {

/// Buffers by value id; looked up only.
using BufferOf = std::map<int, Buffer>;

/// Appends the stages of n's function to `fn`, reading and writing the buffers of its values.
void append_stages(const Node& n, BufferOf& buffer, TensorFn& fn, std::vector<Value*>& outer, int& scans) {
  std::vector<Buffer> inputs;
  for (size_t i = 0; i < n.inputs.size(); ++i) {
    Buffer& b = buffer[n.inputs[i]->id];
    if (!b) {
      b = std::make_shared<const BufferDef>(*n.fn->inputs.at(i));
      fn.inputs.push_back(b);
      outer.push_back(n.inputs[i]);
    }
    inputs.push_back(b);
  }
  TensorFn copy = instantiate(*n.fn, inputs);
  int last_scan = -1;
  for (Stage& s : copy.stages) {
    if (s.scan >= 0) {
      last_scan = std::max(last_scan, s.scan);
      s.scan += scans;
    }
    fn.stages.push_back(std::move(s));
  }
  scans += last_scan + 1;
  for (size_t k = 0; k < n.outputs.size(); ++k) buffer[n.outputs[k]->id] = copy.outputs.at(k);
}

}  // namespace

JointFunction joint_function(const std::vector<Node*>& nodes) {
  JointFunction j;
  BufferOf buffer;
  int scans = 0;
  std::set<int> inside;
  for (const Node* n : nodes) inside.insert(n->id);
  for (const Node* n : nodes) {
    append_stages(*n, buffer, j.fn, j.operands, scans);
    for (Value* v : n->outputs) {
      const bool leaves = v->output_uses > 0 || std::any_of(v->users.begin(), v->users.end(),
                                                            [&](const Node* u) { return !inside.count(u->id); });
      if (!leaves) continue;
      j.results.push_back(v);
      j.fn.outputs.push_back(buffer[v->id]);
    }
  }
  return j;
}

Node* join_nodes(Graph& g, const std::vector<Node*>& nodes) { return join_nodes(g, nodes, joint_function(nodes)); }

Node* join_nodes(Graph& g, const std::vector<Node*>& nodes, JointFunction joint) {
  std::vector<ModelText> names, origins;
  for (const Node* n : nodes) add_origins(origins, n->origins);
  for (const Value* v : joint.results) names.push_back(v->name);
  Node* f = g.insert(nodes.back(), "fused", std::move(joint.operands), std::move(names), {}, "tc");
  f->name = nodes.back()->name;
  f->origins = std::move(origins);
  f->fn = std::make_shared<const TensorFn>(std::move(joint.fn));
  for (size_t k = 0; k < joint.results.size(); ++k) {
    g.set_type(f->outputs[k], joint.results[k]->type);
    g.replace_uses(joint.results[k], f->outputs[k]);
  }
  for (size_t i = nodes.size(); i-- > 0;) g.erase(nodes[i]);
  return f;
}

void sort_nodes(Graph& g) {
  std::vector<int> position(size_t(g.node_ids()), 0), waiting(size_t(g.node_ids()), 0);
  std::vector<Node*> at;
  using Entry = std::pair<int, Node*>;
  auto later = [](const Entry& a, const Entry& b) { return a.first > b.first; };
  std::priority_queue<Entry, std::vector<Entry>, decltype(later)> ready(later);
  for (const auto& n : g.nodes()) {
    position[size_t(n->id)] = int(at.size());
    at.push_back(n.get());
    for (const Value* v : n->inputs)
      if (v && v->producer) ++waiting[size_t(n->id)];
    if (waiting[size_t(n->id)] == 0) ready.emplace(position[size_t(n->id)], n.get());
  }
  size_t moved = 0;
  while (!ready.empty()) {
    Node* n = ready.top().second;
    ready.pop();
    g.move_before(n, nullptr);
    ++moved;
    for (const Value* v : n->outputs) {
      if (!v) continue;
      for (Node* u : v->users)
        if (--waiting[size_t(u->id)] == 0) ready.emplace(position[size_t(u->id)], u);
    }
  }
  check(moved == at.size(), "the graph has a cycle");
}

}  // namespace tc
