// Programs for a list of processors: one graph, one blob, a kernel of each.
#include <gtest/gtest.h>

#include "importer/test_import.h"
#include "passes/program/build_program.h"
#include "passes/test_target.h"

namespace tc::testing::variant_kernels_test {
namespace {

// `cpus`: the best last.
Program program_for(const std::string& graph, const std::vector<std::string>& cpus) {
  const auto imported = importer_testing::import_text("<ir_version: 10, opset_import: [\"\" : 21]>\n" + graph, {});
  EXPECT_EQ(imported.problems, "");
  Target t = test_target(cpus.back());
  for (size_t i = 0; i + 1 < cpus.size(); i++) t.others.push_back(*find_cpu(cpus[i]));
  TestTarget target(t);
  const auto others = other_backends(t);
  for (const auto& b : others) target.cx.others.push_back(b.get());
  Graph g = imported.graph.clone();
  std::string log;
  run_passes(graph_passes(), g, target.cx, log);
  return build_program(g, "m", target.cx, log);
}

std::string dense(int rows) {
  return "m (float[" + std::to_string(rows) + ", 64] x) => (float[" + std::to_string(rows) +
         ", 96] y) { k = Constant<value = float[1] {0.5}>() s = Constant<value = int64[2] {64, 96}>()\n w = Expand(k, "
         "s)\n h = "
         "MatMul(x, w)\n y = Relu(h) }";
}

TEST(VariantKernels, OneBlobAndAKernelForEach) {
  const Program p = program_for(dense(128), {"x86-64-v3", "x86-64-v4"});
  const Program best = program_for(dense(128), {"x86-64-v4"});
  EXPECT_EQ(p.cpu, "x86-64-v3,x86-64-v4");
  EXPECT_EQ(p.weights_bytes, best.weights_bytes);
  ASSERT_EQ(p.variants.size(), 2u);
  ASSERT_EQ(p.steps.size(), 1u);
  const Call& c = std::get<Call>(p.steps[0].kind);
  ASSERT_EQ(c.by_variant.size(), 2u);
  EXPECT_NE(c.by_variant[0], c.by_variant[1]);
  EXPECT_EQ(c.by_variant[1], c.kernel);
  const Kernel &narrow = p.kernels[size_t(c.by_variant[0])], &wide = p.kernels[size_t(c.kernel)];
  EXPECT_NE(narrow.schedule, wide.schedule);
  EXPECT_EQ(narrow.variants, std::vector<int>{0});
  EXPECT_EQ(wide.variants, std::vector<int>{1});
  EXPECT_EQ(wide.name, best.kernels[0].name);
}

TEST(VariantKernels, EqualLoopsAreOneKernel) {
  const Program p = program_for("m (float[64] x) => (float[64] y) { y = Relu(x) }", {"x86-64-v3", "x86-64-v4"});
  ASSERT_EQ(p.kernels.size(), 1u);
  EXPECT_EQ(p.kernels[0].variants, (std::vector<int>{0, 1}));
}

TEST(VariantKernels, OneProcessorHasNoTraceOfThem) {
  const Program p = program_for(dense(128), {"x86-64-v4"});
  EXPECT_TRUE(p.variants.empty());
  EXPECT_TRUE(p.kernels[0].variants.empty());
  EXPECT_TRUE(std::get<Call>(p.steps[0].kind).by_variant.empty());
}

}  // namespace
}  // namespace tc::testing::variant_kernels_test
