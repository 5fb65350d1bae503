// What channels share is computed once and gives what the plain loops give: chunks, several axes, sums, conditions.
#include "templates/cpu/test_schedule.h"

namespace tc::shared_values_test {
namespace {

using testing::FunctionBuilder;
using testing::TestFunction;

Expr f32(double v) { return make_float(DType::F32, v); }
// A whole number from -2 to n + 1 out of small integers.
Expr position(const Expr& e, int64_t n) {
  return cast(DType::I64, apply(Op::Floor, {max(e * f32(1.5), f32(-2))})) + Expr(n / 2);
}

// y[c, p] = x[c, at(p)] where that exists, and 7 elsewhere.
TestFunction sampled(int64_t channels, int64_t in, const Dims& out) {
  FunctionBuilder b;
  const Buffer x = b.input("x", {channels, in}), g = b.input("g", out);
  Dims dims = out;
  dims.insert(dims.begin(), channels);
  return b.take(b.compute("y", dims, [&](const Exprs& i) {
    const Expr at = position(load(g, Exprs(i.begin() + 1, i.end())), in);
    return select(at >= 0 && at < in, load(x, {i[0], at}) * f32(2), f32(7));
  }));
}

void expect_shared(const TestFunction& f) {
  for (const char* cpu : {"generic", "x86-64-v4"}) testing::expect_equal(f, "shared_values", cpu);
}

TEST(CpuSharedValues, PointsBesideBlocks) {
  for (const int64_t points : {5, 255, 256, 257, 600})
    for (const int64_t channels : {4, 7}) expect_shared(sampled(channels, 9, {points}));
}

TEST(CpuSharedValues, SeveralAxes) {
  FunctionBuilder b;
  const Buffer x = b.input("x", {2, 6, 11, 13}), g = b.input("g", {2, 5, 9});
  expect_shared(b.take(b.compute("y", {2, 6, 5, 9}, [&](const Exprs& i) {
    const Expr at = position(load(g, {i[0], i[2], i[3]}), 11), column = floor_div(i[3] * 13, 9);
    return select(at >= 0 && at < 11, load(x, {i[0], i[1], at, column}), f32(0)) - load(g, {i[0], i[2], i[3]});
  })));
}

// Two samples of each point, of which none, one or both exist: where both do, a branch of its own asks for neither.
TEST(CpuSharedValues, PointsOfWhichAllSamplesExist) {
  for (const int64_t channels : {4, 7}) {
    FunctionBuilder b;
    const Buffer x = b.input("x", {channels, 9}), g = b.input("g", {300});
    const auto f = b.take(b.compute("y", {channels, 300}, [&](const Exprs& i) {
      const Expr at = position(load(g, {i[1]}), 9), next = at + 1;
      return select(at >= 0 && at < 9, load(x, {i[0], at}), f32(0)) * f32(3) +
             select(next >= 0 && next < 9, load(x, {i[0], next}), f32(0));
    }));
    expect_shared(f);
    const std::string text = to_text(schedule_cpu(f.fn, f.constant, *find_cpu("generic")).body);
    EXPECT_NE(text.find("most points: nothing is tested"), std::string::npos) << text;
  }
}

TEST(CpuSharedValues, SumsOverSamples) {
  for (const int64_t channels : {4, 6}) {
    FunctionBuilder b;
    const Buffer x = b.input("x", {channels, 10}), g = b.input("g", {3, 8, 5});
    const Buffer sum = b.reduce("sum", Op::Add, {3, channels, 8}, {5}, [&](const Exprs& i, const Exprs& r) {
      const Expr at = position(load(g, {i[0], i[2], r[0]}), 10);
      return select(at >= 0 && at < 10, load(x, {i[1], at}), f32(0));
    });
    expect_shared(b.take(b.compute("y", {3, channels, 8}, [&](const Exprs& i) { return load(sum, i) * f32(2); })));
  }
}

// A sum is of one channel, though its name says none.
TEST(CpuSharedValues, NothingBehindTheSumIsShared) {
  FunctionBuilder b;
  const Buffer x = b.input("x", {6, 4, 10}), g = b.input("g", {8, 5}), bias = b.input("bias", {8});
  const Buffer sum = b.reduce("sum", Op::Add, {6, 8}, {4}, [&](const Exprs& i, const Exprs& r) {
    return load(x, {i[0], r[0], position(load(g, {i[1], r[0]}), 10)});
  });
  const TestFunction f = b.take(b.compute("y", {6, 8}, [&](const Exprs& i) {
    return cast(DType::F32, cast(DType::I64, apply(Op::Round, {load(sum, i) + load(bias, {i[1]})})));
  }));
  testing::expect_equal(f, "shared_values");
}

// What stands behind a condition is read there only: its index is out of range elsewhere.
TEST(CpuSharedValues, ReadsNothingThatWasNotRead) {
  FunctionBuilder b;
  const Buffer x = b.input("x", {5, 12}), g = b.input("g", {20});
  const TestFunction f = b.take(b.compute("y", {5, 30}, [&](const Exprs& i) {
    const Expr at = position(load(g, {min(i[1], Expr(19))}), 12);
    return select(at >= 0 && at < 12 && i[1] < 20, load(x, {i[0], at}) * load(g, {i[1]}), f32(1));
  }));
  testing::expect_equal(f, "shared_values");
}

// Samples that no channel tells apart are a stage of their own, and so is what only one channel reads.
TEST(CpuSharedValues, LeavesOthersAlone) {
  const auto family = [](const TestFunction& f) { return schedule_cpu(f.fn, f.constant, *find_cpu("generic")).family; };
  EXPECT_EQ(family(sampled(3, 9, {300})), "elementwise");
  FunctionBuilder b;
  const Buffer x = b.input("x", {8, 40}), g = b.input("g", {40});
  EXPECT_EQ(family(b.take(b.compute("y", {8, 40}, [&](const Exprs& i) { return load(x, i) * exp(load(g, {i[1]})); }))),
            "elementwise");
}

}  // namespace
}  // namespace tc::shared_values_test
