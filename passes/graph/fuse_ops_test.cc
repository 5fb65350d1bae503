#include <chrono>

#include "passes/graph/passes.h"
#include "passes/graph/test_graph.h"

namespace tc::fuse_ops_test {
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

TEST(FuseOps, AKernelHasOneOutput) {
  TestGraph t;
  Value* a = t.op("a", "Relu", {t.in("x", {4})});
  Value* b = t.op("b", "Abs", {t.op("n", "Neg", {a})});
  EXPECT_EQ(kernels_of(after_passes(t.out({a, b}), kFuse)), "relu neg+abs");
}

TEST(FuseOps, AContractionWritesItsResultPermuted) {
  TestGraph t;
  Value* m = t.op("m", "MatMul", {t.in("x", {3, 2, 4}), t.in("w", {3, 4, 5})});
  Value* y = t.op("y", "Transpose", {t.op("r", "Relu", {m})}, {{"perm", std::vector<int64_t>{1, 0, 2}}});
  EXPECT_EQ(kernels_of(after_passes(t.out({y}), kFuse)), "matmul+relu+transpose");
}

TEST(FuseOps, VectorsOfSumsAreStoredAsTheyAre) {
  const auto kernels = [](const std::vector<int64_t>& perm, const Target& target) {
    TestGraph t;
    Value* m = t.op("m", "MatMul", {t.in("x", {3, 2, 4}), t.in("w", {3, 4, 5})});
    Value* y = t.op("y", "Transpose", {m}, {{"perm", perm}});
    return kernels_of(after_passes(t.out({y}), kFuse, 0, target));
  };
  const Target vectors = test_target("generic"), cuda = test_target("generic", true);
  EXPECT_EQ(kernels({1, 0, 2}, vectors), "matmul+transpose");
  EXPECT_EQ(kernels({0, 2, 1}, vectors), "matmul transpose");
  EXPECT_EQ(kernels({0, 2, 1}, cuda), "matmul+transpose");
}

TEST(FuseOps, AVarianceIsNoContraction) {
  TestGraph t;
  Value* x = t.op("s", "Add", {t.in("x", {3, 8}), t.in("r", {3, 8})});
  Value* y = t.op("y", "LayerNormalization", {x, t.weight("scale", {8}), t.weight("b", {8})});
  const Graph g = after_passes(t.out({t.op("z", "Relu", {y})}), kFuse, 1e-5);
  EXPECT_EQ(g.num_nodes(), 1u) << kernels_of(g);
}

TEST(FuseOps, ABroadcastOperandIsNotRecomputed) {
  TestGraph t;
  Value* a = t.op("a", "Exp", {t.in("x", {3})});
  Value* b = t.op("b", "Add", {t.in("y", {5, 3}), a});
  EXPECT_EQ(kernels_of(after_passes(t.out({b}), kFuse, 1e-6)), "exp add");
}

TEST(FuseOps, AConvolutionTakesItsEpilogueAndTheNextPad) {
  TestGraph t;
  Value* x = t.in("x", {1, 3, 5, 5});
  Attrs pads = {{"pads", std::vector<int64_t>{1, 1, 1, 1}}};
  Value* c = t.op("c", "Conv", {x, t.weight("w", {4, 3, 3, 3}), t.weight("b", {4})}, pads);
  Value* r = t.op("r", "Relu", {c});
  Value* d = t.op("d", "Conv", {r, t.weight("v", {4, 4, 3, 3})}, pads);
  Value* y = t.op("y", "Relu", {t.op("s", "Add", {d, t.op("e", "Conv", {x, t.weight("u", {4, 3, 1, 1})})})});
  const Graph g = after_passes(t.out({y}), {explicit_pad, to_functions, fuse_ops});
  EXPECT_EQ(kernels_of(g), "pad conv2d+bias+relu+pad conv2d conv2d+add+relu");
}

TEST(FuseOps, ASharedResultIsNotPaddedInPlace) {
  TestGraph t;
  Value* x = t.in("x", {1, 4, 5, 5});
  Value* c = t.op("c", "Conv", {x, t.weight("w", {4, 4, 1, 1})});
  Value* p = t.op("p", "Pad", {c, t.ints("pads", {0, 0, 1, 1, 0, 0, 1, 1})});
  EXPECT_EQ(kernels_of(after_passes(t.out({p, c}), kFuse)), "conv2d pad");
}

TEST(FuseOps, AContractionHasOneOutput) {
  TestGraph t;
  Value* m = t.op("m", "MatMul", {t.in("x", {2, 4}), t.weight("w", {4, 5})});
  Value* a = t.op("a", "Relu", {m});
  Value* b = t.op("b", "Neg", {a});
  Value* s = t.op("s", "Mul", {a, t.op("g", "Abs", {a})});
  const Graph g = after_passes(t.out({t.op("y", "MatMul", {a, t.weight("v", {5, 5})}), b, s}), kFuse);
  EXPECT_EQ(kernels_of(g), "matmul+relu neg abs+mul matmul");
}

TEST(FuseOps, ASumJoinsTheContractionThatOnlyItUses) {
  TestGraph t;
  Value* x = t.in("x", {2, 4});
  Value* a = t.op("a", "MatMul", {x, t.weight("w", {4, 5})});
  Value* shared = t.op("b", "MatMul", {x, t.weight("v", {4, 5})});
  Value* y = t.op("y", "MatMul", {shared, t.weight("u", {5, 5})});
  EXPECT_EQ(kernels_of(after_passes(t.out({t.op("s", "Add", {a, shared}), y}), kFuse)), "matmul matmul matmul+add");
}

TEST(FuseOps, AllWaysOfADiamondJoin) {
  TestGraph t;
  Value* m = t.op("m", "MatMul", {t.in("x", {2, 4}), t.weight("w", {4, 5})});
  Value* left = t.op("l2", "Neg", {t.op("l", "Abs", {m})});
  Value* right = t.op("r", "Tanh", {m});
  Value* y = t.op("y", "Add", {t.op("s", "Mul", {left, right}), m});
  EXPECT_EQ(kernels_of(after_passes(t.out({y}), kFuse, 1e-5)), "matmul+abs+neg+tanh+mul+add");
}

TEST(FuseOps, AWayThroughAContractionKeepsADiamondApart) {
  TestGraph t;
  Value* m = t.op("m", "Relu", {t.in("x", {4, 4})});
  Value* left = t.op("l", "Abs", {m});
  Value* right = t.op("r", "MatMul", {m, t.weight("w", {4, 4})});
  EXPECT_EQ(kernels_of(after_passes(t.out({t.op("y", "Mul", {left, right})}), kFuse)), "relu abs+matmul+mul");
}

TEST(FuseOps, SwishOfAContraction) {
  TestGraph t;
  Value* m = t.op("m", "MatMul", {t.in("x", {2, 4}), t.weight("w", {4, 5})});
  Value* y = t.op("y", "Mul", {m, t.op("s", "Sigmoid", {m})});
  EXPECT_EQ(kernels_of(after_passes(t.out({y}), kFuse)), "matmul+sigmoid+mul");
}

TEST(FuseOps, RowsTakeTheWorkAroundThem) {
  TestGraph t;
  Value* x = t.in("x", {3, 8});
  Value* a = t.op("a", "Add", {x, t.in("r", {3, 8})});
  Value* m = t.op("m", "ReduceMax", {a, t.ints("axes", {1})});
  Value* e = t.op("e", "Exp", {t.op("d", "Sub", {a, m})});
  Value* s = t.op("s", "ReduceSum", {e, t.ints("axes2", {1})});
  Value* y = t.op("y", "Div", {e, s});
  EXPECT_EQ(kernels_of(after_passes(t.out({y}), kFuse, 1e-6)), "add+reduce_max+sub+exp+reduce_sum+div");
}

TEST(FuseOps, RowsOfOtherAxesStayApart) {
  TestGraph t;
  Value* x = t.in("x", {3, 8});
  Value* a = t.op("a", "ReduceSum", {x, t.ints("axes", {1})});
  Value* b = t.op("b", "ReduceSum", {t.op("q", "Mul", {x, a}), t.ints("axes2", {0})});
  EXPECT_EQ(kernels_of(after_passes(t.out({b}), kFuse)), "reduce_sum+mul reduce_sum");
}

TEST(FuseOps, APoolReadsItsOperandOnce) {
  TestGraph t;
  Value* r = t.op("r", "Exp", {t.in("x", {1, 2, 6, 6})});
  Value* p = t.op("p", "MaxPool", {r}, {{"kernel_shape", std::vector<int64_t>{3, 3}}});
  EXPECT_EQ(kernels_of(after_passes(t.out({t.op("y", "Neg", {p})}), kFuse, 1e-6)), "exp max_pool+neg");
}

TEST(FuseOps, ContractionsReadThroughTranspositions) {
  TestGraph t;
  Value* k = t.op("k", "Transpose", {t.in("x", {2, 5, 4})}, {{"perm", std::vector<int64_t>{0, 2, 1}}});
  Value* y = t.op("y", "MatMul", {t.in("q", {2, 3, 4}), k});
  EXPECT_EQ(kernels_of(after_passes(t.out({y}), kFuse)), "transpose+matmul");
}

TEST(FuseOps, NoJoinMakesACycle) {
  // s needs a, and m needs a; s joined with a would be computed before m, which it reads too.
  TestGraph t;
  Value* a = t.op("a", "Relu", {t.in("x", {4, 4})});
  Value* m = t.op("m", "MatMul", {a, t.weight("w", {4, 4})});
  Value* n = t.op("n", "MatMul", {m, t.weight("v", {4, 4})});
  Value* s = t.op("s", "Add", {a, n});
  EXPECT_EQ(kernels_of(after_passes(t.out({s}), kFuse)), "relu matmul matmul+add");
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
}  // namespace tc::fuse_ops_test
