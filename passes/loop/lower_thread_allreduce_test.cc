#include "passes/loop/lower_thread_allreduce.h"

#include <gtest/gtest.h>

#include "ir/interpreter/test_arrays.h"
#include "ir/loop/build.h"
#include "ir/loop/intrin.h"
#include "ir/loop/print.h"
#include "support/error.h"

namespace tc::lower_thread_allreduce_test {
namespace {

// A block of `threads`: y[t] = the sum (or maximum) of x over the group of n neighbours that t is in.
class LowerThreadAllreduce : public ::testing::Test {
 protected:
  Floats x{"x", {256}}, y{"y", {256}};
  Var block = make_var("block"), t = make_var("t");
  Stmt kernel(int64_t threads, Op op, int64_t n) const {
    const Buffer v = make_buffer("v", DType::F32, {}, Scope::Register);
    const Stmt body =
        alloc(v, seq({store(v, {}, load(x.buffer, {t})), allreduce(v, op, n), store(y.buffer, {t}, load(v, {}))}));
    return loop(block, 1, loop(t, threads, body, ForKind::ThreadX), ForKind::BlockX);
  }
  std::vector<float> result(const Stmt& s) {
    x.count();
    run(s, {x.bind(), y.bind()}, {.check_races = true});
    return y.data;
  }
};

TEST_F(LowerThreadAllreduce, AWarpNeedsNoMemory) {
  const Stmt s = kernel(256, Op::Add, 32);
  EXPECT_EQ(to_text(lower_thread_allreduce(s)), to_text(s));
}

TEST_F(LowerThreadAllreduce, ABlockIsReducedByItsWarps) {
  const Stmt s = kernel(256, Op::Add, 256), lowered = lower_thread_allreduce(s);
  EXPECT_EQ(to_text(lowered),
            "block.x block in 0 .. +1:\n"
            "  alloc v_of_warp: f32[8] shared\n"
            "  thread.x t in 0 .. +256:\n"
            "    alloc v: f32[] register\n"
            "    v[] = x[t]\n"
            "    allreduce_add(32, v)\n"
            "    if floor_mod(t, 32) == 0:\n"
            "      v_of_warp[floor_div(t, 32)] = v[]\n"
            "    barrier shared\n"
            "    v[] = v_of_warp[floor_mod(t, 8)]\n"
            "    allreduce_add(8, v)\n"
            "    y[t] = v[]\n");
  EXPECT_EQ(result(lowered), std::vector<float>(256, 255 * 256 / 2));
}

TEST_F(LowerThreadAllreduce, GroupsHaveTheirPartsOfTheArray) {
  const std::vector<float> y = result(lower_thread_allreduce(kernel(256, Op::Max, 64)));
  for (size_t k = 0; k < y.size(); k++) EXPECT_EQ(y[k], float(k / 64 * 64 + 63)) << k;
}

TEST_F(LowerThreadAllreduce, GroupsThatDoNotDivideTheBlockAreRefused) {
  EXPECT_THROW(lower_thread_allreduce(kernel(96, Op::Add, 64)), InternalError);
}

}  // namespace
}  // namespace tc::lower_thread_allreduce_test
