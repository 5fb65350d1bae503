#include <gtest/gtest.h>

#include <algorithm>

#include "ir/loop/build.h"
#include "ir/loop/print.h"
#include "passes/program/test_program.h"

namespace tc::sizes_on_device_test {
namespace {

/// Of a model whose size N is from `least` to 8.
Program program_of(const std::string& graph, int64_t least = 1, bool cuda = true) {
  ImportOptions options;
  options.dims["N"] = {least, 8};
  return testing::program_of(graph, cuda, options);
}

const std::string kSoftmax = "g (float[N, 4] x) => (float[N, 4] y) { y = Softmax(x) }";

TEST(SizesOnDevice, InputsAreFilledUpAndOutputsCopiedByWhatThereIs) {
  const Program p = program_of(kSoftmax);
  ASSERT_EQ(p.steps.size(), 3u);
  const Call* fill = std::get_if<Call>(&p.steps[0].kind);
  ASSERT_TRUE(fill);
  const Kernel& k = p.kernels[size_t(fill->kernel)];
  ASSERT_EQ(k.params.size(), 3u);
  EXPECT_FALSE(k.params[0].by_value);
  EXPECT_TRUE(k.params[1].by_value);  // the size
  EXPECT_TRUE(p.inputs[size_t(fill->operands[1].index)].is_size);
  EXPECT_EQ(k.formula, "y[i][j] = i < n0 ? x[i][j] : x[0][j]");
  const CopyStep* out = std::get_if<CopyStep>(&p.steps[2].kind);
  ASSERT_TRUE(out);
  EXPECT_EQ(out->bytes, 16);
  EXPECT_EQ(out->times, std::vector<SizeSum>{SizeSum::of(1)});
}

TEST(SizesOnDevice, ZerosFollowWhereThereMayBeNothing) {
  const Program p = program_of(kSoftmax, 0);
  EXPECT_EQ(p.kernels[0].formula, "y[i][j] = i < n0 ? x[i][j] : 0");
}

TEST(SizesOnDevice, GridsAreOfTheSizeAndFunctionsOfTheLargest) {
  const Program p = program_of("g (float[N, 512] x) => (float[N, 512] y) { y = Softmax(x) }");
  const Kernel& k = p.kernels[1];
  const Launch* l = as<Launch>(k.body);
  ASSERT_TRUE(l);
  EXPECT_FALSE(as_const_int(l->grid[0]));
  EXPECT_NE(to_text(l->grid[0]).find("n0["), std::string::npos) << to_text(l->grid[0]);
  ASSERT_EQ(k.device.size(), 1u);
  EXPECT_EQ(to_text(k.device[0].body).find("n0["), std::string::npos) << to_text(k.device[0].body);
}

TEST(SizesOnDevice, ASizeThatIsStoredIsAKernel) {
  const Program p = program_of("g (float[N] x) => (float[N] y, int64[1] n) { y = Neg(x)  n = Shape(x) }");
  const Call* store = nullptr;
  for (const Step& s : p.steps) {
    const auto* copy = std::get_if<CopyStep>(&s.kind);
    EXPECT_FALSE(copy && copy->from.kind == Operand::Kind::Input);
    const auto* call = std::get_if<Call>(&s.kind);
    if (call && call->operands.back().kind == Operand::Kind::Output) store = call;
  }
  ASSERT_TRUE(store);
  EXPECT_TRUE(p.kernels[size_t(store->kernel)].params[0].by_value);
}

// A number that the host passes has no index: the test of one would be lost.
TEST(SizesOnDevice, ASizeThatIsReadAtATestedIndexLiesInMemory) {
  const Program p = program_of(
      "g (float[N] x, int64[1] i) => (float[N] y, int64[1] n) { y = Neg(x)  s = Shape(x)  n = Gather(s, i) }");
  bool tested = false;
  for (const Kernel& k : p.kernels) {
    if (std::none_of(k.params.begin(), k.params.end(), [](const Param& x) { return x.role == Param::Role::Status; }))
      continue;
    tested = true;
    for (const Param& x : k.params) EXPECT_FALSE(x.by_value) << k.name;
    ASSERT_EQ(k.device.size(), 1u);
    EXPECT_NE(to_text(k.device[0].body).find("index("), std::string::npos) << to_text(k.device[0].body);
  }
  EXPECT_TRUE(tested);
}

/// A state that grows, and one that adds up.
Program program_with_states() {
  ImportOptions options;
  options.dims["N"] = {0, 8};
  options.states = {{"past", "present"}, {"total", "added"}};
  return testing::program_of(
      "g (float[1, 4] x, float[N, 4] past, float[1, 4] total) => (float[1, 4] y, float[M, 4] present, float[1, 4] "
      "added) {"
      " present = Concat<axis = 0>(past, x)  added = Add(total, x)  y = Neg(x) }",
      true, options);
}

TEST(SizesOnDevice, WhatTheInstanceCountsIsStoredFirst) {
  const Program p = program_with_states();
  const Call *store = std::get_if<Call>(&p.steps[0].kind), *clear = std::get_if<Call>(&p.steps[1].kind);
  ASSERT_TRUE(store && clear);
  const Operand number = store->operands[0], place = store->operands[1];
  EXPECT_TRUE(number.kind == Operand::Kind::Input && p.inputs[size_t(number.index)].is_kept());
  EXPECT_EQ(place.index, p.inputs[size_t(number.index)].state);
  EXPECT_TRUE(p.kernels[size_t(store->kernel)].params[0].by_value);
  EXPECT_EQ(clear->operands[0].index, number.index);
  EXPECT_EQ(clear->operands[1].index, p.inputs[1].state);
  // Everybody else reads it on the device.
  for (size_t i = 2; i < p.steps.size(); i++) {
    const Call* c = std::get_if<Call>(&p.steps[i].kind);
    for (size_t k = 0; c && k < c->operands.size(); k++)
      EXPECT_FALSE(c->operands[k].kind == Operand::Kind::Input && c->operands[k].index == number.index);
  }
}

TEST(SizesOnDevice, StatesAreNotCopied) {
  const Program p = program_with_states();
  for (const Step& s : p.steps) EXPECT_FALSE(std::get_if<CopyStep>(&s.kind));
}

TEST(SizesOnDevice, OnACpuNothingIsAValue) {
  const Program p = program_of(kSoftmax, 1, false);
  for (const Kernel& k : p.kernels)
    for (const Param& x : k.params) EXPECT_FALSE(x.by_value);
  EXPECT_TRUE(std::get_if<CopyStep>(&p.steps[0].kind));
}

}  // namespace
}  // namespace tc::sizes_on_device_test
