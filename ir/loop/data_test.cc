#include "ir/loop/data.h"

#include <gtest/gtest.h>

#include "ir/loop/build.h"

namespace tc::data_test {
namespace {

// max(min(x[index], most), least)
Expr clamped(const Expr& index, int64_t most, int64_t least = 0) {
  const Buffer x = make_buffer("x", DType::I64, {Dim(7)});
  return max(min(load(x, {index}), Expr(most)), Expr(least));
}

TEST(Data, CountsAreNumbersInMemoryOfFewBits) {
  const Var i = make_var("i");
  EXPECT_FALSE(names_data(clamped(0, 512), {}));
  EXPECT_FALSE(names_data(clamped(0, 512, 2), {}));
  EXPECT_FALSE(names_data(Expr(i) * Expr(4), {}));
  EXPECT_TRUE(names_data(clamped(Expr(i), 512), {})) << "an element: its powers may wrap";
  EXPECT_TRUE(names_data(clamped(0, int64_t(1) << 40), {}));
  EXPECT_TRUE(names_data(clamped(0, 512, -512), {}));
  EXPECT_TRUE(names_data(Expr(i) + Expr(1), {i.get()}));
}

}  // namespace
}  // namespace tc::data_test
