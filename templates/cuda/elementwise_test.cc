// Functions without a reduction on a GPU equal the definition bit for bit, without races.
#include <gtest/gtest.h>

#include "templates/cuda/test_exact.h"

namespace tc::elementwise_test {
namespace {

using namespace tc::testing;

// Two operands, one value a channel; a condition.
TestFunction scaled_sum(int64_t pixels, int64_t channels) {
  FunctionBuilder b;
  const Dims d{pixels, channels};
  const Buffer x = b.input("x", d), r = b.input("r", d), g = b.input("g", {channels});
  const Buffer s = b.compute("sum", d, [&](const Exprs& i) { return load(x, i) * load(g, {i[1]}) + load(r, i); });
  return b.take(b.compute("leaky", d, [&](const Exprs& i) {
    return select(load(s, i) > make_float(DType::F32, 0), load(s, i), load(s, i) * make_float(DType::F32, 0.5));
  }));
}

TEST(CudaElementwise, FourAThreadWhereTheyAreAligned) {
  EXPECT_EQ(expect_equal(scaled_sum(1000, 64), "elementwise"), "4 elements a thread, 16 bytes an access");
  EXPECT_EQ(expect_equal(scaled_sum(700, 100), "elementwise"), "4 elements a thread, 16 bytes an access");
  EXPECT_EQ(expect_equal(scaled_sum(1000, 65), "elementwise"), "a thread per element");
  EXPECT_EQ(expect_equal(scaled_sum(3, 64), "elementwise"), "a thread per element");
  expect_equal(scaled_sum(1, 1), "elementwise");
}

TEST(CudaElementwise, EightHalvesAThread) {
  EXPECT_EQ(expect_equal(of_halves(scaled_sum(2000, 64)), "elementwise"), "8 elements a thread, 16 bytes an access");
  // Operands of both widths: those of four bytes say how many.
  TestFunction f = of_halves(scaled_sum(1000, 64));
  const Buffer r = f.fn.inputs[1], wide = make_buffer("r", DType::F32, r->shape);
  for (Stage& s : f.fn.stages)
    for (Expr& e : s.values)
      e = rewrite(e, [&](const Expr& x) -> Expr {
        const Cast* c = as<Cast>(x);
        const Load* l = c ? as<Load>(c->value) : nullptr;
        return l && l->buffer == r ? load(wide, l->index) : Expr();
      });
  f.fn.inputs[1] = wide;
  EXPECT_EQ(expect_equal(f, "elementwise"), "4 elements a thread, 16 bytes an access");
}

TestFunction transpose(const Dims& x_dims, const std::vector<size_t>& order, bool add) {
  FunctionBuilder b;
  Dims d;
  for (const size_t k : order) d.push_back(x_dims[k]);
  const Buffer x = b.input("x", x_dims), r = b.input("r", d);
  const Buffer y = b.compute("transpose", d, [&](const Exprs& i) {
    Exprs from(order.size());
    for (size_t k = 0; k < order.size(); k++) from[order[k]] = i[k];
    return load(x, from);
  });
  return b.take(b.compute("y", d, [&](const Exprs& i) { return add ? load(y, i) + load(r, i) : load(y, i); }));
}

TEST(CudaTranspose, Tiles) {
  for (const int64_t n : {16, 31, 32, 33, 100}) {
    expect_equal(transpose({n, 70}, {1, 0}, false), "transpose");
    expect_equal(transpose({2, n, 33}, {0, 2, 1}, true), "transpose");
  }
  expect_equal(transpose({2, 3, 20, 40}, {0, 3, 1, 2}, true), "transpose");  // channels last, and back
  expect_equal(transpose({40, 2, 20, 33}, {3, 2, 1, 0}, false), "transpose");
}

TEST(CudaTranspose, OneTileForOneOperand) {
  FunctionBuilder b;
  const Buffer x = b.input("x", {33, 20});
  const TestFunction f = b.take(b.compute("y", {20, 33}, [&](const Exprs& i) {
    return load(x, {i[1], i[0]}) * load(x, {i[1], i[0]});
  }));
  expect_equal(f, "transpose");
  int64_t tiles = 0;
  walk(schedule_cuda(f.fn, f.constant, *find_arch("sm_80")).body,
       [&](const Stmt& s) { return tiles += as<Alloc>(s) != nullptr, true; });
  EXPECT_EQ(tiles, 1);
}

TEST(CudaTranspose, ShortAxesAndEqualNeighboursDoNotNeedThem) {
  expect_equal(transpose({3, 1000}, {1, 0}, false), "elementwise");
  expect_equal(transpose({20, 30, 40}, {1, 0, 2}, false), "elementwise");
}

}  // namespace
}  // namespace tc::elementwise_test
