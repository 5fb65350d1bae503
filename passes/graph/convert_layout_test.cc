#include "passes/graph/passes.h"
#include "passes/graph/rewrite.h"
#include "passes/graph/test_graph.h"

namespace tc::convert_layout_test {
namespace {

const std::vector<void (*)(Graph&, PassContext&)> kLayout = {convert_layout, simplify_expr, eliminate_identity};

Attrs same_pads() { return {{"pads", std::vector<int64_t>{1, 1, 1, 1}}}; }
Attrs kernel2() { return {{"kernel_shape", std::vector<int64_t>{2, 2}}, {"strides", std::vector<int64_t>{2, 2}}}; }

TEST(ConvertLayout, TransposesStayAtTheBorders) {
  TestGraph t;
  Value* c = t.op("c", "Conv", {t.in("x", {1, 3, 6, 6}), t.weight("w", {4, 3, 3, 3})}, same_pads());
  Value* r = t.op("r", "Relu", {c});
  Value* d = t.op("d", "Conv", {r, t.weight("w2", {4, 4, 3, 3}), t.weight("b2", {4})}, same_pads());
  Value* a = t.op("a", "Add", {d, r});
  Value* y = t.op("y", "MaxPool", {a}, kernel2());
  const Graph g = after_passes(t.out({y}), kLayout);
  EXPECT_EQ(ops_of(g), "Transpose Conv Relu Conv Add MaxPool Transpose");
  EXPECT_EQ(to_text(g.nodes().back()->inputs[0]->type), "f32[1,3,3,4]");
  EXPECT_EQ(g.outputs()[0]->name, ModelText("y"));
}

TEST(ConvertLayout, ConstantsAndGatesBroadcast) {
  TestGraph t;
  Value* c = t.op("c", "Conv", {t.in("x", {2, 3, 4, 4}), t.weight("w", {4, 3, 1, 1})});
  Value* m = t.op("m", "Mul", {c, t.weight("s", {4, 1, 1})});
  Value* h = t.op("h", "ReduceMean", {m, t.ints("axes", {2, 3})}, {{"keepdims", int64_t(1)}});
  Value* e = t.op("e", "Conv", {h, t.weight("w2", {4, 4, 1, 1})});
  Value* y = t.op("y", "Mul", {m, e});
  Value* z = t.op("z", "ReduceMean", {y, t.ints("axes2", {2, 3})}, {{"keepdims", int64_t(0)}});
  const Graph g = after_passes(t.out({z}), kLayout, 1e-6);
  EXPECT_EQ(ops_of(g), "Transpose Conv Mul ReduceMean Conv Mul ReduceMean");
}

TEST(ConvertLayout, NarrowGroupsStay) {
  const auto ops = [](int64_t channels, int64_t results, int64_t groups) {
    TestGraph t;
    Attrs attrs = same_pads();
    attrs["group"] = groups;
    Value* w = t.weight("w", {results, channels / groups, 3, 3});
    return ops_of(after_passes(t.out({t.op("y", "Conv", {t.in("x", {1, channels, 6, 6}), w}, attrs)}), kLayout));
  };
  EXPECT_EQ(ops(3, 3, 3), "Conv");   // a filter of each colour
  EXPECT_EQ(ops(8, 24, 8), "Conv");  // three results a channel
  EXPECT_EQ(ops(12, 4, 4), "Conv");  // one of three channels each
  for (const int64_t results : {4, 8}) EXPECT_EQ(ops(8, 2 * results, 2), "Transpose Conv Transpose");
  EXPECT_EQ(ops(4, 4, 4), "Transpose Conv Transpose");   // depthwise
  EXPECT_EQ(ops(32, 4, 2), "Transpose Conv Transpose");  // deep enough for vectors of what is summed
}

TEST(ConvertLayout, AxesMove) {
  TestGraph t;
  Value* c = t.op("c", "Conv", {t.in("x", {1, 3, 4, 6}), t.weight("w", {4, 3, 1, 1})});
  Value* d = t.op("d", "Concat", {c, t.op("s", "Softmax", {c}, {{"axis", int64_t(1)}})}, {{"axis", int64_t(-3)}});
  Value* p = t.op("p", "Pad", {d, t.ints("pads", {0, 1, 0, 2, 0, 0, 1, 0})});
  Value* s = t.op("sl", "Slice", {p, t.ints("from", {1, 2}), t.ints("to", {8, 5}), t.ints("which", {1, 3})});
  Value* z = t.op("z", "Resize", {s, nullptr, t.constant("scales", float_constant({4}, {1, 1, 2, 3}))},
                  {{"mode", std::string("nearest")}});
  Value* y = t.op("y", "Conv", {z, t.weight("w2", {2, 7, 1, 1})});
  const Graph g = after_passes(t.out({y}), kLayout, 1e-5);
  EXPECT_EQ(ops_of(g), "Transpose Conv Softmax Concat Pad Slice Resize Conv Transpose");
}

TEST(ConvertLayout, ScalesMove) {
  TestGraph t;
  Value* c = t.op("c", "Conv", {t.in("x", {1, 3, 4, 6}), t.weight("w", {4, 3, 1, 1})});
  Value* u = t.op("u", "Upsample", {c, t.constant("scales", float_constant({4}, {1, 1, 2.5f, 0.5f}))});
  Value* y = t.op("y", "Conv", {u, t.weight("w2", {2, 4, 1, 1})});
  const Graph g = after_passes(t.out({y}), kLayout, 1e-5);
  EXPECT_EQ(ops_of(g), "Transpose Conv Upsample Conv Transpose");
}

TEST(ConvertLayout, AFlatteningMovesTheMatrix) {
  TestGraph t;
  Value* c = t.op("c", "Conv", {t.in("x", {2, 3, 4, 5}), t.weight("w", {4, 3, 1, 1})});
  Value* f = t.op("f", "Reshape", {c, t.ints("s", {2, 80})});
  Value* y = t.op("y", "MatMul", {f, t.weight("m", {80, 3})});
  EXPECT_EQ(ops_of(after_passes(t.out({y}), kLayout)), "Transpose Conv Reshape MatMul");
}

TEST(ConvertLayout, PatchesAreRowsAlready) {
  TestGraph t;
  Value* c = t.op("c", "Conv", {t.in("x", {1, 3, 4, 4}), t.weight("w", {8, 3, 2, 2})},
                  {{"strides", std::vector<int64_t>{2, 2}}});
  Value* f = t.op("f", "Reshape", {c, t.ints("s", {1, 8, 4})});
  Value* y = t.op("y", "Transpose", {f}, {{"perm", std::vector<int64_t>{0, 2, 1}}});
  EXPECT_EQ(ops_of(after_passes(t.out({y}), kLayout)), "Transpose Conv Reshape");
}

TEST(ConvertLayout, IndicesInTheValueAndUnknownOperatorsStay) {
  TestGraph t;
  Value* c = t.op("c", "Conv", {t.in("x", {1, 3, 4, 4}), t.weight("w", {4, 3, 1, 1})});
  Value* y = t.op("y", "Trilu", {c});
  Value* z = t.op("z", "DepthToSpace", {c}, {{"blocksize", int64_t(2)}});  // knows both layouts
  EXPECT_EQ(ops_of(after_passes(t.out({y, z}), kLayout)), "Transpose Conv Transpose Trilu DepthToSpace Transpose");
}

// Axes of size 1 make these pointwise, and their equations would name other axes behind.
TEST(ConvertLayout, EquationsOverAxesOfSizeOneStay) {
  TestGraph t;
  Value* c = t.op("c", "Conv", {t.in("x", {1, 3, 1, 1}), t.weight("w", {2, 3, 1, 1})});
  Value* r = t.op("r", "Relu", {c});
  Value* y = t.op("y", "Einsum", {r, r}, {{"equation", std::string("ncij,ncji->ncij")}});
  Value* z = t.op("z", "Einsum", {r}, {{"equation", std::string("ncij->ncji")}});
  Value* u = t.op("u", "Einsum", {r, r}, {{"equation", std::string("ncij,ncij->ncij")}});
  const Graph g = after_passes(t.out({y, z, u}), {convert_layout});
  for (const auto& n : g.nodes()) {
    if (!n->is("Einsum")) continue;
    const bool is_pointwise = n->attr_string("equation", "") == "ncij,ncij->ncij";
    EXPECT_EQ(dims_of(n->inputs[0]), is_pointwise ? (Dims{1, 1, 1, 2}) : (Dims{1, 2, 1, 1}));
  }
}

TEST(ConvertLayout, OneAndThreeDimensions) {
  TestGraph t;
  Value* a = t.op("a", "Relu", {t.op("c", "Conv", {t.in("x", {1, 3, 8}), t.weight("w", {4, 3, 3})})});
  Value* b = t.op("b", "Relu", {t.op("d", "Conv", {t.in("v", {1, 2, 3, 4, 5}), t.weight("u", {2, 2, 2, 2, 2})})});
  const Graph g = after_passes(t.out({a, b}), kLayout);
  EXPECT_EQ(to_text(g.nodes().front()->outputs[0]->type), "f32[1,8,3]");
}

}  // namespace
}  // namespace tc::convert_layout_test
