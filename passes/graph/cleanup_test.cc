// fold_constant, dead_code, eliminate_common_subexpr, eliminate_identity, simplify_inference.
#include "passes/graph/passes.h"
#include "passes/graph/test_graph.h"

namespace tc::cleanup_test {
namespace {

TEST(FoldConstant, FoldsChainsOfConstants) {
  TestGraph t;
  Value* s = t.op("s", "Sqrt", {t.op("a", "Add", {t.weight("w", {4}, 1, 5), t.scalar("e", 0.5)})});
  Value* y = t.op("y", "Div", {t.in("x", {2, 4}), s});
  const Graph g = after_passes(t.out({y}), {fold_constant});
  EXPECT_EQ(ops_of(g), "Div");
  EXPECT_EQ(g.nodes().front()->inputs[1]->name, ModelText("s"));
}

TEST(FoldConstant, KeepsWhatWouldGrowBeyondTheBudget) {
  TestGraph t;
  Value* big = t.op("big", "Expand", {t.weight("w", {1, 8}), t.ints("shape", {64, 8})});
  Graph g = t.out({t.op("y", "Add", {t.in("x", {64, 8}), big})});
  PassContext cx;
  cx.options.fold_limit_bytes = 512;
  fold_constant(g, cx);
  EXPECT_EQ(ops_of(g), "Expand Add");
  cx.options.fold_limit_bytes = 64 * 8 * 4;
  fold_constant(g, cx);
  EXPECT_EQ(ops_of(g), "Add");
}

TEST(FoldConstant, NamesTheNodeThatCannotBeComputed) {
  TestGraph t;
  Value* row = t.op("row", "Gather", {t.weight("w", {4, 3}), t.ints("i", {1, 9})});
  Graph g = t.out({t.op("y", "Add", {t.in("x", {2, 3}), row})});
  PassContext cx;
  try {
    fold_constant(g, cx);
    FAIL() << "the table has four rows";
  } catch (const Error& e) {
    EXPECT_EQ(e.diagnostic().code, "TC0503");
    EXPECT_EQ(e.diagnostic().loc.op, "Gather");
    EXPECT_EQ(e.diagnostic().loc.node, "row");
  }
}

TEST(FoldConstant, LeavesRandomOperatorsAlone) {
  TestGraph t;
  Value* like = t.weight("w", {4});
  Node* n = t.g.append("Bernoulli", {like}, {ModelText("r")});
  t.g.set_type(n->outputs[0], type_of(DType::F32, {4}));
  Graph g = t.out({n->outputs[0]});
  PassContext cx;
  fold_constant(g, cx);
  EXPECT_EQ(ops_of(g), "Bernoulli");
}

TEST(DeadCode, RemovesChainsAndConstantsButNoInputs) {
  TestGraph t;
  Value* x = t.in("x", {4});
  t.in("unused", {4});
  t.op("b", "Add", {t.op("a", "Relu", {x}), t.weight("w", {4})});
  const Graph g = after_passes(t.out({t.op("y", "Neg", {x})}), {dead_code});
  EXPECT_EQ(ops_of(g), "Neg");
  EXPECT_EQ(g.inputs().size(), 2u);
  EXPECT_EQ(to_text(g).find("const"), std::string::npos);
}

TEST(DeadCode, DropsSingleOutputs) {
  TestGraph t;
  auto top = t.multi({"v", "i"}, "TopK", {t.in("x", {6}), t.ints("k", {2})});
  const Graph g = after_passes(t.out({top[0]}), {dead_code});
  EXPECT_EQ(g.nodes().front()->outputs[1], nullptr);
}

TEST(EliminateCommonSubexpr, MergesEqualNodesAndConstants) {
  TestGraph t;
  Value* x = t.in("x", {4});
  Value* a = t.op("a", "Add", {x, t.constant("c1", float_constant({4}, {1, 2, 3, 4}))});
  Value* b = t.op("b", "Add", {x, t.constant("c2", float_constant({4}, {1, 2, 3, 4}))});
  Value* c = t.op("c", "Add", {x, t.constant("c3", float_constant({4}, {1, 2, 3, 5}))});
  Value* y = t.op("y", "Mul", {t.op("m", "Mul", {a, b}), c});
  const Graph g = after_passes(t.out({y}), {eliminate_common_subexpr});
  EXPECT_EQ(ops_of(g), "Add Add Mul Mul");
  EXPECT_EQ(g.nodes().front()->origins, (std::vector<ModelText>{ModelText("a"), ModelText("b")}));
}

TEST(EliminateCommonSubexpr, AttributesTellNodesApart) {
  TestGraph t;
  Value* x = t.in("x", {4, 4});
  Value* a = t.op("a", "Softmax", {x}, {{"axis", int64_t(0)}});
  Value* b = t.op("b", "Softmax", {x}, {{"axis", int64_t(1)}});
  EXPECT_EQ(ops_of(after_passes(t.out({t.op("y", "Add", {a, b})}), {eliminate_common_subexpr})), "Softmax Softmax Add");
}

TEST(EliminateCommonSubexpr, OutputsKeepTheirNames) {
  TestGraph t;
  Value* x = t.in("x", {4});
  const Graph g = after_passes(t.out({t.op("a", "Relu", {x}), t.op("b", "Relu", {x})}), {eliminate_common_subexpr});
  EXPECT_EQ(ops_of(g), "Relu Identity");
}

TEST(EliminateIdentity, RemovesWhatCopies) {
  TestGraph t;
  Value* x = t.in("x", {2, 3});
  Value* v = t.op("a", "Identity", {x});
  v = t.op("b", "Transpose", {v}, {{"perm", std::vector<int64_t>{0, 1}}});
  v = t.op("c", "Reshape", {v, t.ints("s", {2, -1})});
  v = t.op("d", "Cast", {v}, {{"to", int64_t(DType::F32)}});
  v = t.op("e", "Concat", {v}, {{"axis", int64_t(0)}});
  v = t.op("y", "Relu", {v});
  EXPECT_EQ(ops_of(after_passes(t.out({v}), {eliminate_identity})), "Relu");
}

TEST(EliminateIdentity, AnOutputTakesItsNameAlong) {
  TestGraph t;
  const Graph g =
      after_passes(t.out({t.op("y", "Identity", {t.op("a", "Relu", {t.in("x", {4})})})}), {eliminate_identity});
  EXPECT_EQ(ops_of(g), "Relu");
  EXPECT_EQ(g.outputs()[0]->name, ModelText("y"));
}

TEST(EliminateIdentity, AnInputThatIsAnOutputKeepsItsCopy) {
  TestGraph t;
  EXPECT_EQ(ops_of(after_passes(t.out({t.op("y", "Identity", {t.in("x", {4})})}), {eliminate_identity})), "Identity");
}

TEST(SimplifyInference, BatchNormalizationIsAMultiplicationAndAnAddition) {
  TestGraph t;
  Value* y = t.op("y", "BatchNormalization",
                  {t.in("x", {2, 3, 4, 4}), t.weight("scale", {3}), t.weight("b", {3}), t.weight("mean", {3}),
                   t.weight("var", {3}, 1, 4)});
  const Graph g = after_passes(t.out({y}), {simplify_inference, fold_constant}, 1e-5);
  EXPECT_EQ(ops_of(g), "Mul Add");
  EXPECT_EQ(to_text(g.nodes().front()->inputs[1]->type), "f32[3,1,1]");
  EXPECT_EQ(g.outputs()[0]->name, ModelText("y"));
}

TEST(SimplifyInference, DropoutIsItsOperand) {
  TestGraph t;
  Value* d = t.op("d", "Dropout", {t.in("x", {4})});
  EXPECT_EQ(ops_of(after_passes(t.out({t.op("y", "Relu", {d})}), {simplify_inference})), "Relu");
}

}  // namespace
}  // namespace tc::cleanup_test
