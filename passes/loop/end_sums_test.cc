#include "passes/loop/end_sums.h"

#include <gtest/gtest.h>

#include "ir/loop/build.h"
#include "ir/loop/print.h"

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
