// Pooling and depthwise convolutions on a GPU equal the definition bit for bit, without races.
#include <gtest/gtest.h>

#include "templates/cuda/test_exact.h"

namespace tc::window_test {
namespace {

using namespace tc::testing;

struct Shape2 {
  int64_t h, w, c, kernel, stride, pad;
};
// Depthwise convolution with padding in every read and bias, or a pool.
TestFunction window(Op op, const Shape2& s, bool depthwise) {
  FunctionBuilder b;
  const int64_t oh = (s.h + 2 * s.pad - s.kernel) / s.stride + 1, ow = (s.w + 2 * s.pad - s.kernel) / s.stride + 1;
  const Buffer x = b.input("x", {2, s.h, s.w, s.c});
  const Buffer weight = depthwise ? b.input("weight", {s.c, s.kernel, s.kernel}, true) : nullptr;
  const Buffer bias = b.input("bias", {s.c}, true);
  const Dims d{2, oh, ow, s.c};
  const Buffer y = b.reduce("window", op, d, {s.kernel, s.kernel}, [&](const Exprs& i, const Exprs& r) {
    const Expr h = i[1] * Expr(s.stride) + r[0] - Expr(s.pad), w = i[2] * Expr(s.stride) + r[1] - Expr(s.pad);
    Expr e = load(x, {i[0], h, w, i[3]});
    if (s.pad > 0)
      e = select(h >= Expr(0) && h < Expr(s.h) && w >= Expr(0) && w < Expr(s.w), e,
                 op == Op::Max ? lowest(DType::F32) : make_float(DType::F32, 0));
    return depthwise ? e * load(weight, {i[3], r[0], r[1]}) : e;
  });
  return b.take(b.compute("y", d, [&](const Exprs& i) { return load(y, i) + load(bias, {i[3]}); }));
}

TEST(CudaWindow, Depthwise) {
  for (const Shape2& s :
       {Shape2{9, 11, 16, 3, 1, 1}, Shape2{8, 8, 4, 3, 2, 1}, Shape2{12, 7, 36, 5, 1, 2}, Shape2{7, 7, 8, 3, 1, 0}})
    expect_equal(window(Op::Add, s, true), "window");
}

TEST(CudaWindow, Pools) {
  for (const Op op : {Op::Add, Op::Max})
    for (const Shape2& s : {Shape2{9, 11, 16, 2, 2, 0}, Shape2{13, 9, 12, 3, 2, 1}})
      expect_equal(window(op, s, false), "window");
}

TEST(CudaWindow, Halves) {
  for (const DType t : {DType::F16, DType::BF16}) {
    EXPECT_EQ(expect_equal(of_halves(window(Op::Add, {9, 11, 16, 3, 1, 1}, true), t), "window"),
              "two channels a thread, 4 bytes a read");
    EXPECT_EQ(expect_equal(of_halves(window(Op::Max, {9, 11, 12, 3, 2, 1}, false), t), "window"),
              "two channels a thread, 4 bytes a read");
  }
}

TEST(CudaWindow, ManyResultsAreComputedEightAndFourAtATime) {
  EXPECT_EQ(expect_equal(of_halves(window(Op::Add, {86, 86, 16, 2, 1, 0}, true), DType::F16), "window"),
            "eight channels a thread, 16 bytes a read");
  EXPECT_EQ(expect_equal(of_halves(window(Op::Max, {70, 70, 12, 2, 1, 0}, false), DType::F16), "window"),
            "four channels a thread, 8 bytes a read");
}

TEST(CudaWindow, OtherNumbersOfChannelsAreReadOneByOne) {
  expect_equal(window(Op::Max, {9, 9, 6, 3, 2, 1}, false), "per_result");
}

}  // namespace
}  // namespace tc::window_test
