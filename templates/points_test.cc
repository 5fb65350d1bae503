#include "templates/points.h"

#include <gtest/gtest.h>

#include "ir/loop/build.h"
#include "ir/loop/simplify.h"

namespace tc::points_test {
namespace {

TEST(Points, ANumberIsAPointAndBack) {
  const std::vector<Axis> axes = {
      {make_var("a"), Dim(1)}, {make_var("i"), Dim(3)}, {make_var("b"), Dim(1)}, {make_var("j"), Dim(5)}};
  ASSERT_EQ(points(axes), 15);
  for (int64_t n = 0; n < 15; n++) {
    const VarMap at = point_at(axes, Expr(n));
    EXPECT_EQ(as_const_int(simplify(at.at(axes[1].var.get()), {})), n / 5);
    EXPECT_EQ(as_const_int(simplify(at.at(axes[3].var.get()), {})), n % 5);
    EXPECT_EQ(as_const_int(simplify(substitute(point_number(axes), at), {})), n);
    EXPECT_EQ(as_const_int(simplify(substitute(point_number(axes, Expr(2)), at), {})), 30 + n) << "behind outer axes";
  }
}

TEST(Points, Pieces) {
  EXPECT_EQ(ceil_div(0, 4), 0);
  EXPECT_EQ(ceil_div(8, 4), 2);
  EXPECT_EQ(ceil_div(9, 4), 3);
  EXPECT_EQ(round_up(9, 4), 12);
}

}  // namespace
}  // namespace tc::points_test
