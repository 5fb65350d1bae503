#include "passes/program/kernel_name.h"

#include <gtest/gtest.h>

#include "ir/loop/build.h"

namespace tc::kernel_name_test {
namespace {

TensorFn with_stages(const std::vector<std::string>& names) {
  TensorFn fn;
  const Buffer x = make_buffer("x", DType::F32, {1, 128, 64});
  Buffer last = x;
  fn.inputs = {x};
  for (const std::string& name : names) {
    Stage s;
    s.name = name;
    s.axes = {{make_var("i"), 1}, {make_var("j"), 128}, {make_var("k"), 64}};
    s.values = {load(last, {Expr(s.axes[0].var), Expr(s.axes[1].var), Expr(s.axes[2].var)})};
    last = make_buffer(name, DType::F32, {1, 128, 64});
    s.outputs = {last};
    fn.stages.push_back(s);
  }
  fn.outputs = {last};
  return fn;
}

TEST(KernelName, OperatorsOfSeveralStagesCountOnce) {
  EXPECT_EQ(stage_names(with_stages({"max", "exp", "sum", "softmax"})), std::vector<std::string>{"softmax"});
  EXPECT_EQ(
      stage_names(with_stages({"add", "sum", "mean", "squared_deviation", "variance", "inv_std_dev", "layer_norm"})),
      (std::vector<std::string>{"add", "layer_norm"}));
  // without the operator's last stage they are stages of their own
  EXPECT_EQ(stage_names(with_stages({"max", "exp", "relu"})), (std::vector<std::string>{"max", "exp", "relu"}));
}

TEST(KernelName, RunsAreCountedAndKeysTellTextsApart) {
  const TensorFn fn = with_stages({"relu", "relu", "relu"});
  const std::string one = kernel_name(fn, "one"), two = kernel_name(fn, "two");
  EXPECT_TRUE(one.starts_with("relu_x3_128x64_")) << one;
  EXPECT_NE(one, two);
  EXPECT_EQ(one, kernel_name(fn, "one"));
}

TEST(KernelName, StaysUnder64Characters) {
  const TensorFn fn = with_stages(std::vector<std::string>(1, std::string(200, 'a')));
  EXPECT_LE(kernel_name(fn, "x").size(), 63u);
}

}  // namespace
}  // namespace tc::kernel_name_test
