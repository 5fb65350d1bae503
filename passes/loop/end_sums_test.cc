#include "passes/loop/end_sums.h"

#include <gtest/gtest.h>

#include "ir/loop/build.h"
#include "ir/loop/print.h"
#include "ir/open_size.h"

namespace tc::end_sums_test {
namespace {

struct Sum {
  Buffer count = make_buffer("count", DType::I64, {Dim(1)}), x = make_buffer("x", DType::F32, {Dim(128), Dim(8)}),
         sums = make_buffer("sums", DType::F32, {Dim(8)});
  Var r = make_var("r"), k = make_var("k");
  Expr none = make_float(DType::F32, 0), end = load(count, {Expr(0)});
  std::optional<Op> by = Op::Add;

  Stmt store_of(const Expr& condition) const {
    return store(sums, {Expr(k)}, select(condition, load(x, {Expr(r), Expr(k)}), none), by);
  }
  Stmt over(const Stmt& body) const { return loop(r, 128, loop(k, 8, body)); }
  Stmt all() const { return over(store_of(Expr(r) < end)); }
};

TEST(EndSums, EndsWhereTheConditionDoes) {
  const std::string text = to_text(end_sums(Sum().all()));
  EXPECT_NE(text.find("let n = max(min(count[0], 128), 0)"), std::string::npos) << text;
  EXPECT_NE(text.find("for r in 0 .. +n"), std::string::npos) << text;
  EXPECT_NE(text.find("sums[k] += x[r, k]"), std::string::npos) << text;
  const Sum inner;
  EXPECT_NE(to_text(end_sums(inner.over(inner.store_of(Expr(inner.k) < inner.end)))).find("for k in 0 .. +n"),
            std::string::npos);
  Sum most;
  most.by = Op::Max;
  most.none = make_float(DType::F32, -std::numeric_limits<double>::infinity());
  EXPECT_NE(to_text(end_sums(most.all())).find("sums[k] max= x[r, k]"), std::string::npos)
      << to_text(end_sums(most.all()));
}

TEST(EndSums, BothEndWhereTwoConditionsStand) {
  const Sum s;
  const Expr other = load(make_buffer("other", DType::I64, {}), {});
  const Stmt add = s.over(
      store(s.sums, {Expr(0)},
            select(Expr(s.k) < other, select(Expr(s.r) < s.end, load(s.x, {Expr(s.r), Expr(s.k)}), s.none), s.none),
            Op::Add));
  const std::string text = to_text(end_sums(add));
  EXPECT_NE(text.find("let n = max(min(count[0], 128), 0)"), std::string::npos) << text;
  EXPECT_NE(text.find("max(min(other[], 8), 0)"), std::string::npos) << text;
  EXPECT_NE(text.find("sums[0] += x[r, k]"), std::string::npos) << text;
  // Also where nothing is known of what the other one tests.
  const Stmt either = s.over(store(s.sums, {Expr(0)},
                                   select(load(s.x, {Expr(0), Expr(s.k)}) < make_float(DType::F32, 1),
                                          select(Expr(s.r) < s.end, load(s.x, {Expr(s.r), Expr(s.k)}), s.none), s.none),
                                   Op::Add));
  EXPECT_NE(to_text(end_sums(either)).find("let n = max(min(count[0], 128), 0)"), std::string::npos)
      << to_text(end_sums(either));
}

// What a condition guards ends where it does, whatever it is, also where other loops stand between.
TEST(EndSums, WhatIsGuardedInsideOfOtherLoopsEnds) {
  const Sum s;
  const auto stored = [&](const Expr& condition) {
    return s.over(if_then(condition, store(s.sums, {Expr(s.k)}, load(s.x, {Expr(s.r), Expr(s.k)}))));
  };
  EXPECT_EQ(to_text(end_sums(stored(Expr(s.r) < s.end))),
            "let n = max(min(count[0], 128), 0)\nfor r in 0 .. +n:\n  for k in 0 .. +8:\n    sums[k] = x[r, k]\n");
  const Stmt each = stored(Expr(s.r) < s.end + Expr(s.k));  // another end in each iteration of the other loop
  EXPECT_TRUE(end_sums(each).same_as(each));
  const Stmt moved = s.over(if_then(Expr(s.r) < s.end, store(s.count, {Expr(0)}, Expr(3))));
  EXPECT_TRUE(end_sums(moved).same_as(moved));
}

// sum += where(i * 256 + thread < count, x[i * 256 + thread], 0), of a size without an upper bound.
TEST(EndSums, ThreadsThatShareASumEndEach) {
  constexpr int64_t kThreads = 256;
  const Sum s;
  const Buffer x = make_buffer("x", DType::F32, {Dim(kOpenSize)}),
               sum = make_buffer("sum", DType::F32, {}, Scope::Register);
  const Var i = make_var("i"), thread = make_var("thread"), r = make_var("r");
  const auto shared = [&](const Expr& at, int64_t all, const Expr& end) {
    const Stmt add = store(sum, {}, select(Expr(r) < end, load(x, {Expr(r)}), s.none), Op::Add);
    return loop(thread, kThreads, loop(i, all / kThreads, let(r, at, add)), ForKind::ThreadX);
  };
  const Expr at = Expr(i) * kThreads + Expr(thread);
  const std::string text = to_text(end_sums(shared(at, kOpenSize, s.end)));
  EXPECT_NE(text.find("let n = max(min(count[0], 94466211840), 0)"), std::string::npos) << text;
  EXPECT_NE(text.find("for i in 0 .. +floor_div(n + 255, 256):"), std::string::npos) << text;
  EXPECT_NE(text.find("r < count[0]"), std::string::npos) << text;
  const std::string rows = to_text(end_sums(shared(floor_div(at, 6), kOpenSize, s.end)));
  EXPECT_NE(rows.find("let n = max(min(count[0] * 6, 94466211840), 0)"), std::string::npos) << rows;
  const auto stays = [](const Stmt& x) { return end_sums(x).same_as(x); };
  EXPECT_TRUE(stays(shared(at, 4096, s.end)));                      // some iterations fewer are no matter
  EXPECT_TRUE(stays(shared(at - Expr(1), kOpenSize, s.end)));       // another iteration has the last element
  EXPECT_TRUE(stays(shared(Expr(thread) - at, kOpenSize, s.end)));  // elements from the last to the first
  EXPECT_TRUE(stays(shared(at, kOpenSize, s.end + Expr(i))));       // another end in each iteration
  const Buffer words = make_buffer("words", DType::I32, {Dim(kOpenSize)});
  const Stmt chosen =
      store(sum, {}, select(load(words, {Expr(i)}) < cast(DType::I32, Expr(16)), load(x, {Expr(i)}), s.none), Op::Add);
  EXPECT_TRUE(stays(loop(i, kOpenSize, chosen)));  // a condition on data
}

TEST(EndSums, EachPreconditionByItself) {
  const auto stays = [](const Stmt& s) { return end_sums(s).same_as(s); };
  Sum one;
  one.none = make_float(DType::F32, 1);
  EXPECT_TRUE(stays(one.all()));  // each element behind the last adds something
  Sum stored;
  stored.by = std::nullopt;
  EXPECT_TRUE(stays(stored.all()));  // no sum
  const Sum s;
  EXPECT_TRUE(stays(s.over(s.store_of(s.end < Expr(s.r)))));              // the elements behind
  EXPECT_TRUE(stays(s.over(s.store_of(Expr(s.r) * Expr(2) < s.end))));    // not of the variable alone
  EXPECT_TRUE(stays(s.over(s.store_of(Expr(s.r) < s.end + Expr(s.k)))));  // another end for each
  EXPECT_TRUE(stays(s.over(s.store_of(Expr(s.r) < s.end + Expr(s.r)))));  // another end in each iteration
  const Stmt free = store(s.sums, {Expr(s.k)}, load(s.x, {Expr(s.r), Expr(s.k)}), Op::Add);
  EXPECT_TRUE(stays(s.over(seq({s.store_of(Expr(s.r) < s.end), free}))));  // one sum goes on
  const Buffer other = make_buffer("other", DType::I64, {Dim(1)});
  const Stmt two =
      store(s.sums, {Expr(s.k)}, select(Expr(s.r) < load(other, {Expr(0)}), load(s.x, {Expr(s.r), Expr(s.k)}), s.none),
            Op::Add);
  EXPECT_TRUE(stays(s.over(seq({s.store_of(Expr(s.r) < s.end), two}))));  // two ends
  Sum moving;
  const Stmt ends = store(moving.count, {Expr(0)}, Expr(3), Op::Add);
  EXPECT_TRUE(stays(loop(moving.r, 128, seq({moving.store_of(Expr(moving.r) < moving.end), ends}))));
}

}  // namespace
}  // namespace tc::end_sums_test
