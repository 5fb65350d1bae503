#include "importer/model_parts.h"

#include <gtest/gtest.h>

#include "importer/test_import.h"
#include "ir/language/user_ops.h"

namespace tc::model_parts_test {
namespace {

using importer_testing::TestFolder;

constexpr const char* kHeader = "<ir_version: 10, opset_import: [\"\" : 21]>\n";

class ModelPartsTest : public testing::Test {
 protected:
  ModelParts parts_of(const std::string& graph, const ImportOptions& options = {}) {
    return ModelParts(folder_.write("m.onnxtxt", kHeader + graph), options, problems_);
  }
  /// The text of what is imported of a part's bytes.
  std::string imported(const std::string& bytes) {
    const auto r = importer_testing::import_file(folder_.write("part.onnx", bytes));
    EXPECT_EQ(r.problems, "");
    return r.text;
  }
  TestFolder folder_;
  Diagnostics problems_;
};

constexpr const char* kChain = R"(g (float[2,3] x) => (float[2,4] y) <float[3,4] w = {1,2,3,4,5,6,7,8,9,10,11,12}> {
    [first] a = Relu (x)  [second] b = MatMul (a, w)  [third] y = Neg (b) })";

TEST_F(ModelPartsTest, NodesHaveTypes) {
  const ModelParts p = parts_of(kChain);
  ASSERT_EQ(p.nodes().size(), 3u);
  EXPECT_EQ(p.nodes()[1].op, "MatMul");
  EXPECT_EQ(p.nodes()[1].name.raw(), "second");
  EXPECT_EQ(to_text(p.nodes()[1].types.at(0)), "f32[2,4]");
  EXPECT_EQ(p.outputs().at(0).raw(), "y");
}

TEST_F(ModelPartsTest, OthersOutputs) {
  const std::string text = imported(parts_of(kChain).with_outputs({ModelText("b"), ModelText("a")}));
  EXPECT_NE(text.find("MatMul"), std::string::npos) << text;
  EXPECT_EQ(text.find("Neg"), std::string::npos) << text;
}

TEST_F(ModelPartsTest, WhatNobodyMakesIsAnInputAndWhatNobodyReadsAnOutput) {
  const ModelParts p = parts_of(kChain);
  const std::string bytes = p.part({{false, true, false}});
  const ModelParts middle(folder_.write("middle.onnx", bytes), {}, problems_);
  ASSERT_EQ(middle.nodes().size(), 1u);
  EXPECT_EQ(middle.outputs().at(0).raw(), "b");
  EXPECT_EQ(middle.initializers().size(), 1u);
  EXPECT_NE(imported(bytes).find("(a: f32[2, 3])"), std::string::npos) << imported(bytes);
}

TEST_F(ModelPartsTest, OperatorsOfOtherDomainsGiveTypes) {
  ImportOptions options;
  std::vector<std::string> wrong;
  options.ops = user_ops({"my.tc", "op my.Twice(x: f32[N]) -> y: f32[N]\n  y[i] = x[i] * 2\n"}, {}, wrong);
  const std::string path = folder_.write(
      "ops.onnxtxt",
      "<ir_version: 10, opset_import: [\"\" : 21, \"my\" : 1, \"com.microsoft\" : 1]>\n"
      "g (float[3] x) => (float[3] y) { a = my.Twice (x)  b = com.microsoft.QuickGelu (a)  y = Neg (b) }");
  const ModelParts p(path, options, problems_);
  ASSERT_EQ(p.nodes().size(), 3u);
  EXPECT_EQ(to_text(p.nodes()[0].types.at(0)), "f32[3]");
  EXPECT_EQ(to_text(p.nodes()[1].types.at(0)), "f32[3]");
  const ModelParts last(folder_.write("last.onnx", p.part({{false, false, true}})), {}, problems_);
  EXPECT_EQ(last.nodes().size(), 1u);
}

TEST_F(ModelPartsTest, InitializersBecomeInputs) {
  const ModelParts p = parts_of(kChain);
  const ModelParts q(folder_.write("q.onnx", p.part({{false, true, true}, {ModelText("w")}})), {}, problems_);
  EXPECT_TRUE(q.initializers().empty());
}

TEST_F(ModelPartsTest, NothingWithoutOutputsOrTypes) {
  const ModelParts p = parts_of(kChain);
  EXPECT_EQ(p.part({{false, false, false}}), "");
  EXPECT_EQ(p.part({{true, true, true}, {}, {ModelText("y")}}), "");
  const ModelParts q = parts_of("g (float[2] x) => (float[2] y) { a = acme.Strange (x)  y = Neg (a) }");
  EXPECT_EQ(q.part({{false, true}}), "");
  EXPECT_NE(q.part({{true, false}}), "");
}

TEST_F(ModelPartsTest, SizesAreBound) {
  ImportOptions options;
  options.dims["n"] = 5;
  const ModelParts p = parts_of("g (float[n] x) => (float[n] y) { a = Exp (x)  y = Neg (a) }", options);
  EXPECT_TRUE(p.bound());
  EXPECT_EQ(to_text(p.nodes()[0].types.at(0)), "f32[5]");
  EXPECT_FALSE(parts_of("g (float[n] x) => (float[n] y) { a = Exp (x)  y = Neg (a) }").bound());
}

// What a body reads from outside counts as read by its node.
TEST_F(ModelPartsTest, BodiesReadFromOutside) {
  const ModelParts p = parts_of(R"(g (bool c, float[3] x) => (float[3] y) { a = Neg (x)
    y = If (c) <then_branch = t () => (float[3] u) { u = Relu (a) }, else_branch = e () => (float[3] v) { v = Exp (a) }> })");
  EXPECT_EQ(p.nodes()[1].bodies, 2);
  const std::string text = imported(p.part({{false, true}}));
  EXPECT_NE(text.find("a: f32[3]) -> (y)"), std::string::npos) << text;
}

TEST_F(ModelPartsTest, ProblemsOfReadingAreReported) {
  const ModelParts p(folder_.path("none.onnx"), {}, problems_);
  EXPECT_TRUE(problems_.has_errors());
  EXPECT_TRUE(p.nodes().empty());
}

}  // namespace
}  // namespace tc::model_parts_test
