// Operators of com.microsoft that are rewritten into a few of ONNX, against what those give or plain sums. Some of them
// ONNX Runtime has on GPUs only, so nothing else compares them.
#include <gtest/gtest.h>

#include "ir/ops/test_ops.h"

namespace tc::microsoft_layout_test {
namespace {

const std::string kMs = "com.microsoft";
using Ints = std::vector<int64_t>;

Constant f32(Dims d, const std::vector<double>& v) { return tensor_of(DType::F32, std::move(d), v); }
Constant random(Dims d, int seed) { return random_tensor(DType::F32, std::move(d), seed, 2, false); }
Constant run_one(const std::string& op, const std::vector<Constant>& in, const Attrs& attrs = {}) {
  return run_rewritten({op, in, attrs, 1, kMs})[0];
}
double gelu(double v) { return 0.5 * v * (1 + std::erf(v / std::sqrt(2.0))); }

TEST(MicrosoftLayout, ConvolutionsAndPoolsWithChannelsLast) {
  const Constant x = random({1, 2, 5, 4}, 1), last = permuted(x, {0, 2, 3, 1}), w = random({3, 2, 3, 3}, 2);
  const Attrs relu = {{"activation", std::string("Relu")}, {"pads", Ints{1, 1, 1, 1}}};
  const Constant want = run_op({"FusedConv", {x, w}, relu, 1, kMs})[0];
  EXPECT_EQ(values(run_one("NhwcFusedConv", {last, w}, relu)), values(permuted(want, {0, 2, 3, 1})));
  const Attrs pads = {{"pads", Ints{1, 1, 1, 1}}};
  EXPECT_EQ(values(run_one("NhwcConv", {last, permuted(w, {0, 2, 3, 1})}, pads)),
            values(permuted(run_op({"Conv", {x, w}, pads})[0], {0, 2, 3, 1})));
  const Attrs pool = {{"kernel_shape", Ints{2, 2}}, {"strides", Ints{2, 2}}};
  EXPECT_EQ(values(run_one("NhwcMaxPool", {last}, pool)),
            values(permuted(run_op({"MaxPool", {x}, pool})[0], {0, 2, 3, 1})));
}

TEST(MicrosoftLayout, BiasDropoutAddsTheBiasAndTheResidual) {
  const Constant x = f32({2, 2}, {1, 2, 3, 4}), bias = f32({2}, {10, 20}), residual = f32({2, 2}, {100, 200, 300, 400});
  EXPECT_EQ(values(run_one("BiasDropout", {x, bias})), (std::vector<double>{11, 22, 13, 24}));
  EXPECT_EQ(values(run_one("BiasDropout", {x, bias, residual})), (std::vector<double>{111, 222, 313, 424}));
}

TEST(MicrosoftLayout, GroupNormWithSiluAndASkip) {
  const Constant x = random({2, 4, 3, 2}, 1), last = permuted(x, {0, 2, 3, 1}), gamma = random({4}, 2),
                 beta = random({4}, 3);
  const Attrs attrs = {{"groups", int64_t(2)}, {"activation", int64_t(1)}};
  std::vector<double> want =
      values(permuted(run_op({"GroupNormalization", {x, gamma, beta}, {{"num_groups", int64_t(2)}}})[0], {0, 2, 3, 1}));
  for (double& v : want) v = v / (1 + std::exp(-v));
  EXPECT_LT(max_error(values(run_one("GroupNorm", {last, gamma, beta}, attrs)), want), 1e-5);
  // Half of the input comes by the skip, the rest by the bias.
  std::vector<double> less = values(last);
  for (double& v : less) v -= 1.5;
  const auto y = run_rewritten({"SkipGroupNorm",
                                {f32(last->dims, less), gamma, beta, f32({2, 4}, std::vector<double>(8, 1)),
                                 f32({4}, std::vector<double>(4, 0.5))},
                                attrs,
                                2,
                                kMs});
  EXPECT_LT(max_error(values(y[0]), want), 1e-5);
  EXPECT_LT(max_error(values(y[1]), values(last)), 1e-5);
}

TEST(MicrosoftLayout, SumsOfDiffusionModels) {
  const Constant x = f32({1, 1, 4}, {1, 2, 3, -1}), bias = f32({4}, {0, 1, -1, 0});
  EXPECT_LT(max_error(values(run_one("BiasSplitGelu", {x, bias})), {1 * gelu(2), 3 * gelu(-1)}), 1e-6);
  EXPECT_EQ(values(run_one("BiasAdd", {x, bias, x})), (std::vector<double>{2, 5, 5, -2}));
  const Constant flat = f32({1, 2, 2}, {1, 2, 3, -1});
  const Constant zero = f32({1, 1, 1}, {0});
  EXPECT_LT(max_error(values(run_one("BiasSoftmax", {flat, zero})),
                      values(run_op({"Softmax", {f32({1, 4}, {1, 2, 3, -1})}})[0])),
            1e-6);
}

TEST(MicrosoftLayout, OldFormsOfOperators) {
  EXPECT_EQ(values(run_one("Trilu", {f32({2, 2}, {1, 2, 3, 4})}, {{"upper", int64_t(0)}})),
            (std::vector<double>{1, 0, 3, 4}));
  EXPECT_EQ(run_one("ExpandDims", {f32({2}, {1, 2}), tensor_of(DType::I32, {}, {1})})->dims, (Dims{2, 1}));
  EXPECT_EQ(values(run_one("CDist", {f32({1, 2}, {0, 0}), f32({2, 2}, {3, 4, 0, 1})})), (std::vector<double>{25, 1}));
}

TEST(MicrosoftLayout, QuantizedLstmIsTheLstmOfItsWeights) {
  const Constant x = random({3, 1, 2}, 1), w = random_tensor(DType::I8, {1, 2, 8}, 2, 100),
                 r = random_tensor(DType::I8, {1, 2, 8}, 3, 100), scale = f32({1}, {0.01});
  const Constant zero = tensor_of(DType::I8, {1}, {3});
  std::vector<double> real_w(16), real_r(16);
  for (int64_t k = 0; k < 16; k++) {  // [inputs, columns] to [columns, inputs]
    real_w[size_t(k % 8 * 2 + k / 8)] = (double(w->as_int(k)) - 3) * 0.01;
    real_r[size_t(k % 8 * 2 + k / 8)] = double(r->as_int(k)) * 0.01;
  }
  const Attrs attrs = {{"hidden_size", int64_t(2)}};
  const Constant want = run_op({"LSTM", {x, f32({1, 8, 2}, real_w), f32({1, 8, 2}, real_r)}, attrs})[0];
  const std::vector<Constant> in = {x, w, r, nullptr, nullptr, nullptr, nullptr, nullptr, scale, zero, scale};
  EXPECT_LT(max_error(values(run_one("DynamicQuantizeLSTM", in, attrs)), values(want)), 1e-6);
}

TEST(MicrosoftLayout, FusedMatMulMovesBatchAxes) {
  const Constant a = random({3, 2, 4}, 1), b = random({2, 4, 5}, 2);  // a is read as [2, 3, 4]
  const Constant want = run_op({"MatMul", {permuted(a, {1, 0, 2}), b}})[0];
  EXPECT_EQ(values(run_op({"FusedMatMul", {a, b}, {{"transBatchA", int64_t(1)}}, 1, kMs})[0]), values(want));
}

}  // namespace
}  // namespace tc::microsoft_layout_test
