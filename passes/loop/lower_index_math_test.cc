#include "passes/loop/lower_index_math.h"

#include <gtest/gtest.h>

#include "ir/interpreter/test_arrays.h"
#include "ir/loop/build.h"
#include "ir/loop/print.h"

namespace tc::lower_index_math_test {
namespace {

// y[i - begin] = x[(i mod 4) * 8 + i div 8], for i from `begin` on
class LowerIndexMath : public ::testing::Test {
 protected:
  Floats x{"x", {64}}, y{"y", {16}};
  Var i = make_var("i");
  Stmt kernel(int64_t begin, const Expr& of) const {
    const Expr at = floor_mod(of, 4) * 8 + floor_div(of, 8) + 2;
    return loop(i, 16, store(y.buffer, {Expr(i) - begin}, load(x.buffer, {at})), ForKind::Serial, begin);
  }
  std::vector<float> result(const Stmt& s) {
    x.count();
    run(s, {x.bind(), y.bind()});
    return y.data;
  }
};

TEST_F(LowerIndexMath, WhatIsNotNegativeIsDividedAsInC) {
  const Stmt s = kernel(0, i), lowered = lower_index_math(s);
  EXPECT_EQ(to_text(lowered), "for i in 0 .. +16:\n  y[i] = x[mod(i, 4) * 8 + i / 8 + 2]\n");
  EXPECT_EQ(result(lowered), result(s));
}

TEST_F(LowerIndexMath, WhatMayBeNegativeStays) {
  const Stmt s = kernel(-8, i);
  EXPECT_EQ(to_text(lower_index_math(s)), to_text(s));
}

// The range of a name is that of its value.
TEST_F(LowerIndexMath, NamesHaveRanges) {
  const Var j = make_var("j");
  auto named = [&](const Expr& value) {
    return loop(i, 16, let(j, value, store(y.buffer, {i}, load(x.buffer, {floor_mod(Expr(j), 4) + 8}))));
  };
  EXPECT_NE(to_text(lower_index_math(named(Expr(i) * 3))).find("x[mod(j, 4) + 8]"), std::string::npos);
  EXPECT_EQ(to_text(lower_index_math(named(Expr(i) - 1))), to_text(named(Expr(i) - 1)));
}

}  // namespace
}  // namespace tc::lower_index_math_test
