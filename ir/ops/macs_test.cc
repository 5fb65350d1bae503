#include "ir/ops/macs.h"

#include <gtest/gtest.h>

#include "importer/test_import.h"
#include "passes/graph/passes.h"
#include "passes/test_target.h"

namespace tc::macs_test {
namespace {

/// After import, and again after all passes: fusion and layouts change nothing in what is multiplied.
int64_t macs_of(const std::string& model) {
  auto m = importer_testing::import_text("<ir_version: 10, opset_import: [\"\" : 21]>\n" + model);
  EXPECT_EQ(m.problems, "");
  TestTarget target;
  PassContext& cx = target.cx;
  dynamic_to_static(m.graph, cx);
  const int64_t before = multiply_accumulates(m.graph);
  std::string log;
  run_passes(graph_passes(), m.graph, cx, log);
  EXPECT_EQ(multiply_accumulates(m.graph), before) << to_text(m.graph);
  return before;
}

TEST(MultiplyAccumulates, ProductsOfMatrices) {
  EXPECT_EQ(macs_of("g (float[5, 2, 3] x, float[5, 3, 4] w) => (float[5, 2, 4] y) { y = MatMul(x, w) }"),
            5 * 2 * 3 * 4);
  EXPECT_EQ(
      macs_of("g (float[2, 3] x, float[4, 3] w, float[4] b) => (float[2, 4] y) { y = Gemm <transB = 1> (x, w, b) }"),
      2 * 3 * 4);
}

TEST(MultiplyAccumulates, Convolutions) {
  EXPECT_EQ(macs_of("g (float[1, 4, 8, 8] x, float[6, 2, 3, 3] w) => (float[1, 6, 8, 8] y) "
                    "{ y = Conv <group = 2, pads = [1, 1, 1, 1]> (x, w) }"),
            6 * 8 * 8 * 2 * 3 * 3);
}

TEST(MultiplyAccumulates, IntegersBehindConversions) {
  EXPECT_EQ(macs_of("g (uint8[2, 3] x, int8[3, 4] w) => (int32[2, 4] y) { y = MatMulInteger(x, w) }"), 2 * 3 * 4);
}

TEST(MultiplyAccumulates, OtherWorkIsNone) {
  EXPECT_EQ(macs_of("g (float[2, 3] x) => (float[2, 1] y) <int64[1] a = {1}> { b = Mul(x, x)  c = Relu(b)  y = "
                    "ReduceSum(c, a) }"),
            0);
}

TEST(MultiplyAccumulates, TheLongerBranch) {
  EXPECT_EQ(macs_of("g (bool c, float[2, 3] x, float[3, 4] w, float[4, 4] v) => (float[2, 4] y) { y = If (c) <"
                    "then_branch = t () => (float[2, 4] a) { a = MatMul(x, w) }, "
                    "else_branch = e () => (float[2, 4] b) { p = MatMul(x, w)  q = MatMul(p, v)  b = Add(p, q) }> }"),
            2 * 3 * 4 + 2 * 4 * 4);
}

TEST(MultiplyAccumulates, EveryIteration) {
  const std::string loop =
      "y = Loop (n, , x) <body = b (int64 i, bool c, float[2, 3] s) => (bool d, float[2, 3] t) "
      "{ d = Identity(c)  t = MatMul(s, w) }> }";
  EXPECT_EQ(macs_of("g (float[2, 3] x, float[3, 3] w) => (float[2, 3] y) <int64 n = {5}> { " + loop), 5 * 2 * 3 * 3);
  EXPECT_EQ(macs_of("g (int64 n, float[2, 3] x, float[3, 3] w) => (float[2, 3] y) { " + loop), 2 * 3 * 3);
  EXPECT_EQ(macs_of("g (float[2, 7, 3] x, float[3, 4] w) => (float[7, 2, 4] y) { y = Scan (x) <num_scan_inputs = 1, "
                    "scan_input_axes = [1], body = b (float[2, 3] s) => (float[2, 4] t) { t = MatMul(s, w) }> }"),
            7 * 2 * 3 * 4);
}

}  // namespace
}  // namespace tc::macs_test
