#include "passes/program/name_axes.h"

#include <gtest/gtest.h>

#include "ir/loop/build.h"

namespace tc::name_axes_test {
namespace {

// y[i, j] = max(sum(k) x[i, k] * w[k, j], 0) in two stages whose axes are named as operators name them.
TensorFn dense_relu() {
  TensorFn fn;
  const Buffer x = make_buffer("x", DType::F32, {4, 8}), w = make_buffer("w", DType::F32, {8, 6});
  const Buffer d = make_buffer("d", DType::F32, {4, 6}), y = make_buffer("y", DType::F32, {4, 6});
  const Var row = make_var("row"), col = make_var("col"), k = make_var("k"), i = make_var("i"), j = make_var("j");
  Stage dense;
  dense.kind = Stage::Kind::Reduce;
  dense.name = "dense";
  dense.axes = {{row, 4}, {col, 6}};
  dense.raxes = {{k, 8}};
  dense.values = {load(x, {row, k}) * load(w, {k, col})};
  dense.combiner.op = Op::Add;
  dense.init = {zero(DType::F32)};
  dense.outputs = {d};
  Stage relu;
  relu.name = "relu";
  relu.axes = {{i, 4}, {j, 6}};
  relu.values = {max(load(d, {i, j}), zero(DType::F32))};
  relu.outputs = {y};
  fn.inputs = {x, w};
  fn.stages = {dense, relu};
  fn.outputs = {y};
  return fn;
}

TEST(NameAxes, ElementwiseStagesTakeOverTheNamesOfWhatTheyRead) {
  const TensorFn named = name_axes(dense_relu());
  verify(named);
  EXPECT_EQ(to_text(named.stages[1]), "relu (y: f32)[row:4, col:6] = max(d[row, col], 0.0f)\n");
  EXPECT_EQ(to_text(named.stages[0]), to_text(dense_relu().stages[0]));
}

TEST(NameAxes, APermutedReadKeepsItsNames) {
  TensorFn fn = dense_relu();
  const Var i = make_var("i"), j = make_var("j");
  const Buffer t = make_buffer("t", DType::F32, {6, 4});
  fn.stages[1].axes = {{i, 6}, {j, 4}};
  fn.stages[1].values = {load(fn.stages[0].outputs[0], {j, i})};
  fn.stages[1].outputs = fn.outputs = {t};
  EXPECT_EQ(to_text(name_axes(fn).stages[1]), "relu (t: f32)[i:6, j:4] = d[j, i]\n");
}

}  // namespace
}  // namespace tc::name_axes_test
