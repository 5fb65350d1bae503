#include <gtest/gtest.h>

#include "importer/context.h"
#include "importer/test_import.h"

namespace tc::dead_nodes_test {
namespace {

using importer_testing::import_text;
using importer_testing::Imported;

const std::string kHeader = "<ir_version: 8, opset_import: [\"\" : 17, \"other\" : 1]>\n";

Imported import_without_frobnicate(const std::string& model) {
  return import_text(kHeader + model,
                     {.has_row = [](std::string_view, std::string_view op) { return op != "Frobnicate"; }});
}

TEST(DeadNodes, WhatNobodyReadsNeedsNoSupport) {
  const Imported m =
      import_without_frobnicate("g (float[2] x) => (float[2] y) { a = other.Frobnicate(x)  b = Neg(a)  y = Relu(x) }");
  EXPECT_EQ(m.problems, "");
  EXPECT_EQ(m.graph.num_nodes(), 1u);
}

TEST(DeadNodes, BodiesHaveThemToo) {
  const Imported m = import_without_frobnicate(
      "g (bool c, float[2] x) => (float[2] y) { d = other.Frobnicate(x)  k = Abs(x)  y = If (c) <then_branch = t () => "
      "(float[2] a) { f = other.Frobnicate(d)  a = Neg(k) }, else_branch = e () => (float[2] b) { b = Neg(x) }> }");
  EXPECT_EQ(m.problems, "");
  EXPECT_EQ(m.graph.num_nodes(), 2u);
}

TEST(DeadNodes, WhatOnlyABodyReadsIsAlive) {
  const Imported m = import_without_frobnicate(
      "g (bool c, float[2] x) => (float[2] y) { d = other.Frobnicate(x)  y = If (c) <then_branch = t () => "
      "(float[2] a) { a = Neg(d) }, else_branch = e () => (float[2] b) { b = Neg(x) }> }");
  EXPECT_EQ(m.exit, ExitCode::Unsupported);
}

TEST(DeadNodes, FunctionsThatNobodyCallsNeedNoSupport) {
  const Imported m = import_without_frobnicate(
      "g (float[2] x) => (float[2] y) { y = Relu(x) }\n"
      "<domain: \"local\", opset_import: [\"\" : 17, \"other\" : 1]> F (a) => (b) { b = other.Frobnicate(a) }");
  EXPECT_EQ(m.problems, "");
}

TEST(Reasons, SayWhatAPersonCanUse) {
  using importer::reason_of;
  EXPECT_EQ(reason_of("/build/onnx/version_converter/adapters/x.h:33: adapt: Assertion `a == b` failed: Input B is not "
                      "broadcastable"),
            "Input B is not broadcastable");
  EXPECT_EQ(reason_of("/build/ir.h:33: output: Assertion `outputs_.size() == 1` failed."), "it does not say why");
  EXPECT_EQ(
      reason_of("[ShapeInferenceError] (op_type:Add, node name: n): [ShapeInferenceError] Incompatible dimensions"),
      "node \"n\" (Add): Incompatible dimensions");
  EXPECT_EQ(reason_of("(op_type:Add): [TypeInferenceError] other"), "(op_type:Add): other");
  EXPECT_EQ(reason_of("map::at"), "it does not say why");
  EXPECT_EQ(reason_of("vector::_M_range_check: __n (which is 3) >= this->size() (which is 2)"), "it does not say why");
  EXPECT_EQ(reason_of("bad shape at /a/b/shape.cc:17 axis 3"), "bad shape at axis 3");
  EXPECT_EQ(reason_of(""), "it does not say why");
}

}  // namespace
}  // namespace tc::dead_nodes_test
