#include "passes/loop/launch_hints.h"

#include <gtest/gtest.h>

#include "ir/loop/build.h"
#include "ir/loop/intrin.h"

namespace tc::launch_hints_test {
namespace {

const Var kThread = make_var("thread"), kStep = make_var("step"), kOther = make_var("other");
const Buffer kOut = make_buffer("y", DType::F32, {256});

DeviceFunction function(const Stmt& code) {
  DeviceFunction f;
  f.body = loop(kThread, 256, code, ForKind::ThreadX);
  set_launch_hints(f);
  return f;
}

Stmt set(const Expr& value) { return store(kOut, {Expr(kThread)}, value); }

TEST(launch_hints, a_pipeline_is_not_unrolled_and_gets_the_multiprocessor) {
  const Stmt pipeline = loop(kStep, 9, seq({intrin("cp_async_wait", {}, {Expr(1)}), set(make_float(DType::F32, 1))}));
  const Stmt plain = loop(kOther, 4, set(make_float(DType::F32, 2)));
  const DeviceFunction f = function(seq({pipeline, plain}));
  EXPECT_EQ(f.blocks_per_sm, 1);
  ASSERT_EQ(f.rolled.size(), 1u);
  EXPECT_EQ(f.rolled[0], kStep);
}

TEST(launch_hints, other_loops_are_left_to_the_compiler) {
  const DeviceFunction f = function(loop(kOther, 4, set(make_float(DType::F32, 2))));
  EXPECT_EQ(f.blocks_per_sm, 0);
  EXPECT_TRUE(f.rolled.empty());
}

TEST(launch_hints, unrolled_loops_stay_unrolled) {
  const Stmt wait = seq({intrin("cp_async_wait", {}, {Expr(0)}), set(make_float(DType::F32, 1))});
  const DeviceFunction f = function(loop(kStep, 2, wait, ForKind::Unroll));
  EXPECT_EQ(f.blocks_per_sm, 1);
  EXPECT_TRUE(f.rolled.empty());
}

}  // namespace
}  // namespace tc::launch_hints_test
