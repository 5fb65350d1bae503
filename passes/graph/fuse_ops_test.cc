#include <chrono>

#include "passes/graph/passes.h"
#include "passes/graph/test_graph.h"

namespace tc {
namespace {

const std::vector<void (*)(Graph&, PassContext&)> kFuse = {to_functions, fuse_ops};

TEST(ToFunctions, ScalarsBecomeLiteralsAndRepeatedOperandsOneInput) {
  TestGraph t;
  Value* x = t.in("x", {4});
  Value* y = t.op("y", "Mul", {x, t.scalar("half", 0.5)});
  Value* z = t.op("z", "Add", {y, y});
  const Graph g = after_passes(t.out({z}), {to_functions});
  EXPECT_EQ(ops_of(g), "tc.fused tc.fused");
  for (const auto& n : g.nodes()) EXPECT_EQ(n->inputs.size(), 1u);
  EXPECT_NE(to_text(g).find("* 0.5"), std::string::npos) << to_text(g);
  EXPECT_EQ(to_text(g).find("half"), std::string::npos);
}

TEST(ToFunctions, OutputsOwnAProducer) {
  TestGraph t;
  Value* x = t.in("x", {4});
  Value* y = t.op("y", "Relu", {x});
  const Graph g = after_passes(t.out({y, x, y, t.scalar("c", 2)}), {to_functions});
  EXPECT_EQ(ops_of(g), "tc.fused Identity Identity Identity");
}

TEST(FuseOps, JoinsAChain) {
  TestGraph t;
  Value* x = t.in("x", {2, 3});
  Value* a = t.op("a", "Relu", {x});
  Value* b = t.op("b", "Add", {a, t.in("r", {3})});
  Value* c = t.op("c", "Mul", {b, a});
  const Graph g = after_passes(t.out({c}), kFuse);
  EXPECT_EQ(kernels_of(g), "relu+add+mul");
  const Node& n = *g.nodes().front();
  EXPECT_EQ(n.origins, (std::vector<ModelText>{ModelText("a"), ModelText("b"), ModelText("c")}));
  EXPECT_EQ(n.outputs[0]->name, ModelText("c"));
}

TEST(FuseOps, AValueReadOutsideIsAnOutput) {
  TestGraph t;
  Value* a = t.op("a", "Relu", {t.in("x", {4})});
  Value* b = t.op("b", "Neg", {a});
  const Graph g = after_passes(t.out({a, b}), kFuse);
  EXPECT_EQ(kernels_of(g), "relu+neg");
  EXPECT_EQ(g.nodes().front()->outputs.size(), 2u);
}

TEST(FuseOps, ABroadcastOperandIsNotRecomputed) {
  TestGraph t;
  Value* a = t.op("a", "Exp", {t.in("x", {3})});
  Value* b = t.op("b", "Add", {t.in("y", {5, 3}), a});
  EXPECT_EQ(kernels_of(after_passes(t.out({b}), kFuse, 1e-6)), "exp add");
}

TEST(FuseOps, LongChainsAreCutByContent) {
  auto chain = [](int extra_at) {
    TestGraph t;
    Value* v = t.in("x", {4});
    for (int i = 0; i < 150; ++i) {
      const std::string name = "v" + std::to_string(i);
      if (i == extra_at) v = t.op("extra", "Neg", {v});
      v = t.op(name, "Add", {v, t.scalar("c" + std::to_string(i), i % 37)});
    }
    Graph g = t.out({v});
    PassContext cx;
    to_functions(g, cx);
    fuse_ops(g, cx);
    std::vector<std::string> last;
    for (const auto& n : g.nodes()) last.push_back(n->outputs[0]->name.raw());
    return last;
  };
  const auto plain = chain(-1), edited = chain(3);
  ASSERT_GT(plain.size(), 3u);
  // The edit is near the beginning; every kernel after the first two ends where it did.
  EXPECT_TRUE(std::equal(plain.end() - 3, plain.end(), edited.end() - 3));
}

TEST(FuseOps, LongGraphsTakeLinearTime) {
  TestGraph t;
  Value* v = t.in("x", {4});
  for (int i = 0; i < 20000; ++i) v = t.op("v" + std::to_string(i), i % 3 ? "Relu" : "Neg", {v});
  Graph g = t.out({v});
  const auto start = std::chrono::steady_clock::now();
  PassContext cx;
  to_functions(g, cx);
  fuse_ops(g, cx);
  EXPECT_LT(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(), 5.0);
  EXPECT_LT(g.num_nodes(), 1500u);
}

}  // namespace
}  // namespace tc
