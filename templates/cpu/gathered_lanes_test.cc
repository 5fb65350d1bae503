// Costly functions of elements that lie apart equal the plain loops: behind steps, mirrored, at positions that are tensors, and where
// only some lanes have an element at all.
#include "templates/cpu/test_schedule.h"

namespace tc::gathered_lanes_test {
namespace {

using testing::FunctionBuilder;
using testing::TestFunction;

Expr half(const Expr& e) { return e * make_float(DType::F32, 0.5); }
Expr costly(const Expr& e) { return apply(Op::Floor, {half(e)}); }

void expect_gathered(const TestFunction& f) {
  for (const char* cpu : {"generic", "x86-64-v3", "x86-64-v4"}) testing::expect_equal(f, "gathered", cpu);
}

TEST(CpuGatheredLanes, BehindSteps) {
  for (const int64_t n : {3, 16, 17, 40}) {
    FunctionBuilder b;
    const Buffer x = b.input("x", {5, 4 * n}), z = b.input("z", {n});
    expect_gathered(b.take(b.compute("y", {5, n}, [&](const Exprs& i) {
      return costly(load(x, {i[0], i[1] * 3 + 2}) + load(z, {i[1]})) * load(x, {i[0], i[1] * 3 + 2});
    })));
  }
}

TEST(CpuGatheredLanes, Mirrored) {
  FunctionBuilder b;
  const Buffer x = b.input("x", {4, 30});
  expect_gathered(b.take(b.compute("y", {4, 34}, [&](const Exprs& i) {
    const Expr at = i[1] - 2;
    return costly(load(x, {i[0], select(at < Expr(0), Expr(0) - at, select(at >= Expr(30), Expr(58) - at, at))}));
  })));
}

TEST(CpuGatheredLanes, RoundedByTheStore) {
  for (const DType type : {DType::U8, DType::F16}) {
    FunctionBuilder b;
    const Buffer x = b.input("x", {3, 50});
    TestFunction f = b.take(b.compute("y", {3, 21}, [&](const Exprs& i) {
      const Expr e = costly(load(x, {i[0], i[1] * 2}));
      return cast(type, min(max(e, make_float(DType::F32, 0)), make_float(DType::F32, 255)));
    }));
    Stage& last = f.fn.stages.back();
    last.outputs = {make_buffer("y", type, to_shape({3, 21}))};
    f.fn.outputs = last.outputs;
    expect_gathered(f);
  }
}

// The operand of a branch ends before the row does: it is read where the condition holds only.
TEST(CpuGatheredLanes, ElementsThatOnlySomeLanesHave) {
  FunctionBuilder b;
  const Buffer x = b.input("x", {2, 20}), m = b.input("m", {2, 37});
  const auto is_first = [](const Exprs& i) { return floor_mod(i[1], 3) < Expr(1) && i[1] < Expr(20); };
  expect_gathered(b.take(b.compute("y", {2, 37}, [&](const Exprs& i) {
    return select(is_first(i), costly(load(x, {i[0], i[1]})), half(load(m, {i[0], Expr(36) - i[1]})));
  })));
}

TEST(CpuGatheredLanes, Parallel) {
  FunctionBuilder b;
  const Buffer x = b.input("x", {300, 600});
  expect_gathered(b.take(b.compute("y", {300, 290}, [&](const Exprs& i) {
    return costly(load(x, {i[0], i[1] * 2}));
  })));
}

TEST(CpuGatheredLanes, LeavesOthersAlone) {
  const auto family = [](const std::function<Expr(const Buffer&, const Exprs&)>& value, int64_t n = 40) {
    FunctionBuilder b;
    const Buffer x = b.input("x", {3, 90});
    const TestFunction f = b.take(b.compute("y", {3, n}, [&](const Exprs& i) { return value(x, i); }));
    return schedule_cpu(f.fn, f.constant, *find_cpu("generic")).family;
  };
  const auto apart = [](const Buffer& x, const Exprs& i) { return load(x, {i[0], i[1] * 2}); };
  EXPECT_EQ(family([&](const Buffer& x, const Exprs& i) { return half(apart(x, i)); }), "elementwise");
  EXPECT_EQ(family([&](const Buffer& x, const Exprs& i) { return costly(load(x, i)); }), "elementwise");
  EXPECT_EQ(family([&](const Buffer& x, const Exprs& i) { return costly(apart(x, i)); }, 2), "elementwise");
  EXPECT_EQ(family([&](const Buffer& x, const Exprs& i) { return costly(apply(Op::Sin, {apart(x, i)})); }),
            op_has_lanes(Op::Sin, DType::F32) ? "gathered" : "elementwise");
}

}  // namespace
}  // namespace tc::gathered_lanes_test
