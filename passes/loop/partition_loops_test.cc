#include "passes/loop/partition_loops.h"

#include <gtest/gtest.h>

#include "ir/interpreter.h"
#include "ir/loop/build.h"
#include "ir/loop/print.h"
#include "ir/verify.h"

namespace tc::partition_loops_test {
namespace {

Expr f32(double v) { return make_float(DType::F32, v); }

TEST(PartitionLoops, MainAndTail) {
  Buffer y = make_buffer("y", DType::F32, {Dim(100)});
  Var t = make_var("t"), i = make_var("i");
  Stmt s = loop(t, 7, loop(i, min(16, Expr(100) - Expr(t) * 16), store(y, {Expr(t) * 16 + Expr(i)}, f32(1))));
  EXPECT_EQ(to_text(partition_loops(s)),
            "for t in 0 .. +6:\n"
            "  for i in 0 .. +16:\n"
            "    y[t * 16 + i] = 1.0f\n"
            "for i in 0 .. +4:\n"
            "  y[i + 96] = 1.0f\n");
}

TEST(PartitionLoops, NoCutWhereTheSizesDivide) {
  Buffer y = make_buffer("y", DType::F32, {Dim(96)});
  Var t = make_var("t"), i = make_var("i");
  Stmt s = loop(t, 6, loop(i, min(16, Expr(96) - Expr(t) * 16), store(y, {Expr(t) * 16 + Expr(i)}, f32(1))));
  EXPECT_EQ(to_text(partition_loops(s)),
            "for t in 0 .. +6:\n"
            "  for i in 0 .. +16:\n"
            "    y[t * 16 + i] = 1.0f\n");
}

TEST(PartitionLoops, PaddingBecomesThreeParts) {
  Buffer x = make_buffer("x", DType::F32, {Dim(8)}), y = make_buffer("y", DType::F32, {Dim(10)});
  Var i = make_var("i");
  Expr at = Expr(i) - 1;
  Stmt s = loop(i, 10, store(y, {i}, select((at >= 0) && (at < 8), load(x, {at}), f32(0))));
  Stmt r = partition_loops(s);
  EXPECT_EQ(to_text(r),
            "y[0] = 0.0f\n"
            "for i in 1 .. +8:\n"
            "  y[i] = x[i - 1]\n"
            "y[9] = 0.0f\n");
  verify(r, {x, y});
}

TEST(PartitionLoops, CutsFallWhereTheComparisonChanges) {
  // every comparison against every constant gives what the uncut loop gives
  Buffer y = make_buffer("y", DType::F32, {Dim(9)});
  for (Op op : {Op::Lt, Op::Le, Op::Gt, Op::Ge, Op::Eq, Op::Ne}) {
    for (int64_t c : {-3, -2, -1, 1, 2, 3}) {
      for (int64_t k = -12; k <= 12; k += 1) {
        Var i = make_var("i");
        Expr f = Expr(i) * c + 5;
        Stmt s = loop(i, 9, if_then(apply(op, {f, Expr(k)}), store(y, {i}, f32(1)), store(y, {i}, f32(2))));
        Stmt r = partition_loops(s);
        EXPECT_EQ(to_text(r).find("if"), std::string::npos) << to_text(s) << to_text(r);
        std::vector<float> a(9), b(9);
        run(s, {{y, reinterpret_cast<uint8_t*>(a.data())}});
        run(r, {{y, reinterpret_cast<uint8_t*>(b.data())}});
        ASSERT_EQ(a, b) << to_text(s);
      }
    }
  }
}

TEST(PartitionLoops, ParallelLoopsStayWhole) {
  Buffer y = make_buffer("y", DType::F32, {Dim(10)});
  Var i = make_var("i");
  Stmt s = loop(i, 10, if_then(Expr(i) < 5, store(y, {i}, f32(1))), ForKind::Parallel);
  EXPECT_TRUE(partition_loops(s).same_as(s));
}

}  // namespace
}  // namespace tc::partition_loops_test
