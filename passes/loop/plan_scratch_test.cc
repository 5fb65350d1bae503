#include "passes/loop/plan_scratch.h"

#include <gtest/gtest.h>

#include "ir/interpreter/test_arrays.h"
#include "ir/loop/build.h"
#include "ir/loop/print.h"

namespace tc::plan_scratch_test {
namespace {

// parallel c: alloc t; t[i] = x[i] + c; y[c] = t[7]
class PlanScratch : public ::testing::Test {
 protected:
  Floats x{"x", {1200}}, y{"y", {3}};
  Var c = make_var("c"), i = make_var("i");
  Stmt kernel(const Buffer& t) const {
    const Stmt fill = loop(i, t->shape[0].value, store(t, {i}, load(x.buffer, {i}) + cast(DType::F32, c)));
    return loop(c, 3, alloc(t, seq({fill, store(y.buffer, {c}, load(t, {7}))})), ForKind::Parallel);
  }
};

TEST_F(PlanScratch, EveryChunkHasItsOwnBytes) {
  const PlannedScratch planned = plan_scratch(kernel(make_buffer("t", DType::F32, {Dim(10)}, Scope::Workspace)), 64);
  EXPECT_EQ(planned.bytes, 3 * 64);  // 40 bytes, aligned
  EXPECT_EQ(to_text(planned.body),
            "parallel c in 0 .. +3:\n"
            "  alias t: f32 = &scratch[c * 64]\n"
            "  for i in 0 .. +10:\n"
            "    t[i] = x[i] + f32(c)\n"
            "  y[c] = t[7]\n");
  std::vector<uint8_t> scratch(size_t(planned.bytes));
  x.count();
  run(planned.body, {x.bind(), y.bind(), {planned.scratch, scratch.data()}});
  EXPECT_EQ(y.data, (std::vector<float>{7, 8, 9}));
}

TEST_F(PlanScratch, OnlyLargeArraysLeaveTheStack) {
  const Stmt small = kernel(make_buffer("t", DType::F32, {Dim(1000)}, Scope::Stack));
  EXPECT_EQ(to_text(plan_scratch(small, 64).body), to_text(small));
  EXPECT_FALSE(bool(plan_scratch(small, 64).scratch));
  EXPECT_EQ(plan_scratch(kernel(make_buffer("t", DType::F32, {Dim(1200)}, Scope::Stack)), 64).bytes, 3 * 4800);
}

}  // namespace
}  // namespace tc::plan_scratch_test
