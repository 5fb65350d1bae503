// Which calls share a kernel.
#include <gtest/gtest.h>

#include "importer/test_import.h"
#include "passes/program/build_program.h"
#include "passes/test_target.h"

namespace tc::program_kernels_test {
namespace {

Program program_of(const std::string& graph, int level = 2) {
  const auto imported = importer_testing::import_text("<ir_version: 10, opset_import: [\"\" : 21]>\n" + graph);
  EXPECT_EQ(imported.problems, "");
  TestTarget target(test_target("x86-64-v3"));
  PassContext& cx = target.cx;
  cx.options.verify_each = true;
  cx.options.opt_level = level;
  Graph g = imported.graph.clone();
  std::string log;
  run_passes(graph_passes(), g, cx, log);
  return build_program(g, "m", cx, log);
}

// Their texts differ in nothing but how the sums begin.
TEST(Kernels, FunctionsThatBeginOtherwiseAreTwo) {
  const Program p = program_of(R"(g (float[5,7] x) => (int64[1,7] a, int64[1,7] b) {
    a = ArgMax <axis = 0> (x)  b = ArgMax <axis = 0, select_last_index = 1> (x) })");
  EXPECT_EQ(p.kernels.size(), 2u);
}

TEST(Kernels, NumbersAreNotShared) {
  const Program p = program_of(R"(g (float[5,7] x) => (float[5,7] a, float[5,7] b, float[5,7] c) {
    a = LeakyRelu <alpha = 0.5> (x)  b = LeakyRelu <alpha = 0.25> (x)  c = LeakyRelu <alpha = 0.5> (a) })");
  EXPECT_EQ(p.kernels.size(), 2u);
}

// The scales of a quantised convolution become one packed operand: layers of one shape are one kernel, whose formula does
// not tell the numbers of the first.
TEST(Kernels, PackedNumbersAreOperands) {
  const auto list = [](int n, auto value) {
    std::string t;
    for (int i = 0; i < n; i++) t += (i > 0 ? ", " : "") + std::string(value(i));
    return "{" + t + "}";
  };
  const std::string scales = list(32, [](int i) { return "0." + std::to_string(i + 11); });
  const std::string zeros = list(32, [](int) { return "0"; });
  const std::string weights = list(32 * 32, [](int i) { return std::to_string(i % 7 - 3); });
  const Program p = program_of(
      "g (uint8[1,32,4,4] x) => (uint8[1,32,4,4] y) <float s = {0.6}, float[32] t = " + scales +
      ", float u = {0.7}, float v = {0.3}, uint8 z = {0}, int8[32] n = " + zeros + ", int8[32,32,1,1] w = " + weights +
      "> { a = QLinearConv (x, s, z, w, t, n, u, z)  b = QLinearConv (a, u, z, w, t, n, v, z)"
      "  c = QLinearConv (b, v, z, w, t, n, s, z)  y = QLinearConv (c, s, z, w, t, n, u, z) }");
  std::vector<std::string> formulas;
  for (const Kernel& k : p.kernels)
    if (k.name.starts_with("conv2d_requantize_4x4x32")) formulas.push_back(k.formula);
  ASSERT_EQ(formulas.size(), 1u) << p.kernels.size();
  EXPECT_NE(formulas[0].find("constant * "), std::string::npos) << formulas[0];
}

// A function of random numbers alone has no operand to name its table after: the table is the result's.
TEST(Kernels, TablesOfFunctionsWithoutOperands) {
  const Program p =
      program_of(R"(g (float[2] x) => (float[2] z, float[1,16,1,1] y) <float low = {0}, float high = {1}> {
    z = Neg (x)
    r = RandomNormal <shape = [1,16,2,1], seed = 1.0> ()  c = Clip (r, low, high)
    m = Mul (c, low)  y = GlobalAveragePool (m) })");
  ASSERT_EQ(p.weights.size(), 1u);
  EXPECT_EQ(p.weights[0].name.raw(), "y");
}

// What updates are added to is often zero everywhere: a number, not a tensor that takes memory. Equal weights stay weights: others may
// come in their place.
TEST(Kernels, WhatScattersFillIsANumber) {
  const char* scatter =
      R"(g (int64[9,1] i, float[9,8] u) => (float[40,8] y) <float[1] zero = {0}, int64[2] n = {40,8}> {
    z = Expand (zero, n)  y = ScatterND <reduction = "add"> (z, i, u) })";
  EXPECT_TRUE(program_of(scatter).weights.empty());
  const char* sum = R"(g (float[9,4] x) => (float[9,4] y) <float[4] w = {1, 1, 1, 1}> { a = Exp (x)  y = Mul (a, w) })";
  EXPECT_EQ(program_of(sum).weights.size(), 1u);
  const char* uneven = R"(g (int64[9,1] i, float[9] u) => (float[4] y) <float[4] z = {0, 0, 0, 1}> {
    y = ScatterND <reduction = "add"> (z, i, u) })";
  EXPECT_EQ(program_of(uneven).weights.size(), 1u);
}

// What a scan passes through is a constant, and its view a copy of that: a function whose result is its operand.
TEST(Kernels, AScalarThatIsTheResultStaysAnOperand) {
  const Program p = program_of(R"(g (float[2,3] x) => (int64[1] f, int64[1] y, float[2,3] o)
    <int64[1] c = {30}, int64[1] e = {1}> {
    f, o = Scan <num_scan_inputs = 1, body = b (int64[1] s, float[3] r) => (int64[1] t, float[3] n)
      { t = Identity (s)  n = Neg (r) }> (c, x)
    y = Reshape (f, e) })",
                               0);
  for (const Kernel& k : p.kernels) EXPECT_GE(k.params.size(), 2u) << k.name;
}

}  // namespace
}  // namespace tc::program_kernels_test
