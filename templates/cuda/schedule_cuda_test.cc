// Schedules for a GPU equal the plain loops, without a race: bit for bit, on integers small enough that the order of
// sums does not matter. The tests of operators (ir/ops) ask the same of every operator's definition.
#include "templates/cuda/schedule_cuda.h"

#include <algorithm>
#include <array>

#include "templates/cuda/template.h"
#include "templates/cuda/test_exact.h"

namespace tc::schedule_cuda_test {
namespace {

using namespace tc::testing;

void expect_equal(const TestFunction& f) {
  const std::vector<Constant> in = small_integers_for(f.fn);
  expect_cuda_schedule(f.fn, in, evaluate(f.fn, in), 0);
}

TEST(ScheduleCuda, TheLongestLoopOfBlocksHasX) {
  using Kinds = std::array<ForKind, 3>;
  EXPECT_EQ(grid_kinds(3, 4, 5), (Kinds{ForKind::BlockX, ForKind::BlockY, ForKind::BlockZ}));
  EXPECT_EQ(grid_kinds(1 << 20, 4), (Kinds{ForKind::BlockX, ForKind::BlockY, ForKind::BlockZ}));
  EXPECT_EQ(grid_kinds(3, 1 << 20), (Kinds{ForKind::BlockY, ForKind::BlockX, ForKind::BlockZ}));
  EXPECT_EQ(grid_kinds(3, 4, 1 << 20), (Kinds{ForKind::BlockZ, ForKind::BlockY, ForKind::BlockX}));
  EXPECT_FALSE(grid_kinds(1 << 20, 1 << 20));
  EXPECT_FALSE(grid_kinds(3, 1 << 20, 1 << 20));
}

TEST(ScheduleCuda, Elementwise) {
  for (const int64_t n : {1, 7, 31, 32, 33, 256, 257, 20000}) {
    FunctionBuilder b;
    const Buffer x = b.input("x", {n}), y = b.input("y", {n});
    expect_equal(b.take(b.compute("add", {n}, [&](const Exprs& i) { return load(x, i) + load(y, i); })));
  }
}

TEST(ScheduleCuda, Pools) {
  expect_equal(pool(Op::Max, 11, 13, 20, 3, 2));
  expect_equal(pool(Op::Add, 7, 7, 70, 7, 1));
}

TEST(ScheduleCuda, Products) {
  expect_equal(product(1, 23, 70, 31, false, true));
  expect_equal(product(1, 1, 100, 37, false, true));
  expect_equal(product(3, 17, 45, 9, true, false));
  expect_equal(product(1, 1, 40, 50, true, false));
}

TEST(ScheduleCuda, Convolutions) {
  expect_equal(convolution({.h = 7, .w = 5, .c = 19, .oc = 37, .kernel = 1}));
  expect_equal(convolution({.h = 19, .w = 17, .c = 6, .oc = 20, .stride = 2, .dilation = 2, .border = 1}));
  expect_equal(convolution({.h = 9, .w = 9, .c = 12, .oc = 24, .groups = 3}));
  expect_equal(convolution({.h = 12, .w = 15, .c = 32, .oc = 32, .stride = 2, .groups = 32, .border = 1}));
}

TEST(ScheduleCuda, Rows) {
  expect_equal(row_statistics(7, 45));
  expect_equal(row_statistics(3, 320));
}

}  // namespace
}  // namespace tc::schedule_cuda_test
