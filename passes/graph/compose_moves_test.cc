#include "passes/graph/passes.h"
#include "passes/graph/test_graph.h"

namespace tc::compose_moves_test {
namespace {

using Ints = std::vector<int64_t>;
const std::vector<void (*)(Graph&, PassContext&)> kCompose = {to_functions, compose_moves};

TEST(ComposeMoves, HeadsOfAttentionAreOneMove) {
  TestGraph t;
  Value* x = t.op("x0", "Relu", {t.in("x", {2, 5, 12})});
  Value* s = t.op("s", "Slice", {x, t.ints("from", {4}), t.ints("to", {8}), t.ints("axis", {2})});
  Value* r = t.op("r", "Reshape", {s, t.ints("heads", {2, 5, 2, 2})});
  Value* y = t.op("y", "Transpose", {r}, {{"perm", Ints{0, 2, 1, 3}}});
  const Graph g = after_passes(t.out({y}), kCompose);
  EXPECT_EQ(kernels_of(g), "relu transpose");
  EXPECT_EQ(g.nodes().back()->origins, (std::vector<ModelText>{ModelText("s"), ModelText("r"), ModelText("y")}));
}

TEST(ComposeMoves, SharedMovesAreReadThrough) {
  TestGraph t;
  Value* a = t.op("a", "Transpose", {t.in("x", {4, 6})}, {{"perm", Ints{1, 0}}});
  Value* y = t.op("y", "Slice", {a, t.ints("f1", {0}), t.ints("t1", {2}), t.ints("ax", {0})});
  Value* z = t.op("z", "Slice", {a, t.ints("f2", {2}), t.ints("t2", {6}), t.ints("ax2", {0})});
  EXPECT_EQ(kernels_of(after_passes(t.out({y, z}), kCompose)), "slice slice");
}

TEST(ComposeMoves, WhatMovesNothingIsAReshape) {
  TestGraph t;
  Value* a = t.op("a", "Transpose", {t.in("x", {4, 6})}, {{"perm", Ints{1, 0}}});
  Value* y = t.op("y", "Transpose", {a}, {{"perm", Ints{1, 0}}});
  EXPECT_EQ(ops_of(after_passes(t.out({y}), kCompose)), "Reshape");
}

TEST(ComposeMoves, IndicesThatDivideStay) {
  TestGraph t;
  Value* a = t.op("a", "Transpose", {t.in("x", {4, 6})}, {{"perm", Ints{1, 0}}});
  Value* y = t.op("y", "Reshape", {a, t.ints("s", {3, 8})});
  EXPECT_EQ(ops_of(after_passes(t.out({y}), kCompose)), "tc.fused Reshape");
}

}  // namespace
}  // namespace tc::compose_moves_test
