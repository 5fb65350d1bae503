#include "passes/program/kernel_work.h"

#include <gtest/gtest.h>

#include "importer/test_import.h"
#include "passes/program/build_program.h"
#include "passes/test_target.h"
#include "templates/cpu/floor.h"
#include "templates/cuda/floor.h"

namespace tc::kernel_work_test {
namespace {

Program program_of(const std::string& graph, std::string_view cpu = "x86-64-v3") {
  const auto imported = importer_testing::import_text("<ir_version: 10, opset_import: [\"\" : 21]>\n" + graph);
  EXPECT_EQ(imported.problems, "");
  TestTarget target(test_target(cpu));
  Graph g = imported.graph.clone();
  std::string log;
  run_passes(graph_passes(), g, target.cx, log);
  return build_program(g, "m", target.cx, log);
}

KernelWork only_work(const std::string& graph) {
  const Program p = program_of(graph);
  EXPECT_EQ(p.kernels.size(), 1u);
  return p.kernels.at(0).work;
}

TEST(KernelWork, OfAProduct) {
  const KernelWork w = only_work("g (float[64,32] x, float[32,48] w) => (float[64,48] y) { y = MatMul (x, w) }");
  EXPECT_EQ(w.macs, 64 * 32 * 48);
  EXPECT_EQ(w.products, 4);
  EXPECT_EQ(w.bytes, 4 * (64 * 32 + 32 * 48 + 64 * 48));
  EXPECT_EQ(w.weight_bytes, 0);
}

TEST(KernelWork, OfATableCountsWhatIsPicked) {
  const KernelWork w = only_work("g (float[1000,16] t, int64[3] i) => (float[3,16] y) { y = Gather (t, i) }");
  EXPECT_EQ(w.macs, 0);
  EXPECT_LE(w.bytes, 4 * 3 * 16 * 2 + 8 * 3);
  EXPECT_GE(w.bytes, 4 * 3 * 16 * 2);
}

TEST(KernelWork, BytesAreMultipliedAsBytes) {
  const KernelWork w = only_work("g (uint8[64,32] x, int8[32,48] w) => (int32[64,48] y) { y = MatMulInteger (x, w) }");
  EXPECT_EQ(w.products, 1);
}

// 8 lanes, two a cycle, 3 GHz: 48 products a nanosecond; from the first cache, 2 loads of 32 bytes a cycle.
TEST(KernelWork, FloorIsTheLongerOfProductsAndBytes) {
  const CpuModel cpu = *find_cpu("x86-64-v3");
  EXPECT_DOUBLE_EQ(floor_ns(KernelWork{.macs = 48000, .bytes = 1000}, 0, cpu), 1000);
  EXPECT_DOUBLE_EQ(floor_ns(KernelWork{.macs = 48000, .products = 8, .bytes = 1000}, 0, cpu), 2000);
  EXPECT_DOUBLE_EQ(floor_ns(KernelWork{.macs = 48, .bytes = 19200}, 0, cpu), 100);
  const KernelWork weights{.macs = 0, .bytes = 20000, .weight_bytes = 20000};
  EXPECT_DOUBLE_EQ(floor_ns(weights, int64_t(1) << 30, cpu), 20000 / cpu.dram_gbs);
  EXPECT_EQ(floor_ns(KernelWork{.macs = 48, .bytes = 19200}, 0, *find_cpu("generic")), 0);
  EXPECT_EQ(floor_ns(weights, 0, any_cpu()), floor_ns(weights, 0, *find_cpu("x86-64-v4")));
}

// A copy of four numbers takes less than a nanosecond, and has a floor.
TEST(KernelWork, SmallKernelsHaveFloors) {
  const Program p = program_of("g (float[2] x) => (float[2] y) { y = Relu (x) }");
  ASSERT_EQ(p.kernels.size(), 1u);
  EXPECT_GT(p.kernels[0].work.floor_ns, 0);
  EXPECT_LT(p.kernels[0].work.floor_ns, 0.5);
}

TEST(KernelWork, EveryArchitectureHasACard) {
  for (const CudaModel& gpu : cuda_models()) {
    const CudaCard& card = card_of(gpu);
    EXPECT_GT(card.f32, card.f64) << gpu.name;
    EXPECT_EQ(card.tf32 == 0, gpu.sm < 80) << gpu.name;
    // A multiprocessor has 64 or 128 lanes, each of which multiplies and adds in a clock.
    const double lanes = card.f32 * 1000 / (2 * gpu.multiprocessors * card.ghz);
    EXPECT_TRUE(std::abs(lanes - 64) < 1 || std::abs(lanes - 128) < 10) << gpu.name << ": " << lanes;
  }
}

// An A100: 9750 products a nanosecond, 78000 of them in tf32; 108 * 64 * 1.41 bytes out of the cache.
TEST(KernelWork, FloorOfACard) {
  const CudaModel gpu = *find_arch("sm_80");
  const auto floor = [&](const KernelWork& w, int64_t run_bytes = 0) { return floor_ns(w, run_bytes, gpu); };
  EXPECT_DOUBLE_EQ(floor({.macs = 9'750'000, .bytes = 1000}), 1000);
  EXPECT_DOUBLE_EQ(floor({.macs = 78'000'000, .rounds = true, .bytes = 1000}), 1000);
  EXPECT_DOUBLE_EQ(floor({.macs = 156'000'000, .products = 2, .rounds = true, .bytes = 1000}), 1000);
  EXPECT_DOUBLE_EQ(floor({.macs = 156'000'000, .products = 2, .bytes = 1000}), 1000);
  EXPECT_DOUBLE_EQ(floor({.macs = 312'000'000, .products = 1, .bytes = 1000}), 1000);
  EXPECT_DOUBLE_EQ(floor({.macs = 4'850'000, .products = 8, .bytes = 1000}), 1000);
  EXPECT_DOUBLE_EQ(floor({.bytes = 108 * 64 * 1410}), 1000);
  const KernelWork weights{.bytes = 1'555'000, .weight_bytes = 1'555'000};
  EXPECT_LT(floor(weights), 200);
  EXPECT_DOUBLE_EQ(floor(weights, int64_t(41) << 20), 1000);
  EXPECT_DOUBLE_EQ(floor({.bytes = int64_t(1555) << 20}), double(1 << 20));
}

TEST(KernelWork, OfProductsThatTensorCoresRound) {
  const std::string graph = "g (float[512,512] x, float[512,512] w) => (float[512,512] y) { y = MatMul (x, w) }";
  const auto work = [&](Precision precision, const char* arch = "sm_80") {
    const auto imported = importer_testing::import_text("<ir_version: 10, opset_import: [\"\" : 21]>\n" + graph);
    TestTarget target(Target{Target::Kind::Cuda, {}, *find_arch(arch)});
    target.cx.options.precision = precision;
    Graph g = imported.graph.clone();
    std::string log;
    run_passes(graph_passes(), g, target.cx, log);
    return build_program(g, "m", target.cx, log).kernels.at(0).work;
  };
  EXPECT_FALSE(work(Precision::F32).rounds);
  EXPECT_EQ(work(Precision::F32).products, 4);
  EXPECT_TRUE(work(Precision::Tf32).rounds);
  EXPECT_EQ(work(Precision::Tf32).products, 4);
  EXPECT_EQ(work(Precision::Bf16).products, 2);
  EXPECT_LT(work(Precision::Tf32).floor_ns, work(Precision::F32).floor_ns / 3);
  EXPECT_GT(work(Precision::F32, "sm_75").floor_ns, work(Precision::F32).floor_ns);
}

TEST(KernelWork, FloorOfARunSumsItsCalls) {
  const std::string graph =
      "g (float[64,32] x, float[32,32] w) => (float[64,32] y) { a = MatMul (x, w)  y = MatMul (a, w) }";
  const Program p = program_of(graph);
  ASSERT_EQ(p.kernels.size(), 1u);
  EXPECT_GT(p.kernels[0].work.floor_ns, 0);
  EXPECT_DOUBLE_EQ(floor_ns(p), 2 * p.kernels[0].work.floor_ns);
  EXPECT_EQ(floor_ns(program_of(graph, "generic")), 0);
}

TEST(KernelWork, OfAnIfThatMaySkipCountsTheLesserBranch) {
  const Program p = program_of(R"(g (bool c, float[64,32] x, float[32,32] w) => (float[64,32] y) {
    y = If (c) <then_branch = t () => (float[64,32] a) { a = MatMul (x, w) },
                else_branch = e () => (float[64,32] b) { b = Relu (x) }> })");
  double least = 1e30;
  for (const Kernel& k : p.kernels) least = std::min(least, k.work.floor_ns);
  EXPECT_DOUBLE_EQ(floor_ns(p), least);
}

// Winograd's filtering says how many products it has.
TEST(KernelWork, OfAScheduleThatMultipliesLess) {
  Scheduled s;
  EXPECT_EQ(work_of(TensorFn(), s, {}, -1).macs, 0);
  s.macs = 7;
  EXPECT_EQ(work_of(TensorFn(), s, {}, -1).macs, 7);
}

}  // namespace
}  // namespace tc::kernel_work_test
