#include "cli/report/model_story.h"

#include "cli/review/model_diff.h"

namespace tc {
namespace {

constexpr size_t kNamed = 12;       // nodes that a pass names, of those it made and of those it took away
constexpr size_t kPrinted = 20000;  // nodes; larger graphs are not compared as text

std::string op_text(const Node& n) { return (n.domain.empty() ? "" : n.domain + "::") + n.op; }

std::string name_of(const Node& n) {
  if (!n.name.empty()) return n.name.raw();
  return n.outputs.empty() || !n.outputs[0] ? "" : n.outputs[0]->name.raw();
}

/// f(node) for the nodes of a graph and of all bodies.
template <class F>
void each_node(const Graph& g, F f) {
  std::vector<const Graph*> left{&g};
  while (!left.empty()) {
    const Graph* at = left.back();
    left.pop_back();
    for (const auto& n : at->nodes()) {
      f(*n);
      for (const auto& r : n->regions) left.push_back(r.get());
    }
  }
}

}  // namespace

StoryTeller::State StoryTeller::state_of(const Graph& g) {
  State s;
  each_node(g, [&s](const Node& n) {
    s.nodes++;
    s.ops[op_text(n)]++;
    if (!n.outputs.empty() && n.outputs[0]) s.results[n.outputs[0]->name.raw()] = op_text(n);
  });
  s.text = s.nodes <= kPrinted ? hash_text(to_text(g)) : 0;
  return s;
}

void StoryTeller::tell_nodes(const Graph& g) {
  std::map<const Node*, int> index;  // looked up only
  for (const auto& n : g.nodes()) {
    ModelStory::ModelNode m;
    m.name = name_of(*n);
    m.op = op_text(*n);
    for (const auto& [key, value] : n->attrs)
      if (!std::holds_alternative<std::monostate>(value)) m.attrs.emplace_back(key, attr_text(value));
    for (const Value* v : n->inputs)
      if (v) m.inputs.push_back({v->name.raw(), v->producer ? index.at(v->producer) : -1, v->is_constant()});
    for (const Value* v : n->outputs)
      if (v) m.outputs.push_back({v->name.raw(), v->type.is_tensor() ? to_text(v->type) : ""});
    for (const ModelText& t : n->origins) m.origins.push_back(t.raw());
    m.bodies = int(n->regions.size());
    index[n.get()] = int(story_.nodes.size());
    story_.nodes.push_back(std::move(m));
  }
}

// The first pass infers what the model does not say.
void StoryTeller::tell_types(const Graph& g) {
  std::map<std::string, std::string> types;
  for (const auto& v : g.values())
    if (v->type.is_tensor()) types.emplace(v->name.raw(), to_text(v->type));
  for (ModelStory::ModelNode& n : story_.nodes)
    for (ModelStory::Result& r : n.outputs)
      if (const auto it = types.find(r.name); it != types.end()) r.type = it->second;
}

void StoryTeller::tell_pass(const PassInfo& pass, const State& now) {
  ModelStory::Pass p{std::string(pass.name), std::string(pass.summary), last_.nodes, now.nodes, false, {}, {}, {}};
  std::map<std::string, int64_t> change = now.ops;
  for (const auto& [op, count] : last_.ops) change[op] -= count;
  for (const auto& [op, count] : change)
    if (count != 0) p.ops.emplace_back(op, count);
  const auto missing = [](const State& from, const State& in, std::vector<std::string>& list) {
    for (const auto& [name, op] : from.results) {
      const auto it = in.results.find(name);
      if ((it == in.results.end() || it->second != op) && list.size() < kNamed) list.push_back(name + " (" + op + ")");
    }
  };
  missing(last_, now, p.gone);
  missing(now, last_, p.fresh);
  p.changed = last_.text != now.text || !p.ops.empty() || !p.gone.empty() || !p.fresh.empty();
  story_.passes.push_back(std::move(p));
}

void StoryTeller::see(const PassInfo* pass, const Graph& g) {
  State now = state_of(g);
  if (!pass) {
    tell_nodes(g);
  } else {
    if (story_.passes.empty()) tell_types(g);
    tell_pass(*pass, now);
  }
  last_ = std::move(now);
  // The graph as fuse_ops takes it is the one that the pass before it leaves.
  const std::vector<PassInfo>& all = graph_passes();
  for (size_t i = 0; pass && i + 1 < all.size(); i++)
    if (all[i + 1].name == "fuse_ops" && all[i].name == pass->name)
      story_.kept = edges_between_kernels(g, make_backend(target_)->traits());
}

}  // namespace tc
