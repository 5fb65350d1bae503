// canonicalize_ops, recognize_idioms, simplify_expr.
#include <cmath>

#include "passes/graph/passes.h"
#include "passes/graph/test_graph.h"

namespace tc::algebra_test {
namespace {

TEST(CanonicalizeOps, GemmIsMatMulAndAdd) {
  TestGraph t;
  Value* y =
      t.op("y", "Gemm", {t.in("x", {3, 4}), t.weight("w", {5, 4}), t.weight("b", {5})}, {{"transB", int64_t(1)}});
  const Graph g = after_passes(t.out({y}), {canonicalize_ops, fold_constant});
  EXPECT_EQ(ops_of(g), "MatMul Add");
  EXPECT_EQ(to_text(g.nodes().front()->inputs[1]->type), "f32[4,5]");
}

TEST(CanonicalizeOps, GemmWithAllItsAttributes) {
  TestGraph t;
  Value* y = t.op("y", "Gemm", {t.in("x", {4, 3}), t.in("w", {4, 5}), t.in("c", {3, 1})},
                  {{"transA", int64_t(1)}, {"alpha", 2.0f}, {"beta", 0.5f}});
  EXPECT_EQ(ops_of(after_passes(t.out({y}), {canonicalize_ops}, 1e-6)), "Transpose MatMul Mul Mul Add");
}

TEST(CanonicalizeOps, ShapesPoolsSumsAndSplits) {
  TestGraph t;
  Value* x = t.in("x", {2, 6, 4, 4});
  Value* p = t.op("p", "GlobalAveragePool", {x});
  Value* f = t.op("f", "Flatten", {p}, {{"axis", int64_t(1)}});
  auto parts = t.multi({"s0", "s1"}, "Split", {f, t.ints("sizes", {2, 4})}, {{"axis", int64_t(1)}});
  Value* m = t.op("m", "Mean", {parts[0], parts[0], t.op("d", "Div", {parts[0], t.scalar("four", 4)})});
  const Graph g = after_passes(t.out({m, parts[1]}), {canonicalize_ops}, 1e-6);
  EXPECT_EQ(ops_of(g), "ReduceMean Reshape Slice Slice Mul Add Add Div");
}

Value* erf_gelu(TestGraph& t, Value* x, bool half_first) {
  Value* e = t.op("e", "Erf", {t.op("d", "Div", {x, t.scalar("root2", std::sqrt(2.0))})});
  Value* one = t.op("one_plus", "Add", {e, t.scalar("one", 1)});
  Value* half = t.scalar("half", 0.5);
  if (half_first) return t.op("y", "Mul", {t.op("h", "Mul", {x, half}), one});
  return t.op("y", "Mul", {t.op("h", "Mul", {x, one}), half});
}

TEST(RecognizeIdioms, GeluWithErf) {
  for (const bool half_first : {false, true}) {
    TestGraph t;
    Value* y = erf_gelu(t, t.in("x", {2, 8}), half_first);
    EXPECT_EQ(ops_of(after_passes(t.out({y}), {recognize_idioms}, 1e-6)), "Gelu");
  }
}

TEST(RecognizeIdioms, OtherConstantsAreNoGelu) {
  TestGraph t;
  Value* x = t.in("x", {2, 8});
  Value* e = t.op("e", "Erf", {t.op("d", "Div", {x, t.scalar("root3", std::sqrt(3.0))})});
  Value* y =
      t.op("y", "Mul", {t.op("h", "Mul", {x, t.op("o", "Add", {e, t.scalar("one", 1)})}), t.scalar("half", 0.5)});
  EXPECT_EQ(ops_of(after_passes(t.out({y}), {recognize_idioms}, 1e-6)), "Div Erf Add Mul Mul");
}

TEST(RecognizeIdioms, GeluWithTanh) {
  TestGraph t;
  Value* x = t.in("x", {2, 8});
  Value* cube = t.op("cube", "Pow", {x, t.scalar("three", 3)});
  Value* inner = t.op("inner", "Add", {x, t.op("c", "Mul", {cube, t.scalar("k", 0.044715)})});
  Value* th = t.op("th", "Tanh", {t.op("s", "Mul", {inner, t.scalar("root", std::sqrt(2 / 3.14159265))})});
  Value* y =
      t.op("y", "Mul", {t.op("xb", "Mul", {x, t.op("o", "Add", {th, t.scalar("one", 1)})}), t.scalar("half", 0.5)});
  const Graph g = after_passes(t.out({y}), {recognize_idioms}, 1e-5);
  EXPECT_EQ(ops_of(g), "Gelu");
  EXPECT_EQ(g.nodes().front()->attr_string("approximate", ""), "tanh");
}

TEST(RecognizeIdioms, SwishAndHardSwish) {
  TestGraph t;
  Value* x = t.in("x", {2, 8});
  Value* s = t.op("s", "Mul", {t.op("g", "Sigmoid", {x}), x});
  Value* clip =
      t.op("clip", "Clip", {t.op("a", "Add", {s, t.scalar("three", 3)}), t.scalar("lo", 0), t.scalar("hi", 6)});
  Value* h = t.op("h", "Div", {t.op("m", "Mul", {s, clip}), t.scalar("six", 6)});
  EXPECT_EQ(ops_of(after_passes(t.out({h}), {recognize_idioms}, 1e-5)), "Swish HardSwish");
}

TEST(RecognizeIdioms, LayerNormalization) {
  TestGraph t;
  Value* x = t.in("x", {2, 3, 8});
  Value* d = t.op("d", "Sub", {x, t.op("mean", "ReduceMean", {x, t.ints("a1", {-1})})});
  Value* v = t.op("v", "ReduceMean", {t.op("sq", "Pow", {d, t.scalar("two", 2)}), t.ints("a2", {-1})});
  Value* q = t.op("q", "Div", {d, t.op("sd", "Sqrt", {t.op("ve", "Add", {v, t.scalar("eps", 0.25)})})});
  Value* y = t.op("y", "Add", {t.op("m", "Mul", {q, t.weight("gamma", {8})}), t.weight("beta", {8})});
  const Graph g = after_passes(t.out({y}), {recognize_idioms}, 1e-5);
  EXPECT_EQ(ops_of(g), "LayerNormalization");
  EXPECT_EQ(g.nodes().front()->attr_int("axis", 0), 2);
}

TEST(SimplifyExpr, OfTwoZerosTheOneOfTheResultsShapeStays) {
  for (const bool swapped : {false, true}) {
    TestGraph t;
    Value *row = t.ints("row", {0}), *zero = t.scalar("zero", 0, DType::I64);
    Value* sum = swapped ? t.op("sum", "Add", {zero, row}) : t.op("sum", "Add", {row, zero});
    const Graph g = after_passes(t.out({t.op("y", "Gather", {t.in("x", {4, 3}), sum})}), {simplify_expr});
    EXPECT_EQ(to_text(g.nodes().front()->inputs[1]->type), "i64[1]");
  }
}

TEST(SimplifyExpr, NeutralOperands) {
  TestGraph t;
  Value* v = t.in("x", {2, 3});
  v = t.op("a", "Mul", {t.scalar("one", 1), v});
  v = t.op("b", "Add", {v, t.scalar("zero", 0)});
  v = t.op("c", "Div", {v, t.scalar("one2", 1)});
  v = t.op("d", "Neg", {t.op("e", "Neg", {v})});
  v = t.op("y", "Relu", {t.op("r", "Relu", {v})});
  EXPECT_EQ(ops_of(after_passes(t.out({v}), {simplify_expr})), "Relu");
}

TEST(SimplifyExpr, ANeutralOperandThatBroadcastsStays) {
  TestGraph t;
  Value* one = t.constant("one", float_constant({1, 1, 1}, {1}));
  Value* y = t.op("y", "Mul", {t.in("x", {2, 3}), one});
  EXPECT_EQ(ops_of(after_passes(t.out({y}), {simplify_expr})), "Mul");
}

TEST(SimplifyExpr, StrictKeepsZeroAndCubes) {
  TestGraph t;
  Value* x = t.in("x", {3});
  Graph g = t.out({t.op("y", "Pow", {t.op("a", "Add", {x, t.scalar("zero", 0)}), t.scalar("three", 3)})});
  PassContext cx;
  cx.options.strict_fp = true;
  simplify_expr(g, cx);
  EXPECT_EQ(ops_of(g), "Add Pow");
  cx.options.strict_fp = false;
  simplify_expr(g, cx);
  EXPECT_EQ(ops_of(g), "Mul Mul");
}

TEST(SimplifyExpr, PairsOfConstantsTransposesReshapesCasts) {
  TestGraph t;
  Value* x = t.in("x", {2, 3, 4});
  Value* v = t.op("m2", "Mul", {t.op("m1", "Mul", {x, t.scalar("c1", 2)}), t.weight("c2", {4})});
  v = t.op("t2", "Transpose", {t.op("t1", "Transpose", {v}, {{"perm", std::vector<int64_t>{1, 2, 0}}})},
           {{"perm", std::vector<int64_t>{1, 0, 2}}});
  v = t.op("r2", "Reshape", {t.op("r1", "Reshape", {v, t.ints("s1", {8, 3})}), t.ints("s2", {0, 3, -1})});
  v = t.op("k2", "Cast", {t.op("k1", "Cast", {v}, {{"to", int64_t(DType::F64)}})}, {{"to", int64_t(DType::I32)}});
  const Graph g = after_passes(t.out({v}), {simplify_expr, fold_constant});
  EXPECT_EQ(ops_of(g), "Mul Transpose Reshape Cast");
}

TEST(SimplifyExpr, ACastThatLosesStays) {
  TestGraph t;
  Value* x = t.in("x", {4});
  Value* v = t.op("k2", "Cast", {t.op("k1", "Cast", {x}, {{"to", int64_t(DType::I8)}})}, {{"to", int64_t(DType::F32)}});
  EXPECT_EQ(ops_of(after_passes(t.out({v}), {simplify_expr})), "Cast Cast");
}

TEST(SimplifyExpr, ExpandIntoABroadcastGoes) {
  TestGraph t;
  Value* e = t.op("e", "Expand", {t.in("b", {1, 4}), t.ints("s", {3, 4})});
  EXPECT_EQ(ops_of(after_passes(t.out({t.op("y", "Add", {t.in("x", {3, 4}), e})}), {simplify_expr})), "Add");
}

}  // namespace
}  // namespace tc::algebra_test
