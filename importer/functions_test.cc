// Model-local functions and definitions of operators by other operators.
#include <gtest/gtest.h>

#include "importer/test_import.h"

namespace tc::functions_test {
namespace {

using importer_testing::import_text;
using importer_testing::Imported;

TEST(InlineFunctions, BodyReplacesTheCall) {
  const Imported m = import_text(R"(<ir_version: 8, opset_import: ["" : 17, "my" : 1]>
net (float[3] x) => (float[3] y) { [act] y = my.silu(x) }
<domain: "my", opset_import: ["" : 17]>
silu (a) => (b) { s = Sigmoid(a)  b = Mul(a, s) })");
  EXPECT_EQ(m.problems, "");
  EXPECT_EQ(m.text, R"(graph net(x: f32[3]) -> (y) {
  "act/s": f32[3] = Sigmoid(x) from "act/Sigmoid"
  y: f32[3] = Mul(x, "act/s") from "act/Mul"
}
)");
}

TEST(InlineFunctions, AttributesDefaultsAndAbsentOperands) {
  const Imported m = import_text(R"(<ir_version: 9, opset_import: ["" : 17, "my" : 1]>
net (float[3] x) => (float[3] y, float[3] z) {
  [p] y = my.f <alpha = 2.0> (x)
  [q] z = my.f <alpha = 3.0, beta = 5.0> (x)
}
<domain: "my", opset_import: ["" : 17]>
f <alpha, beta: float = 4.0> (a, low) => (b) {
  t = LeakyRelu <alpha: float = @alpha> (a)
  u = Elu <alpha: float = @beta> (t)
  b = Clip(u, low)
})");
  EXPECT_EQ(m.problems, "");
  std::vector<float> alphas;
  for (const auto& n : m.graph.nodes())
    if (n->op != "Clip") alphas.push_back(n->attr_float("alpha", 0));
  EXPECT_EQ(alphas, (std::vector<float>{2, 4, 3, 5}));
  const Node& clip = *m.graph.nodes().back();
  EXPECT_EQ(clip.inputs.at(1), nullptr);
}

/// A convolution whose groups and order of axes a call of "f" says.
std::string grouped(const std::string& attributes) {
  return R"(<ir_version: 9, opset_import: ["" : 17, "my" : 1]>
net (float[1,2,3,3] x, float[2,1,1,1] w) => (y) { [p] y = my.f <)" +
         attributes + R"(> (x, w) }
<domain: "my", opset_import: ["" : 17]>
f <groups, order, keep: int = 1> (x, w) => (b) {
  t = Conv <group: int = @groups> (x, w)
  u = Transpose <perm: ints = @order> (t)
  b = ReduceMax <axes = [0], keepdims: int = @keep> (u)
})";
}

TEST(InlineFunctions, AttributesOfTheCallAreInTheirRanges) {
  const Imported m = import_text(grouped("groups = 2, order = [0, 2, 3, 1], keep = 0"));
  EXPECT_EQ(m.problems, "");
  EXPECT_EQ(m.graph.nodes().front()->attr_int("group", 1), 2);
  for (const char* wrong : {"groups = 0, order = [0, 2, 3, 1]", "groups = 2, order = [0, 2, 2, 1]",
                            "groups = 2, order = [0, 2, 3, 1], keep = 3"})
    EXPECT_NE(import_text(grouped(wrong)).problems.find("TC0117"), std::string::npos) << wrong;
  EXPECT_NE(import_text(grouped("groups = 2.0, order = [0, 2, 3, 1]")).problems.find("TC0143"), std::string::npos);
}

TEST(InlineFunctions, NestedCallsAndCallsInBodies) {
  const Imported m = import_text(R"(<ir_version: 8, opset_import: ["" : 17, "my" : 1]>
net (bool c, float[3] x) => (float[3] y) {
  y = If (c) <then_branch = t () => (float[3] a) { a = my.outer(x) }, else_branch = e () => (float[3] b) { b = Neg(x) }>
}
<domain: "my", opset_import: ["" : 17, "my" : 1]>
outer (a) => (b) { t = my.inner(a)  b = my.inner(t) }
<domain: "my", opset_import: ["" : 17]>
inner (a) => (b) { t = Abs(a)  b = Neg(t) })");
  EXPECT_EQ(m.problems, "");
  const Graph& then_region = *m.graph.nodes().front()->regions[0];
  EXPECT_EQ(then_region.num_nodes(), 4u);
}

TEST(InlineFunctions, OutputThatIsAnInputIsCopied) {
  const Imported m = import_text(R"(<ir_version: 8, opset_import: ["" : 17, "my" : 1]>
net (float[3] x) => (float[3] y) { y = my.same(x) }
<domain: "my", opset_import: ["" : 17]>
same (a) => (a) { unused = Abs(a) })");
  EXPECT_EQ(m.problems, "");
  EXPECT_EQ(m.graph.outputs()[0]->producer->op, "Identity");
}

TEST(InlineFunctions, BodyOfAnotherOperatorSetIsConverted) {
  // Opset 11's Unsqueeze has its axes as an attribute; the model itself is opset 17.
  const Imported m = import_text(R"(<ir_version: 8, opset_import: ["" : 17, "my" : 1]>
net (float[3] x) => (float[1,3] y) { y = my.up(x) }
<domain: "my", opset_import: ["" : 11]>
up (a) => (b) { b = Unsqueeze <axes = [0]> (a) })");
  EXPECT_EQ(m.problems, "");
  const Node& last = *m.graph.nodes().back();
  EXPECT_EQ(last.op, "Unsqueeze");
  ASSERT_EQ(last.inputs.size(), 2u);
  EXPECT_EQ(to_text(last.outputs[0]->type), "f32[1,3]");
}

TEST(InlineFunctions, RecursionIsRefused) {
  const Imported m = import_text(R"(<ir_version: 8, opset_import: ["" : 17, "my" : 1]>
net (float[3] x) => (float[3] y) { y = my.f(x) }
<domain: "my", opset_import: ["" : 17, "my" : 1]>
f (a) => (b) { b = my.g(a) }
<domain: "my", opset_import: ["" : 17, "my" : 1]>
g (a) => (b) { b = my.f(a) })");
  EXPECT_EQ(m.exit, ExitCode::Rejected);
  EXPECT_NE(m.problems.find("error[TC0141] m.onnxtxt: function \"f\" calls itself"), std::string::npos) << m.problems;
}

/// A chain of functions, each calling the next one `times` times.
std::string chain(int depth, int times) {
  std::string model = R"(<ir_version: 8, opset_import: ["" : 17, "my" : 1]>
net (float[3] x) => (float[3] y) { y = my.f0(x) }
)";
  for (int i = 0; i < depth; ++i) {
    model += "<domain: \"my\", opset_import: [\"\" : 17, \"my\" : 1]>\nf" + std::to_string(i) + " (a) => (b) {";
    for (int k = 0; k < times; ++k) {
      const std::string op = i + 1 < depth ? "my.f" + std::to_string(i + 1) : "Neg";
      model += (k + 1 < times ? " t" + std::to_string(k + 1) : std::string(" b")) + " = " + op + "(" +
               (k == 0 ? std::string("a") : "t" + std::to_string(k)) + ") ";
    }
    model += "}\n";
  }
  return model;
}

TEST(InlineFunctions, DeepCallsEndAtTheLimit) {
  EXPECT_EQ(import_text(chain(100, 1)).problems, "");
  const Imported m = import_text(chain(101, 1));
  EXPECT_EQ(m.exit, ExitCode::Limit);
  EXPECT_NE(m.problems.find("error[TC0142]"), std::string::npos) << m.problems;
}

TEST(InlineFunctions, ExponentialGrowthEndsBeforeItStarts) {
  const Imported m = import_text(chain(60, 2));
  EXPECT_EQ(m.exit, ExitCode::Limit);
  EXPECT_NE(m.problems.find("grows beyond 1000000 nodes"), std::string::npos) << m.problems;
}

TEST(InlineFunctions, NamesStayUnique) {
  const Imported m = import_text(R"(<ir_version: 8, opset_import: ["" : 17, "my" : 1]>
net (float[3] x) => (float[3] y, float[3] z) { [a] y = my.f(x)  [a] z = my.f(y) }
<domain: "my", opset_import: ["" : 17]>
f (a) => (b) { t = Abs(a)  b = Neg(t) })");
  EXPECT_EQ(m.problems, "");
  EXPECT_EQ(m.graph.nodes().front()->outputs[0]->name.raw(), "a/t");
  EXPECT_EQ((*std::next(m.graph.nodes().begin(), 2))->outputs[0]->name.raw(), "a/t_1");
}

ImportOptions without(std::string op) {
  ImportOptions options;
  options.has_row = [op](std::string_view domain, std::string_view name) { return domain.empty() && name != op; };
  return options;
}

TEST(ExpandFunctions, OperatorWithoutARowBecomesItsDefinition) {
  const Imported m = import_text(R"(<ir_version: 8, opset_import: ["" : 17]>
net (float[3] x) => (float[3] y) { [h] y = HardSwish(x) })",
                                 without("HardSwish"));
  EXPECT_EQ(m.problems, "");
  ASSERT_EQ(m.graph.num_nodes(), 2u);
  EXPECT_EQ(m.graph.nodes().front()->op, "HardSigmoid");
  EXPECT_EQ(m.graph.nodes().front()->name.raw().substr(0, 2), "h/");
  EXPECT_EQ(to_text(m.graph.outputs()[0]->type), "f32[3]");
}

TEST(ExpandFunctions, DefinitionThatDependsOnTypes) {
  const Imported m = import_text(R"(<ir_version: 10, opset_import: ["" : 21]>
net (float16[2,4,6] x, float16[4] s, float16[4] b) => (float16[2,4,6] y) {
  y = GroupNormalization <num_groups = 2> (x, s, b)
})",
                                 without("GroupNormalization"));
  EXPECT_EQ(m.problems, "");
  EXPECT_GT(m.graph.num_nodes(), 3u);
  EXPECT_EQ(to_text(m.graph.outputs()[0]->type), "f16[2,4,6]");
}

TEST(ExpandFunctions, InsideABody) {
  const Imported m = import_text(R"(<ir_version: 8, opset_import: ["" : 17]>
net (bool c, float[3] x) => (float[3] y) {
  y = If (c) <then_branch = t () => (float[3] a) { a = Clip(x) }, else_branch = e () => (float[3] b) { b = Neg(x) }>
})",
                                 without("Clip"));
  EXPECT_EQ(m.problems, "");
  EXPECT_EQ(m.graph.nodes().front()->regions[0]->nodes().front()->op, "Identity");
}

}  // namespace
}  // namespace tc::functions_test
