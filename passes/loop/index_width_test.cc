#include "passes/loop/index_width.h"

#include <gtest/gtest.h>

#include "ir/loop/build.h"

namespace tc::index_width_test {
namespace {

/// for i in [0, a) for j in [0, b) y[0] += f(i, j)
Kernel kernel(int64_t a, int64_t b, const std::function<Expr(const Var&, const Var&)>& index, int64_t elements = 1) {
  const Buffer y = make_buffer("y", DType::F32, {1}), x = make_buffer("x", DType::F32, {elements});
  const Var i = make_var("i"), j = make_var("j");
  Kernel k;
  k.params = {{Param::Role::Input, x, {elements}, ""}, {Param::Role::Output, y, {1}, ""}};
  k.body = loop(i, a, loop(j, b, store(y, {Expr(0)}, load(x, {index(i, j)}))));
  return k;
}

TEST(IndexWidth, OrdinaryKernelsCountInInt) {
  EXPECT_FALSE(
      needs_wide_index(kernel(1000, 1000, [](const Var& i, const Var& j) { return Expr(i) * 1000 + Expr(j); })));
  // Many points, but no number among them is large.
  EXPECT_FALSE(needs_wide_index(kernel(1 << 20, 1 << 20, [](const Var&, const Var& j) { return Expr(j); })));
}

TEST(IndexWidth, LargeTensorsLoopsAndProductsDoNot) {
  const auto zero = [](const Var&, const Var&) { return Expr(0); };
  EXPECT_TRUE(needs_wide_index(kernel(1, 1, zero, int64_t(1) << 31)));
  EXPECT_TRUE(needs_wide_index(kernel(int64_t(1) << 33, 1, zero)));
  EXPECT_TRUE(needs_wide_index(
      kernel(1 << 17, 1 << 17, [](const Var& i, const Var& j) { return Expr(i) * (1 << 17) + Expr(j); })));
}

TEST(IndexWidth, NumbersThatAreReadAreData) {
  Kernel k = kernel(4, 4, [](const Var&, const Var&) { return Expr(0); });
  const Buffer t = make_buffer("t", DType::I64, {4}), r = make_buffer("r", DType::I64, {4});
  const Var i = make_var("i");
  k.params = {{Param::Role::Input, t, {4}, ""}, {Param::Role::Output, r, {4}, ""}};
  k.body = loop(i, 4, store(r, {Expr(i)}, load(t, {Expr(i)}) * Expr(int64_t(1) << 40)));
  EXPECT_FALSE(needs_wide_index(k));
}

}  // namespace
}  // namespace tc::index_width_test
