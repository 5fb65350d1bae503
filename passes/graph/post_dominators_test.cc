#include "passes/graph/post_dominators.h"

#include <set>

#include "passes/graph/test_graph.h"

namespace tc::post_dominators_test {
namespace {

std::string after(const PostDominators& d, const Value* v) {
  const Node* n = d.immediate(v->producer);
  return n ? n->outputs[0]->name.raw() : "end";
}

TEST(PostDominators, WaysMeetAgain) {
  TestGraph t;
  Value* a = t.op("a", "Relu", {t.in("x", {4})});
  Value* b = t.op("b", "Neg", {a});
  Value* c = t.op("c", "Abs", {b});
  Value* d = t.op("d", "Exp", {a});
  Value* e = t.op("e", "Add", {c, d});
  Value* f = t.op("f", "Mul", {e, e});
  const Graph g = t.out({f});
  const PostDominators p(g);
  EXPECT_EQ(after(p, a), "e");
  EXPECT_EQ(after(p, b), "c");
  EXPECT_EQ(after(p, d), "e");
  EXPECT_EQ(after(p, e), "f");
  EXPECT_EQ(after(p, f), "end");
}

TEST(PostDominators, AResultLeadsToTheEndAlthoughItIsUsed) {
  TestGraph t;
  Value* a = t.op("a", "Relu", {t.in("x", {4})});
  Value* b = t.op("b", "Neg", {a});
  Value* c = t.op("c", "Exp", {b});
  const Graph g = t.out({c, b});
  const PostDominators p(g);
  EXPECT_EQ(after(p, a), "b");
  EXPECT_EQ(after(p, b), "end");
}

/// By the definition: a node that, taken away, leaves no way from n to a result; the nearest of these.
const Node* by_definition(const Graph& g, const Node* n) {
  auto reaches_end = [&](const Node* without) {
    std::vector<const Node*> work{n};
    std::set<const Node*> seen;
    while (!work.empty()) {
      const Node* at = work.back();
      work.pop_back();
      if (at == without || !seen.insert(at).second) continue;
      if (at->outputs[0]->output_uses > 0) return true;
      work.insert(work.end(), at->outputs[0]->users.begin(), at->outputs[0]->users.end());
    }
    return false;
  };
  bool behind = false;
  for (const auto& m : g.nodes()) {
    if (behind && !reaches_end(m.get())) return m.get();
    behind = behind || m.get() == n;
  }
  return nullptr;
}

TEST(PostDominators, AreThoseOfTheDefinitionInRandomGraphs) {
  for (uint32_t seed = 1; seed <= 20; ++seed) {
    uint32_t state = seed;
    auto below = [&](size_t n) { return size_t((state = state * 1664525u + 1013904223u) >> 8) % n; };
    TestGraph t;
    std::vector<Value*> values{t.in("x", {4})};
    for (int i = 0; i < 60; ++i) {
      const size_t near = std::min<size_t>(values.size(), 5);
      Value* a = values[values.size() - 1 - below(near)];
      Value* b = values[values.size() - 1 - below(near)];
      values.push_back(t.op("v" + std::to_string(i), "Add", {a, b}));
    }
    std::vector<Value*> results{values.back()};
    for (size_t i = 1; i < values.size() - 1; ++i)
      if (values[i]->users.empty()) results.push_back(values[i]);
    const Graph g = t.out(results);
    const PostDominators p(g);
    for (const auto& n : g.nodes()) EXPECT_EQ(p.immediate(n.get()), by_definition(g, n.get())) << seed;
  }
}

}  // namespace
}  // namespace tc::post_dominators_test
