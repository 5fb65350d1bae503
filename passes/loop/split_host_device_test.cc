#include "passes/loop/split_host_device.h"

#include <gtest/gtest.h>

#include "ir/loop/build.h"
#include "ir/loop/print.h"

namespace tc::split_host_device_test {
namespace {

struct Split {
  Buffer x = make_buffer("x", DType::F32, {64}), y = make_buffer("y", DType::F32, {64});
  Buffer t = make_buffer("t", DType::F32, {64}), scratch = make_buffer("scratch", DType::U8, {256});
  Var b = make_var("b"), i = make_var("i");
  Stmt nest(const Buffer& to, const Buffer& from) const {
    const Expr at = Expr(b) * 32 + Expr(i);
    return loop(b, 2, loop(i, 32, store(to, {at}, load(from, {at})), ForKind::ThreadX), ForKind::BlockX);
  }
};

TEST(SplitHostDevice, EveryNestIsALaunch) {
  const Split k;
  const Stmt s = alias(k.t, k.scratch, 0,
                       seq({k.nest(k.t, k.x), store(k.y, {0}, load(k.t, {1})), store(k.y, {1}, load(k.t, {0}))}));
  const SplitFunction r = split_host_device(s, {k.x, k.y});
  ASSERT_EQ(r.device.size(), 2u);
  EXPECT_EQ(r.device[0].name, "kernel");
  EXPECT_EQ(r.device[0].threads, 32);
  EXPECT_EQ(r.device[0].params, (std::vector<Buffer>{k.x, k.t}));
  // what is not bound runs in one thread; neighbours share a function; parameters of the kernel come first
  EXPECT_EQ(r.device[1].name, "kernel2");
  EXPECT_EQ(r.device[1].threads, 1);
  EXPECT_EQ(r.device[1].params, (std::vector<Buffer>{k.y, k.t}));
  const Alias* a = as<Alias>(r.host);
  ASSERT_TRUE(a);
  const Seq* launches = as<Seq>(a->body);
  ASSERT_TRUE(launches && launches->list.size() == 2);
  const Launch* first = as<Launch>(launches->list[0]);
  ASSERT_TRUE(first);
  EXPECT_EQ(as_const_int(first->grid[0]), 2);
  EXPECT_EQ(as_const_int(first->block[0]), 32);
  EXPECT_EQ(as_const_int(first->block[1]), 1);
}

// A function has no scratch memory but by the views that it gets.
TEST(SplitHostDevice, ViewsInsideOfOneThreadAreTheHosts) {
  const Split k;
  const Buffer u = make_buffer("u", DType::F32, {64});
  const Stmt inner = alias(u, k.scratch, 256, store(u, {k.i}, load(k.x, {k.i})));
  const Stmt s =
      loop(k.i, 64, alias(k.t, k.scratch, 0, seq({inner, store(k.t, {k.i}, load(k.x, {0}))})), ForKind::Serial);
  const SplitFunction r = split_host_device(s, {k.x, k.y});
  ASSERT_EQ(r.device.size(), 1u);
  EXPECT_EQ(r.device[0].params, (std::vector<Buffer>{k.x, u, k.t}));
  const Alias* a = as<Alias>(r.host);
  ASSERT_TRUE(a);
  EXPECT_EQ(a->view, k.t);
  const Alias* b = as<Alias>(a->body);
  ASSERT_TRUE(b);
  EXPECT_EQ(b->view, u);
  EXPECT_TRUE(as<Launch>(b->body));
}

TEST(SplitHostDevice, ASingleBlockHoldsItsSharedMemory) {
  const Split k;
  const Buffer tile = make_buffer("tile", DType::F32, {32}, Scope::Shared);
  const Stmt s = alloc(tile, loop(k.i, 32, store(k.y, {k.i}, load(k.x, {k.i})), ForKind::ThreadX));
  const SplitFunction r = split_host_device(s, {k.x, k.y});
  ASSERT_EQ(r.device.size(), 1u);
  EXPECT_EQ(r.device[0].threads, 32);
  EXPECT_EQ(r.device[0].params, (std::vector<Buffer>{k.x, k.y}));
}

TEST(SplitHostDevice, LoopsAroundLaunchesStayOnTheHost) {
  const Split k;
  const Var n = make_var("n");
  const Stmt uses = loop(k.i, 32, store(k.y, {Expr(n) * 32 + Expr(k.i)}, load(k.x, {k.i})), ForKind::ThreadX);
  const SplitFunction r = split_host_device(loop(n, 2, seq({uses, k.nest(k.t, k.x)})), {k.x, k.y});
  ASSERT_EQ(r.device.size(), 2u);
  ASSERT_EQ(r.device[0].host_loops.size(), 1u);
  EXPECT_EQ(r.device[0].host_loops[0].var, n);
  EXPECT_TRUE(r.device[1].host_loops.empty());  // it does not ask for the number
  const For* f = as<For>(r.host);
  ASSERT_TRUE(f && as_const_int(f->extent) == 2);
  const Seq* launches = as<Seq>(f->body);
  ASSERT_TRUE(launches && launches->list.size() == 2);
  EXPECT_EQ(as<Launch>(launches->list[0])->args.size(), 1u);
  EXPECT_TRUE(as<Launch>(launches->list[1])->args.empty());
}

TEST(SplitHostDevice, OtherControlFlowAroundLaunchesIsRefused) {
  const Split k;
  EXPECT_THROW(split_host_device(if_then(eq(load(k.x, {0}), make_float(DType::F32, 0)), k.nest(k.y, k.x)), {k.x, k.y}),
               InternalError);
  const Var j = make_var("j");
  const Stmt twice = loop(j, 4, loop(k.i, 8, store(k.y, {k.i}, load(k.x, {j})), ForKind::ThreadX), ForKind::ThreadX);
  EXPECT_THROW(split_host_device(twice, {k.x, k.y}), InternalError);
}

TEST(SplitHostDevice, WhatNoBodyReadsAnyMoreIsNotPassed) {
  const Split k;
  const Var n = make_var("n");
  const Stmt uses = loop(k.i, 32, store(k.y, {Expr(n) * 32 + Expr(k.i)}, load(k.x, {k.i})), ForKind::ThreadX);
  SplitFunction r = split_host_device(loop(n, 2, seq({uses, k.nest(k.t, k.x)})), {k.x, k.y});
  r.device[0].body = loop(k.i, 32, store(k.y, {k.i}, make_float(DType::F32, 0)), ForKind::ThreadX);
  drop_unread_params(r);
  EXPECT_EQ(r.device[0].params, (std::vector<Buffer>{k.y}));
  EXPECT_TRUE(r.device[0].host_loops.empty());
  EXPECT_EQ(r.device[1].params, (std::vector<Buffer>{k.x, k.t}));
  const For* each = as<For>(r.host);
  ASSERT_TRUE(each);
  const Seq* launches = as<Seq>(each->body);
  ASSERT_TRUE(launches && launches->list.size() == 2);
  EXPECT_EQ(as<Launch>(launches->list[0])->buffers, (std::vector<Buffer>{k.y}));
  EXPECT_TRUE(as<Launch>(launches->list[0])->args.empty());
  EXPECT_EQ(as<Launch>(launches->list[1])->buffers, (std::vector<Buffer>{k.x, k.t}));
}

}  // namespace
}  // namespace tc::split_host_device_test
