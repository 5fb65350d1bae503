#include "importer/import.h"

#include <gtest/gtest.h>

#include "importer/test_import.h"

namespace tc::import_test {
namespace {

using importer_testing::import_text;
using importer_testing::Imported;

TEST(Import, SmallModel) {
  const Imported m = import_text(R"(<ir_version: 8, opset_import: ["" : 17]>
net (float[N,3] x) => (float[N,2] y)
<float[3,2] w = {1,2,3,4,5,6}>
{ h = MatMul(x, w)  y = Relu(h) })",
                                 {.dims = {{"N", 4}}});
  EXPECT_EQ(m.problems, "");
  EXPECT_EQ(m.text, R"(graph net(x: f32[4, 3]) -> (y) {
  w: f32[3, 2] = const [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]
  h: f32[4, 2] = MatMul(x, w)
  y: f32[4, 2] = Relu(h)
}
)");
}

TEST(Import, ConstantNodesOfEveryForm) {
  const Imported m = import_text(R"(<ir_version: 8, opset_import: ["" : 17]>
net (float[2] x) => (float[2] y, int64[2] i, float f, string[2] s, int64 k)
{
  a = Constant <value = float[2] {1.5, -2}> ()
  y = Add(x, a)
  i = Constant <value_ints = [3, -4]> ()
  f = Constant <value_float = 0.5> ()
  s = Constant <value_strings = ["p", "q"]> ()
  k = Constant <value_int = 7> ()
})");
  EXPECT_EQ(m.problems, "");
  ASSERT_EQ(m.graph.outputs().size(), 5u);
  ASSERT_TRUE(m.graph.outputs()[1]->is_constant());
  EXPECT_EQ(m.graph.outputs()[1]->constant->as_ints(), (std::vector<int64_t>{3, -4}));
  EXPECT_EQ(m.graph.outputs()[2]->constant->as_double(0), 0.5);
  EXPECT_EQ(m.graph.outputs()[3]->constant->strings, (std::vector<std::string>{"p", "q"}));
  EXPECT_EQ(m.graph.outputs()[4]->constant->as_int(0), 7);
  EXPECT_EQ(m.graph.num_nodes(), 1u);
}

TEST(Import, AttributesAndDefaults) {
  const Imported m = import_text(R"(<ir_version: 8, opset_import: ["" : 17]>
net (float[1,2,5,5] x, float[4,1,3,3] w) => (float[1,4,3,3] y) { y = Conv <group = 2> (x, w) })");
  EXPECT_EQ(m.problems, "");
  const Node& conv = *m.graph.nodes().front();
  EXPECT_EQ(conv.attr_int("group", 1), 2);
  EXPECT_EQ(conv.attr_string("auto_pad", ""), "NOTSET");  // the schema's default, filled in
}

TEST(Import, ConvertsToTheNewestOperatorSet) {
  // Softmax before opset 13 flattens: the converter says so with Flatten and Reshape. Unsqueeze takes axes as an input.
  const Imported m = import_text(R"(<ir_version: 7, opset_import: ["" : 11]>
net (float[2,3] x) => (float[2,1,3] y) { s = Softmax(x)  y = Unsqueeze <axes = [1]> (s) })");
  EXPECT_EQ(m.problems, "");
  const Node& last = *m.graph.nodes().back();
  EXPECT_EQ(last.op, "Unsqueeze");
  ASSERT_EQ(last.inputs.size(), 2u);
  EXPECT_EQ(last.inputs[1]->constant->as_ints(), std::vector<int64_t>{1});
  EXPECT_EQ(to_text(last.outputs[0]->type), "f32[2,1,3]");
}

TEST(Import, OldPReluSlopeBelongsToChannels) {
  const Imported m = import_text(R"(<ir_version: 3, opset_import: ["" : 6]>
net (float[2,3,4,4] x, float[3] slope) => (float[2,3,4,4] y) { y = PRelu(x, slope) })");
  EXPECT_EQ(m.problems, "");
  const Node& prelu = *m.graph.nodes().back();
  EXPECT_EQ(prelu.op, "PRelu");
  EXPECT_EQ(to_text(prelu.inputs[1]->type), "f32[3,1,1]");
}

TEST(Import, OldScanRunsOverTheBatchAxis) {
  // Scan of opset 8: every operand has a batch axis in front; the first input is the absent sequence length.
  const Imported m = import_text(R"(<ir_version: 3, opset_import: ["" : 8]>
net (float[2,3] s, float[2,5,3] x) => (float[2,3] last, float[2,5,3] all) {
  last, all = Scan <num_scan_inputs = 1, body = b (float[3] a, float[3] v) => (float[3] n, float[3] o)
    { n = Add(a, v)  o = Identity(n) }> ("", s, x)
})");
  EXPECT_EQ(m.problems, "");
  ASSERT_EQ(m.graph.num_nodes(), 1u);
  const Node& outer = *m.graph.nodes().front();
  EXPECT_EQ(outer.attr_int("num_scan_inputs", 0), 2);
  EXPECT_EQ(to_text(outer.outputs[0]->type), "f32[2,3]");
  EXPECT_EQ(to_text(outer.outputs[1]->type), "f32[2,5,3]");
  ASSERT_EQ(outer.regions.size(), 1u);
  const Node& inner = *outer.regions[0]->nodes().front();
  EXPECT_EQ(inner.op, "Scan");
  EXPECT_EQ(inner.attr_int("num_scan_inputs", 0), 1);
  EXPECT_EQ(to_text(inner.inputs[1]->type), "f32[5,3]");
}

TEST(Import, OnnxRuntimesRmsNormalization) {
  const Imported m = import_text(R"(<ir_version: 8, opset_import: ["" : 14]>
net (float[2,3] x, float[3] s) => (float[2,3] y) {
  y = SimplifiedLayerNormalization <axis = -1, epsilon = 0.001, stash_type = 1> (x, s)
})");
  ASSERT_EQ(m.problems, "");
  const Node& norm = *m.graph.nodes().front();
  EXPECT_TRUE(norm.is("RMSNormalization"));
  EXPECT_EQ(norm.attr_float("epsilon", 0), 0.001f);
  EXPECT_EQ(to_text(norm.outputs[0]->type), "f32[2,3]");
}

TEST(Import, ALinearClassifierWithoutInterceptsHasAsManyScoresAsLabels) {
  ImportOptions every;
  every.has_row = [](std::string_view, std::string_view) { return true; };
  const Imported m = import_text(R"(<ir_version: 8, opset_import: ["" : 17, "ai.onnx.ml" : 1]>
net (float[2,2] x) => (int64[2] l, float[2,3] p) {
  l, p = ai.onnx.ml.LinearClassifier <classlabels_ints = [0, 1, 2], coefficients = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]> (x)
})",
                                 every);
  EXPECT_EQ(m.problems, "");
}

TEST(Import, LayerNormalizationMayComeBeforeItsOperatorSet) {
  const Imported m = import_text(R"(<ir_version: 8, opset_import: ["" : 15]>
net (float[2,3] x, float[3] s, float[3] b) => (float[2,1,3] y) {
  n = LayerNormalization <axis = -1, epsilon = 0.001> (x, s, b)
  a = Constant <value_ints = [1]> ()
  y = Unsqueeze (n, a)
})");
  ASSERT_EQ(m.problems, "");
  const Node& norm = *m.graph.nodes().front();
  EXPECT_TRUE(norm.is("LayerNormalization"));
  EXPECT_EQ(norm.attr_float("epsilon", 0), 0.001f);
}

TEST(Import, BodiesAreClosedOverWhatTheyRead) {
  const Imported m = import_text(R"(<ir_version: 8, opset_import: ["" : 17]>
net (bool c, float[3] x) => (float[3] y)
<float[3] w = {1, 2, 3}>
{
  h = Relu(x)
  y = If (c) <
    then_branch = t () => (float[3] a) { a = Add(h, w) },
    else_branch = e () => (float[3] b) { b = Mul(x, h) }>
})");
  EXPECT_EQ(m.problems, "");
  const Node& node = *m.graph.nodes().back();
  ASSERT_EQ(node.op, "If");
  EXPECT_EQ(node.captures, 2);  // h and x; w is a constant and every body has its own
  ASSERT_EQ(node.inputs.size(), 3u);
  EXPECT_EQ(node.inputs[1]->name.raw(), "h");
  EXPECT_EQ(node.inputs[2]->name.raw(), "x");
  ASSERT_EQ(node.regions.size(), 2u);
  for (const auto& r : node.regions) {
    ASSERT_EQ(r->inputs().size(), 2u);
    EXPECT_EQ(to_text(r->inputs()[0]->type), "f32[3]");
  }
  EXPECT_EQ(node.regions[0]->nodes().front()->op, "Add");
  EXPECT_TRUE(node.regions[0]->nodes().front()->inputs[1]->is_constant());
}

TEST(Import, ThenBranchComesFirstWhateverTheFileSays) {
  const Imported m = import_text(R"(<ir_version: 8, opset_import: ["" : 17]>
net (bool c, float[3] x) => (float[3] y) {
  y = If (c) <else_branch = e () => (float[3] b) { b = Neg(x) }, then_branch = t () => (float[3] a) { a = Abs(x) }>
})");
  EXPECT_EQ(m.problems, "");
  EXPECT_EQ(m.graph.nodes().front()->regions[0]->nodes().front()->op, "Abs");
}

TEST(Import, LoopBodyGetsCapturesAfterItsOwnInputs) {
  const Imported m = import_text(R"(<ir_version: 8, opset_import: ["" : 17]>
net (int64 n, float[3] x, float[3] s0) => (float[3] s) {
  s = Loop (n, "", s0) <body = b (int64 i, bool c, float[3] a) => (bool d, float[3] r) { d = Identity(c)  r = Add(a, x) }>
})");
  EXPECT_EQ(m.problems, "");
  const Node& loop = *m.graph.nodes().front();
  EXPECT_EQ(loop.captures, 1);
  ASSERT_EQ(loop.inputs.size(), 4u);
  EXPECT_EQ(loop.inputs[1], nullptr);
  EXPECT_EQ(loop.inputs[3]->name.raw(), "x");
  ASSERT_EQ(loop.regions[0]->inputs().size(), 4u);
  EXPECT_EQ(loop.regions[0]->inputs()[3]->name.raw(), "x");
}

TEST(Import, NestedBodiesPassCapturesOn) {
  const Imported m = import_text(R"(<ir_version: 8, opset_import: ["" : 17]>
net (bool c, float[3] x) => (float[3] y) {
  y = If (c) <
    then_branch = t () => (float[3] a) {
      a = If (c) <then_branch = t2 () => (float[3] p) { p = Abs(x) }, else_branch = e2 () => (float[3] q) { q = Neg(x) }>
    },
    else_branch = e () => (float[3] b) { b = Identity(x) }>
})");
  EXPECT_EQ(m.problems, "");
  const Node& outer = *m.graph.nodes().front();
  EXPECT_EQ(outer.captures, 2);  // c (read by the inner If) and x
  const Node& inner = *outer.regions[0]->nodes().front();
  EXPECT_EQ(inner.captures, 1);
  EXPECT_EQ(inner.inputs[1]->producer, nullptr);
}

TEST(Import, InitializersThatAreInputsAreConstants) {
  const Imported m = import_text(R"(<ir_version: 3, opset_import: ["" : 9]>
net (float[2] x, float[2] w = {1, 2}) => (float[2] y) { y = Add(x, w) })");
  EXPECT_EQ(m.problems, "");
  EXPECT_EQ(m.graph.inputs().size(), 1u);
  EXPECT_TRUE(m.graph.nodes().front()->inputs[1]->is_constant());
}

TEST(Import, SequencesAndOptionals) {
  const Imported m = import_text(R"(<ir_version: 8, opset_import: ["" : 17]>
net (seq(float[3]) s, optional(float[3]) o, int64 i) => (float[3] y, bool h) {
  y = SequenceAt(s, i)
  h = OptionalHasElement(o)
})");
  EXPECT_EQ(m.problems, "");
  EXPECT_EQ(to_text(m.graph.inputs()[0]->type), "seq(f32[3])");
  EXPECT_EQ(to_text(m.graph.inputs()[1]->type), "optional(f32[3])");
  EXPECT_EQ(to_text(m.graph.outputs()[0]->type), "f32[3]");
}

TEST(Import, StatedElementsMakeTensorsOfLists) {
  const char* model = R"(<ir_version: 8, opset_import: ["" : 17]>
net (seq(float[N, 4]) s, optional(float) o, float[2] s_0) => (seq(float[N, 4]) t, bool h) {
  t = Identity(s)
  h = OptionalHasElement(o)
})";
  const Imported m = import_text(model, {.elements = {{"s", {true, {{3, 4}, {5, 4}}}}, {"o", {false, {}}}}});
  EXPECT_EQ(m.problems, "");
  ASSERT_EQ(m.graph.inputs().size(), 3u);
  EXPECT_EQ(m.graph.inputs()[0]->name.raw(), "s_0_1");  // s_0 is another input
  EXPECT_EQ(to_text(m.graph.inputs()[1]->type), "f32[5,4]");
  EXPECT_EQ(m.graph.nodes().front()->op, "SequenceConstruct");
  EXPECT_NE(import_text(model, {.elements = {{"s", {true, {{3, 5}}}}}}).problems.find("TC0152"), std::string::npos);
  EXPECT_NE(import_text(model, {.elements = {{"s", {false, {}}}}}).problems.find("TC0152"), std::string::npos);
  EXPECT_NE(import_text(model, {.elements = {{"x", {}}}}).problems.find("TC0151"), std::string::npos);
}

TEST(Import, NodesOutOfOrderAreSorted) {
  const Imported m = import_text(R"(<ir_version: 8, opset_import: ["" : 17]>
net (float[2] x) => (float[2] y) { y = Neg(b)  b = Abs(a)  a = Relu(x) })");
  EXPECT_EQ(m.exit, ExitCode::Ok);
  EXPECT_NE(m.problems.find("warning[TC0113]"), std::string::npos) << m.problems;
  EXPECT_EQ(m.graph.nodes().front()->op, "Relu");
  EXPECT_EQ(m.graph.nodes().back()->op, "Neg");
}

TEST(Import, DeclaredSizesInsideCountWhereNothingElseTellsThem) {
  const std::string model =
      "<ir_version: 8, opset_import: [\"\" : 17]> g (float[n, 6] x, int64[2] s) => (float[k] y, float[n, 6] z) "
      "<float[2, 3] t, float[4, 4] w> { t = Reshape(x, s)  u = Relu(t)  f = Constant <value_ints = [-1]> ()  "
      "y = Reshape(u, f)  w = Neg(x)  z = Abs(w) }";
  ImportOptions named, other;
  named.dims["n"] = 1;
  const Imported m = import_text(model, named);
  EXPECT_EQ(m.problems, "");
  EXPECT_NE(m.text.find("t: f32[2, 3] = Reshape"), std::string::npos) << m.text;
  EXPECT_NE(m.text.find("w: f32[1, 6] = Neg"), std::string::npos) << m.text;  // inference knows better
  // They are said of inputs of the model's own sizes.
  other.input_shapes["x"] = {1, 6};
  EXPECT_EQ(import_text(model, other).text.find("t: f32[2, 3]"), std::string::npos);
}

TEST(Import, NamedGraph) {
  const Imported m = import_text(R"(<ir_version: 8, opset_import: ["" : 17]>
net (float[2] x) => (float[2] y) { y = Neg(x) })",
                                 {.name = "other"});
  EXPECT_EQ(m.graph.name().raw(), "other");
}

TEST(Import, SmallNumbersOfEveryType) {
  const Imported m = import_text(R"(<ir_version: 10, opset_import: ["" : 21]>
net (float x) => (int4[3] a, float16[2] b, bool[2] c, uint64[1] d, int8[2] e, bfloat16[1] f, double[1] g, int4[1] h)
<int4[1] h = {14}, int4[3] a = {1, -2, 7}, float16[2] b = {15872, 16384}, bool[2] c = {1, 0}, uint64[1] d = {18446744073709551615},
 int8[2] e = {-128, 127}, bfloat16[1] f = {16256}, double[1] g = {0.1}> { y = Neg(x) })");
  EXPECT_EQ(m.problems, "");
  auto value = [&](int k) { return m.graph.outputs()[size_t(k)]->constant; };
  EXPECT_EQ(value(0)->as_ints(), (std::vector<int64_t>{1, -2, 7}));
  EXPECT_EQ(value(1)->as_double(0), 1.5);
  EXPECT_EQ(value(1)->as_double(1), 2.0);
  EXPECT_EQ(value(2)->as_ints(), (std::vector<int64_t>{1, 0}));
  EXPECT_EQ(value(3)->as<uint64_t>()[0], UINT64_MAX);
  EXPECT_EQ(value(4)->as_ints(), (std::vector<int64_t>{-128, 127}));
  EXPECT_EQ(value(5)->as_double(0), 1.0);
  EXPECT_EQ(value(6)->as_double(0), 0.1);
  EXPECT_EQ(value(7)->as_ints(), (std::vector<int64_t>{-2}));  // as libraries pack it
}

TEST(Import, EveryUnsupportedNodeIsNamedAtOnce) {
  ImportOptions options;
  options.has_row = [](std::string_view domain, std::string_view op) {
    return domain.empty() && op != "Det" && op != "Fancy";
  };
  const Imported m = import_text(R"(<ir_version: 8, opset_import: ["" : 17, "com.acme" : 3]>
net (float[2,2] x) => (float d, float[2,2] y) {
  [n1] d = Det(x)
  [n2] a = com.acme.Magic(x)
  [n3] b = Fancy(a)
  y = com.acme.Magic(b)
})",
                                 options);
  EXPECT_EQ(m.exit, ExitCode::Unsupported);
  EXPECT_NE(m.problems.find("node \"n1\" (Det): operator Det (opset 17) is not supported"), std::string::npos)
      << m.problems;
  EXPECT_NE(m.problems.find("node \"n2\" (Magic): operator Magic (domain \"com.acme\" version 3)"), std::string::npos);
  EXPECT_NE(m.problems.find("node \"n3\" (Fancy)"), std::string::npos);
  EXPECT_NE(m.problems.find("node of type Magic that makes \"y\""), std::string::npos);
  EXPECT_EQ(m.graph.num_nodes(), 0u);
}

TEST(ReadFacts, CountsWeightsInConstantNodes) {
  const importer_testing::TestFolder folder;
  Diagnostics problems;
  const ModelFacts f = read_facts(folder.write("m.onnxtxt", R"(<ir_version: 8, opset_import: ["" : 17]>
net (float[3] x) => (float[3] y) { w = Constant <value = float[3] {1,2,3}> ()  y = Add(x, w) })"),
                                  problems);
  EXPECT_EQ(f.parameters, 3);
}

TEST(ReadFacts, TellsWhatAModelDeclares) {
  const importer_testing::TestFolder folder;
  Diagnostics problems;
  const ModelFacts f = read_facts(folder.write("m.onnxtxt", R"(<ir_version: 8, opset_import: ["" : 17]>
net (float[N,3] x) => (float[N,2] y) <float[3,2] w = {1,2,3,4,5,6}> { h = MatMul(x, w)  y = Relu(h) })"),
                                  problems);
  ASSERT_EQ(f.inputs.size(), 1u);
  EXPECT_EQ(to_text(f.inputs[0].type), "f32[N,3]");
  EXPECT_EQ(f.parameters, 6);
  EXPECT_EQ(f.opsets.at(""), 17);
  EXPECT_EQ(f.operators.at("MatMul"), 1);
}

}  // namespace
}  // namespace tc::import_test
