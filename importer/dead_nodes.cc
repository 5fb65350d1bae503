// Step 2b: nodes whose results nobody reads go, so that what they are is no reason to refuse the model.
//
//   a = Frobnicate(x)  y = Relu(x)   with the output y   ->   y = Relu(x)
//
// Needs: names checked. Leaves: every node of the graph and of its bodies is needed for one of its outputs.
#include "importer/scope.h"

namespace tc::importer {

namespace {

void drop_dead(onnx::GraphProto& g) {
  std::unordered_map<std::string, int> makers;
  for (int i = 0; i < g.node_size(); ++i)
    for (const auto& o : g.node(i).output()) makers.emplace(o, i);
  std::vector<bool> alive(size_t(g.node_size()), false);
  std::vector<int> work;
  auto need = [&](const std::string& name) {
    const auto it = makers.find(name);
    if (name.empty() || it == makers.end() || alive[size_t(it->second)]) return;
    alive[size_t(it->second)] = true;
    work.push_back(it->second);
  };
  for (const auto& o : g.output()) need(o.name());
  while (!work.empty()) {
    onnx::NodeProto& n = *g.mutable_node(work.back());
    work.pop_back();
    for (const auto& i : n.input()) need(i);
    for (onnx::GraphProto* body : mutable_bodies_of(n)) {
      drop_dead(*body);
      for (const std::string& name : free_names(*body)) need(name);
    }
  }
  int kept = 0;
  for (int i = 0; i < g.node_size(); ++i)
    if (alive[size_t(i)]) g.mutable_node()->SwapElements(kept++, i);
  g.mutable_node()->DeleteSubrange(kept, g.node_size() - kept);
}

}  // namespace

void drop_dead_nodes(onnx::ModelProto& m) { drop_dead(*m.mutable_graph()); }

}  // namespace tc::importer
