#include "passes/graph/passes.h"
#include "passes/graph/test_graph.h"

namespace tc::fold_scale_axis_test {
namespace {

Attrs pads1() { return {{"pads", std::vector<int64_t>{1, 1, 1, 1}}}; }

TEST(FoldScaleAxis, BatchNormalizationDisappearsInTheConvolution) {
  TestGraph t;
  Value* c = t.op("c", "Conv", {t.in("x", {1, 3, 5, 5}), t.weight("w", {4, 3, 3, 3})}, pads1());
  Value* y = t.op("y", "BatchNormalization",
                  {c, t.weight("scale", {4}), t.weight("b", {4}), t.weight("mean", {4}), t.weight("var", {4}, 1, 4)});
  const Graph g = after_passes(t.out({y}), {simplify_inference, fold_constant, fold_scale_axis}, 1e-5);
  EXPECT_EQ(ops_of(g), "Conv");
  EXPECT_EQ(g.nodes().front()->inputs.size(), 3u);
  EXPECT_EQ(g.nodes().front()->origins, (std::vector<ModelText>{ModelText("c"), ModelText("y")}));
}

TEST(FoldScaleAxis, ConvolutionWithBiasGroupsAndScalars) {
  TestGraph t;
  Value* c = t.op("c", "Conv", {t.in("x", {1, 4, 5, 5}), t.weight("w", {4, 1, 3, 3}), t.weight("b", {4})},
                  {{"group", int64_t(4)}});
  Value* m = t.op("m", "Mul", {t.weight("s", {4, 1, 1}), c});
  Value* a = t.op("a", "Add", {m, t.scalar("k", 2)});
  EXPECT_EQ(ops_of(after_passes(t.out({a}), {fold_scale_axis}, 1e-6)), "Conv");
}

TEST(FoldScaleAxis, ConstantsAlongOtherAxesStay) {
  TestGraph t;
  Value* c = t.op("c", "Conv", {t.in("x", {1, 3, 4, 4}), t.weight("w", {4, 3, 1, 1})});
  Value* y = t.op("y", "Mul", {c, t.weight("s", {4})});  // along the last axis, not the channels
  EXPECT_EQ(ops_of(after_passes(t.out({y}), {fold_scale_axis})), "Conv Mul");
}

TEST(FoldScaleAxis, AValueWithAnotherUseStays) {
  TestGraph t;
  Value* c = t.op("c", "Conv", {t.in("x", {1, 3, 4, 4}), t.weight("w", {4, 3, 1, 1})});
  Value* y = t.op("y", "Mul", {c, t.weight("s", {4, 1, 1})});
  EXPECT_EQ(ops_of(after_passes(t.out({y, c}), {fold_scale_axis})), "Conv Mul");
}

TEST(FoldScaleAxis, MatMulAroundItsBias) {
  TestGraph t;
  Value* m = t.op("m", "MatMul", {t.in("x", {2, 3, 4}), t.weight("w", {4, 5})});
  Value* y = t.op("y", "Mul", {t.op("a", "Add", {m, t.weight("b", {5})}), t.weight("s", {5})});
  EXPECT_EQ(ops_of(after_passes(t.out({y}), {fold_scale_axis}, 1e-6)), "MatMul Add");
}

TEST(FoldScaleAxis, ScalesBeforeTheContraction) {
  TestGraph t;
  Value* x = t.op("xs", "Mul", {t.in("x", {1, 3, 5, 5}), t.weight("s", {3, 1, 1})});
  Value* y = t.op("y", "Conv", {x, t.weight("w", {4, 3, 3, 3})}, pads1());
  Value* v = t.op("vs", "Mul", {t.in("v", {2, 4}), t.weight("sv", {4})});
  Value* z = t.op("z", "MatMul", {v, t.weight("wm", {4, 5})});
  EXPECT_EQ(ops_of(after_passes(t.out({y, z}), {fold_scale_axis}, 1e-6)), "Conv MatMul");
}

TEST(FoldScaleAxis, ScalarsMoveBehindAProductOfComputedMatrices) {
  TestGraph t;
  Value* q = t.op("qs", "Mul", {t.in("q", {2, 3, 4}), t.scalar("c1", 0.5)});
  Value* k = t.op("ks", "Mul", {t.scalar("c2", 2), t.in("k", {2, 4, 5})});
  const Graph g = after_passes(t.out({t.op("y", "MatMul", {q, k})}), {fold_scale_axis}, 1e-6);
  EXPECT_EQ(ops_of(g), "MatMul Mul");
}

TEST(FoldScaleAxis, StrictKeepsTheModelsOrder) {
  TestGraph t;
  Value* c = t.op("c", "Conv", {t.in("x", {1, 3, 4, 4}), t.weight("w", {4, 3, 1, 1})});
  Graph g = t.out({t.op("y", "Mul", {c, t.weight("s", {4, 1, 1})})});
  PassContext cx;
  cx.options.strict_fp = true;
  fold_scale_axis(g, cx);
  EXPECT_EQ(ops_of(g), "Conv Mul");
}

}  // namespace
}  // namespace tc::fold_scale_axis_test
