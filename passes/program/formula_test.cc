#include "passes/program/formula.h"

#include <gtest/gtest.h>

#include "ir/loop/build.h"

namespace tc::formula_test {
namespace {

// y[i] = max(sum(c, k) x[i * 2 + k, c] * w[k, c], 0), where k counts to `taps`.
TensorFn convolution_relu(int64_t taps) {
  TensorFn fn;
  const Buffer x = make_buffer("x", DType::F32, {9, 8}), w = make_buffer("w", DType::F32, {taps, 8});
  const Buffer s = make_buffer("s", DType::F32, {4}), y = make_buffer("y", DType::F32, {4});
  const Var o = make_var("o"), c = make_var("c"), k = make_var("k"), i = make_var("i");
  Stage sum;
  sum.kind = Stage::Kind::Reduce;
  sum.name = "conv1d";
  sum.axes = {{o, 4}};
  sum.raxes = {{c, 8}, {k, taps}};
  sum.values = {load(x, {Expr(o) * 2 + Expr(k), c}) * load(w, {k, c})};
  sum.combiner.op = Op::Add;
  sum.init = {zero(DType::F32)};
  sum.outputs = {s};
  Stage relu;
  relu.name = "relu";
  relu.axes = {{i, 4}};
  relu.values = {max(load(s, {i}), zero(DType::F32))};
  relu.outputs = {y};
  fn.inputs = {x, w};
  fn.stages = {sum, relu};
  fn.outputs = {y};
  return fn;
}

TEST(Formula, StagesThatAreReadOnceStandInPlace) {
  EXPECT_EQ(formula(convolution_relu(2)), "y[i] = max(sum(c, k) x[i * 2 + k][c] * w[k][c], 0)");
}

TEST(Formula, AxesOfOneElementAreNotNamed) {
  EXPECT_EQ(formula(convolution_relu(1)), "y[i] = max(sum(c) x[i * 2][c] * w[c], 0)");
}

TEST(Formula, ASumOfOneElementIsThatElement) {
  TensorFn fn = convolution_relu(1);
  fn.stages[0].raxes[0].extent = Dim(1);
  EXPECT_EQ(formula(fn), "y[i] = max(x[i * 2][0] * w[0], 0)");
}

TEST(Formula, ASumThatIsReadTwiceHasItsOwnLine) {
  TensorFn fn = convolution_relu(2);
  Stage& relu = fn.stages[1];
  relu.values[0] = relu.values[0] + relu.values[0];
  EXPECT_EQ(formula(fn), "s[o] = sum(c, k) x[o * 2 + k][c] * w[k][c]\ny[i] = max(s[i], 0) + max(s[i], 0)");
}

// y = x, then rows of u, of which there are n, are added or joined where data says.
TensorFn scattered(Op op) {
  const Buffer x = make_buffer("x", DType::F32, {Dim(9), Dim(4)}), at = make_buffer("at", DType::I64, {Dim(5), Dim(1)}),
               u = make_buffer("u", DType::F32, {Dim(5), Dim(4)}), n = make_buffer("n", DType::I64, {}),
               y = make_buffer("y", DType::F32, {Dim(9), Dim(4)});
  const Var i = make_var("i"), j = make_var("j"), e = make_var("e"), k = make_var("j");
  const Expr to = apply(Op::Index, {load(at, {Expr(e), 0}), 9});
  Stage s;
  s.name = "scatter";
  s.kind = Stage::Kind::Nest;
  s.outputs = {y};
  s.nest = seq({loop(i, 9, loop(j, 4, store(y, {Expr(i), Expr(j)}, load(x, {Expr(i), Expr(j)})))),
                loop(e, 5,
                     loop(k, 4,
                          if_then(Expr(e) < load(n, {}),
                                  store(y, {to, Expr(k)}, load(u, {Expr(e), Expr(k)}) * Expr(make_float(DType::F32, 2)),
                                        op))))});
  TensorFn fn;
  fn.inputs = {x, at, u, n};
  fn.outputs = {y};
  fn.stages = {s};
  return fn;
}

TEST(Formula, LoopsAreWhatTheyStore) {
  EXPECT_EQ(formula(scattered(Op::Add)), "y[i][j] = x[i][j]\nif e < n: y[at[e]][j] += u[e][j] * 2");
  EXPECT_EQ(formula(scattered(Op::Max)), "y[i][j] = x[i][j]\nif e < n: y[at[e]][j] = max(y[at[e]][j], u[e][j] * 2)");
  TensorFn other = scattered(Op::Add);
  other.stages[0].nest = seq({other.stages[0].nest, let(make_var("k"), 3, other.stages[0].nest)});
  EXPECT_EQ(formula(other), "y = scatter(...)");
}

}  // namespace
}  // namespace tc::formula_test
