// Templates of several contractions equal the plain loops: bit for bit, on small integers.
#include "templates/cpu/regions.h"

#include "passes/graph/region.h"
#include "templates/cpu/test_schedule.h"

namespace tc::regions_test {
namespace {

using namespace tc::testing;

TEST(InvertedResidual, TailsOfChannelsAndColumns) {
  expect_equal(inverted_residual({.h = 9, .w = 7, .c = 5, .expanded = 21, .oc = 19}), "inverted_residual");
  expect_equal(inverted_residual({.h = 12, .w = 11, .c = 8, .expanded = 48, .oc = 8, .residual = true}),
               "inverted_residual");
}

TEST(InvertedResidual, StridesAndKernels) {
  expect_equal(inverted_residual({.h = 12, .w = 12, .expanded = 32, .stride = 2, .before = 1, .after = 0}),
               "inverted_residual");
  expect_equal(inverted_residual({.h = 11, .w = 13, .expanded = 18, .kernel = 5, .before = 2, .after = 2}),
               "inverted_residual");
  expect_equal(inverted_residual({.h = 13, .w = 9, .kernel = 5, .stride = 2, .before = 1, .after = 2}),
               "inverted_residual");
  expect_equal(inverted_residual({.h = 10, .w = 10, .kernel = 3, .dilation = 2, .before = 2, .after = 2}),
               "inverted_residual");
}

TEST(InvertedResidual, EdgesOfOnePixelAndNone) {
  expect_equal(inverted_residual({.h = 1, .w = 1}), "inverted_residual");
  expect_equal(inverted_residual({.h = 1, .w = 6, .expanded = 16}), "inverted_residual");
  expect_equal(inverted_residual({.h = 6, .w = 1, .expanded = 16}), "inverted_residual");
  expect_equal(inverted_residual({.h = 8, .w = 9, .before = 0, .after = 0}), "inverted_residual");
}

TEST(InvertedResidual, SeveralImagesAndBands) {
  expect_equal(inverted_residual({.images = 3, .h = 5, .w = 6, .residual = true}), "inverted_residual");
  expect_equal(inverted_residual({.h = 56, .w = 5, .expanded = 16}), "inverted_residual");
  expect_equal(inverted_residual({.images = 2, .h = 45, .w = 4, .expanded = 16, .stride = 2}), "inverted_residual");
}

TEST(InvertedResidual, EveryCpu) {
  for (const CpuModel& cpu : cpu_models())
    expect_equal(inverted_residual({.h = 7, .w = 9, .expanded = 40, .oc = 24, .residual = true}), "inverted_residual",
                 std::string(cpu.name).c_str());
}

TEST(Attention, SequencesAndHeadSizes) {
  expect_equal(attention({.heads = 3, .rows = 128, .columns = 128, .size = 5, .mask = true}), "attention");
  expect_equal(attention({.rows = 24, .columns = 24, .size = 64}), "attention");
  expect_equal(attention({.heads = 2, .rows = 37, .columns = 37, .size = 80, .mask = true}), "attention");
  expect_equal(attention({.batch = 2, .heads = 3, .rows = 9, .columns = 9, .size = 5}), "attention");
}

TEST(Attention, TilesOverlapAtTheEndAndChunksCoverAllRows) {
  expect_equal(attention({.heads = 1, .rows = 197, .columns = 197, .size = 16}), "attention");
  expect_equal(attention({.heads = 1, .rows = 131, .columns = 19, .size = 8, .combined = false}), "attention");
}

TEST(Attention, KeysOfAnotherLength) {
  expect_equal(
      attention({.batch = 2, .heads = 2, .rows = 11, .columns = 50, .size = 12, .combined = false, .mask = true}),
      "attention");
}

TEST(Attention, ShortSequencesRunStageByStage) {
  expect_equal(attention({.rows = 1, .columns = 1, .size = 64}), "stages");
  expect_equal(attention({.rows = 7, .columns = 7, .size = 64, .mask = true}), "stages");
}

TEST(Regions, WhatMayStandBetweenContractions) {
  const auto reduced = [](Op op, const Dims& over) {
    FunctionBuilder b;
    Dims dims = {8};
    dims.insert(dims.end(), over.begin(), over.end());
    const Buffer x = b.input("x", dims);
    const auto point = [&](const Exprs& i, const Exprs& r) {
      Exprs at = i;
      at.insert(at.end(), r.begin(), r.end());
      return load(x, at);
    };
    return b.take(b.reduce("y", op, {8}, over, point)).fn;
  };
  EXPECT_TRUE(may_stand_between(reduced(Op::Max, {16})));    // of a softmax
  EXPECT_TRUE(may_stand_between(reduced(Op::Add, {3, 3})));  // of a filter
  EXPECT_TRUE(may_stand_between(reduced(Op::Add, {1, 5, 5})));
  EXPECT_FALSE(may_stand_between(reduced(Op::Add, {16})));
  EXPECT_FALSE(may_stand_between(reduced(Op::Add, {4, 3, 3})));  // a convolution
}

TEST(Attention, EveryCpu) {
  for (const CpuModel& cpu : cpu_models())
    expect_equal(attention({.heads = 2, .rows = 33, .columns = 33, .size = 24}), "attention",
                 std::string(cpu.name).c_str());
}

}  // namespace
}  // namespace tc::regions_test
