#include "passes/program/first_slice.h"

#include <gtest/gtest.h>

#include "ir/interpreter.h"
#include "ir/loop/build.h"
#include "ir/test_random.h"

namespace tc::first_slice_test {
namespace {

using testing::small_integers;

// t[i, j] = a[i, j] + 1; y[i, n] = sum(j) t[i, j] * w[j, n] + b[2 - i, n], three rows.
struct Case {
  Buffer a = make_buffer("a", DType::F32, {Dim(3), Dim(4)}), w = make_buffer("w", DType::F32, {Dim(4), Dim(5)}),
         b = make_buffer("b", DType::F32, {Dim(3), Dim(5)}), t = make_buffer("t", DType::F32, {Dim(3), Dim(4)}),
         s = make_buffer("s", DType::F32, {Dim(3), Dim(5)}), y = make_buffer("y", DType::F32, {Dim(3), Dim(5)});
  TensorFn fn;
  Case() {
    const Var i = make_var("i"), j = make_var("j"), n = make_var("n");
    Stage more;
    more.name = "t";
    more.axes = {{i, Dim(3)}, {j, Dim(4)}};
    more.values = {load(a, {Expr(i), Expr(j)}) + make_const(DType::F32, 1)};
    more.outputs = {t};
    Stage sum;
    sum.kind = Stage::Kind::Reduce;
    sum.name = "s";
    sum.axes = {{i, Dim(3)}, {n, Dim(5)}};
    sum.raxes = {{j, Dim(4)}};
    sum.values = {load(t, {Expr(i), Expr(j)}) * load(w, {Expr(j), Expr(n)})};
    sum.combiner.op = Op::Add;
    sum.init = {make_const(DType::F32, 0)};
    sum.outputs = {s};
    Stage last;
    last.name = "y";
    last.axes = {{i, Dim(3)}, {n, Dim(5)}};
    last.values = {load(s, {Expr(i), Expr(n)}) + load(b, {Expr(2) - Expr(i), Expr(n)})};
    last.outputs = {y};
    fn.inputs = {a, w, b};
    fn.stages = {more, sum, last};
    fn.outputs = {y};
  }
};

TEST(FirstSlice, ComputesTheFirstRowOfAllStages) {
  const Case c;
  const auto one = first_slice(c.fn, 0);
  ASSERT_TRUE(one);
  verify(*one);
  EXPECT_EQ(static_dims(one->stages[0].outputs[0]->shape), (Dims{1, 4}));
  EXPECT_EQ(static_dims(one->outputs[0]->shape), (Dims{1, 5}));
  // What is read in another row stays as long as it is.
  EXPECT_EQ(static_dims(one->inputs[0]->shape), (Dims{1, 4}));
  EXPECT_EQ(static_dims(one->inputs[2]->shape), (Dims{3, 5}));
  const Constant a = small_integers({3, 4}, 1), w = small_integers({4, 5}, 2), b = small_integers({3, 5}, 3);
  const Constant all = evaluate(c.fn, {a, w, b})[0];
  const Constant row = evaluate(*one, {make_constant(DType::F32, {1, 4}, a->bytes.get()), w, b})[0];
  for (int n = 0; n < 5; n++) EXPECT_EQ(row->as<float>()[n], all->as<float>()[n]);
}

TEST(FirstSlice, OfColumnsOperandsStay) {
  const Case c;
  const auto one = first_slice(c.fn, 1);
  ASSERT_TRUE(one);
  EXPECT_EQ(static_dims(one->outputs[0]->shape), (Dims{3, 1}));
  EXPECT_EQ(static_dims(one->stages[0].outputs[0]->shape), (Dims{3, 4}));
  EXPECT_EQ(static_dims(one->inputs[1]->shape), (Dims{4, 5}));
}

}  // namespace
}  // namespace tc::first_slice_test
