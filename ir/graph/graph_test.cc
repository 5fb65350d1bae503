#include "ir/graph/graph.h"

#include <gtest/gtest.h>

#include <chrono>

namespace tc::graph_test {
namespace {

ValueType f32(Dims d) { return ValueType::tensor(DType::F32, to_shape(d)); }

/// x -> Relu -> ... -> Relu, `length` nodes.
Graph chain(int length) {
  Graph g(ModelText("chain"));
  Value* v = g.add_input(ModelText("x"), f32({4}));
  for (int i = 0; i < length; ++i) {
    Node* n = g.append("Relu", {v}, {ModelText("r" + std::to_string(i))});
    g.set_type(n->outputs[0], f32({4}));
    v = n->outputs[0];
  }
  g.set_outputs({v});
  return g;
}

TEST(Graph, InsertWiresProducersAndUsers) {
  Graph g;
  Value* x = g.add_input(ModelText("x"), f32({4}));
  Node* n = g.append("Add", {x, x}, {ModelText("y")});
  EXPECT_EQ(x->users, (std::vector<Node*>{n, n}));
  EXPECT_EQ(n->outputs[0]->producer, n);
  Node* first = g.insert(n, "Relu", {x}, {ModelText("r")});
  EXPECT_EQ(g.nodes().front().get(), first);
}

TEST(Graph, AbsentOutputsAreNull) {
  Graph g;
  Value* x = g.add_input(ModelText("x"), f32({4}));
  Node* n = g.append("Dropout", {x, nullptr}, {ModelText(""), ModelText(""), ModelText("m")});
  ASSERT_EQ(n->outputs.size(), 3u);
  EXPECT_NE(n->outputs[0], nullptr);
  EXPECT_EQ(n->outputs[1], nullptr);
  EXPECT_EQ(n->outputs[2]->index, 2);
}

TEST(Graph, ReplaceUsesMovesNodesAndOutputs) {
  Graph g;
  Value* x = g.add_input(ModelText("x"), f32({4}));
  Node* a = g.append("Relu", {x}, {ModelText("a")});
  Node* b = g.append("Add", {a->outputs[0], a->outputs[0]}, {ModelText("b")});
  g.set_outputs({a->outputs[0], b->outputs[0], a->outputs[0]});
  g.replace_uses(a->outputs[0], x);
  EXPECT_EQ(b->inputs, (std::vector<Value*>{x, x}));
  EXPECT_EQ(g.outputs(), (std::vector<Value*>{x, b->outputs[0], x}));
  EXPECT_TRUE(g.is_output(x));
  EXPECT_FALSE(a->outputs[0]->is_used());
  g.erase(a);
  EXPECT_EQ(x->users, (std::vector<Node*>{b, b}));
}

TEST(Graph, ErasingAUsedNodeIsADefect) {
  Graph g = chain(2);
  EXPECT_THROW(g.erase(g.nodes().front().get()), InternalError);
}

TEST(Graph, EditsResetTheCachedMeaningButNotAFusedDefinition) {
  Graph g;
  Value* x = g.add_input(ModelText("x"), f32({4}));
  Value* y = g.add_input(ModelText("y"), f32({4}));
  Node* a = g.append("Relu", {x}, {ModelText("a")});
  Node* f = g.append("fused", {x}, {ModelText("f")}, {}, "tc");
  a->fn = f->fn = std::make_shared<TensorFn>();
  g.replace_uses(x, y);
  EXPECT_EQ(a->fn, nullptr);
  EXPECT_NE(f->fn, nullptr);
}

TEST(Graph, DropOutputLeavesAHole) {
  Graph g;
  Value* x = g.add_input(ModelText("x"), f32({4}));
  Node* n = g.append("TopK", {x}, {ModelText("v"), ModelText("i")});
  g.set_outputs({n->outputs[0]});
  g.drop_output(n, 1);
  EXPECT_EQ(n->outputs[1], nullptr);
  EXPECT_THROW(g.drop_output(n, 0), InternalError);
}

TEST(Graph, ErasingInputsMovesLaterOnesUp) {
  Graph g;
  Value* x = g.add_input(ModelText("x"), f32({4}));
  Value* y = g.add_input(ModelText("y"), f32({4}));
  Node* n = g.append("Add", {x, y}, {ModelText("z")});
  EXPECT_THROW(g.erase_input(0), InternalError);
  g.erase_node_input(n, 0);
  g.erase_input(0);
  EXPECT_EQ(n->inputs, (std::vector<Value*>{y}));
  EXPECT_EQ(g.inputs(), (std::vector<Value*>{y}));
}

TEST(Graph, CloneIsDeepAndKeepsIdsAndConstants) {
  Graph g = chain(3);
  Value* c = g.add_constant(ModelText("c"), int64_constant({1, 2}));
  Node* n = g.append("If", {g.inputs()[0], c}, {ModelText("z")});
  n->regions.push_back(std::make_unique<Graph>(chain(1)));
  Graph h = g.clone();
  EXPECT_EQ(h.num_nodes(), g.num_nodes());
  EXPECT_EQ(h.value_ids(), g.value_ids());
  const Node& m = *h.nodes().back();
  EXPECT_EQ(m.inputs[1]->constant, c->constant);
  EXPECT_NE(m.regions[0].get(), n->regions[0].get());
  EXPECT_EQ(m.regions[0]->num_nodes(), 1u);
  EXPECT_EQ(h.outputs()[0]->producer->op, "Relu");
  EXPECT_NE(h.outputs()[0], g.outputs()[0]);
}

TEST(Graph, DropsConstantsWithoutUsers) {
  Graph g = chain(1);
  g.add_constant(ModelText("c"), int64_constant({1}));
  Value* used = g.add_constant(ModelText("d"), int64_constant({1}));
  g.append("Relu", {used}, {ModelText("y")});
  size_t before = g.values().size();
  g.drop_unused_constants();
  EXPECT_EQ(g.values().size(), before - 1);
}

TEST(Graph, LongChainsAreEditedFast) {
  auto start = std::chrono::steady_clock::now();
  Graph g = chain(20000);
  Graph h = g.clone();
  for (auto it = g.nodes().begin(); it != g.nodes().end();) {
    Node* n = (it++)->get();
    g.replace_uses(n->outputs[0], n->inputs[0]);
    g.erase(n);
  }
  double s = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  EXPECT_EQ(g.outputs()[0], g.inputs()[0]);
  EXPECT_EQ(h.num_nodes(), 20000u);
  EXPECT_LT(s, 1.0);  // milliseconds in practice; quadratic edits would take many seconds
}

TEST(GraphText, OneNodeALine) {
  Graph g(ModelText("net"));
  Value* x = g.add_input(ModelText("x"), f32({1, 4}));
  Value* s = g.add_constant(ModelText("shape"), int64_constant({2, -1}));
  Node* n = g.append("Reshape", {x, s, nullptr}, {ModelText("y z\n")}, {{"allowzero", int64_t(0)}});
  n->origins = {ModelText("/a/Reshape")};
  g.set_type(n->outputs[0], f32({2, 2}));
  g.set_outputs({n->outputs[0]});
  EXPECT_EQ(to_text(g),
            "graph net(x: f32[1, 4]) -> (\"y z\\n\") {\n"
            "  shape: i64[2] = const [2, -1]\n"
            "  \"y z\\n\": f32[2, 2] = Reshape(x, shape, _) {allowzero = 0} as \"\" from \"/a/Reshape\"\n"
            "}\n");
}

}  // namespace
}  // namespace tc::graph_test
