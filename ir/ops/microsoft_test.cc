#include <gtest/gtest.h>

#include "ir/ops/test_ops.h"

namespace tc::microsoft_test {
namespace {

const std::string kMs = "com.microsoft";

Constant f32(Dims d, const std::vector<double>& v) { return tensor_of(DType::F32, std::move(d), v); }
Constant scale(double v) { return f32({}, {v}); }
Constant u8(Dims d, const std::vector<double>& v) { return tensor_of(DType::U8, std::move(d), v); }
Constant zero(double v) { return u8({}, {v}); }

TEST(Microsoft, GeluIsExactOrByTanh) {
  const Constant x = f32({2, 2}, {-1, 0.5, 2, 0}), bias = f32({2}, {1, -0.5});
  const std::vector<double> sums = {0, 0, 3, -0.5};
  std::vector<double> exact, fast;
  for (double v : sums) {
    exact.push_back(0.5 * v * (1 + std::erf(v / std::sqrt(2.0))));
    fast.push_back(0.5 * v * (1 + std::tanh(0.7978845608028654 * (v + 0.044715 * v * v * v))));
  }
  EXPECT_LT(max_error(values(run_op({"BiasGelu", {x, bias}, {}, 1, kMs})[0]), exact), 1e-6);
  EXPECT_LT(max_error(values(run_op({"FastGelu", {x, bias}, {}, 1, kMs})[0]), fast), 1e-6);
}

TEST(Microsoft, SkipLayerNormalizationGivesTheSum) {
  const Constant x = f32({1, 2, 2}, {1, 2, 3, 4}), skip = f32({2, 2}, {1, 0, 0, 1}), gamma = f32({2}, {1, 2}),
                 beta = f32({2}, {5, 0});
  const auto y = run_op({"SkipLayerNormalization", {x, skip, gamma, beta, f32({2}, {0, 4})}, {}, 4, kMs});
  EXPECT_EQ(values(y[3]), (std::vector<double>{2, 6, 3, 9}));
  EXPECT_LT(max_error(values(y[0]), {4, 2, 4, 2}), 1e-6);
  EXPECT_EQ(values(y[1]), (std::vector<double>{4, 6}));
  EXPECT_LT(max_error(values(y[2]), {0.5, 1.0 / 3}), 1e-6);
}

TEST(Microsoft, FusedOperatorsAreTheirParts) {
  const Constant x = random_tensor(DType::F32, {1, 2, 4, 4}, 1), w = random_tensor(DType::F32, {3, 2, 3, 3}, 2);
  const Constant conv = run_op({"Conv", {x, w}})[0], z = random_tensor(DType::F32, conv->dims, 3);
  std::vector<double> want = values(conv);
  for (size_t k = 0; k < want.size(); k++) want[k] = std::max(0.0, want[k] + z->as_double(int64_t(k)));
  EXPECT_EQ(values(run_op({"FusedConv", {x, w, nullptr, z}, {{"activation", std::string("Relu")}}, 1, kMs})[0]), want);
  const Constant a = random_tensor(DType::F32, {2, 5, 3}, 1), b = random_tensor(DType::F32, {2, 4, 5}, 2);
  std::vector<double> product = values(run_op({"MatMul", {permuted(a, {0, 2, 1}), permuted(b, {0, 2, 1})}})[0]);
  for (double& v : product) v *= 0.5;
  EXPECT_EQ(values(run_op(
                {"FusedMatMul", {a, b}, {{"transA", int64_t(1)}, {"transB", int64_t(1)}, {"alpha", 0.5f}}, 1, kMs})[0]),
            product);
}

TEST(QLinear, ComputesOnRealValues) {
  const Constant a = u8({3}, {10, 20, 250}), b = u8({1}, {7});
  // (a - 10) * 0.5 + (7 - 3) * 2 = 8, 13, 128; divided by 1, plus 5
  EXPECT_EQ(
      values(run_op({"QLinearAdd", {a, scale(0.5), zero(10), b, scale(2), zero(3), scale(1), zero(5)}, {}, 1, kMs})[0]),
      (std::vector<double>{13, 18, 133}));
  EXPECT_EQ(
      values(run_op({"QLinearMul", {a, scale(0.5), zero(10), b, scale(2), zero(3), scale(4), zero(5)}, {}, 1, kMs})[0]),
      (std::vector<double>{5, 15, 245}));
  EXPECT_EQ(values(run_op({"QLinearConcat",
                           {scale(1), zero(0), a, scale(0.5), zero(10), b, scale(2), zero(3)},
                           {{"axis", int64_t(0)}},
                           1,
                           kMs})[0]),
            (std::vector<double>{0, 5, 120, 8}));
  EXPECT_EQ(values(run_op({"QLinearGlobalAveragePool",
                           {u8({1, 1, 3}, {10, 20, 60}), scale(1), zero(10), scale(0.5), zero(1)},
                           {},
                           1,
                           kMs})[0]),
            std::vector<double>{41});
}

TEST(QLinear, GemmGivesFloatsWithoutAResultScale) {
  const Constant a = u8({1, 2}, {11, 12}), b = tensor_of(DType::I8, {2, 2}, {1, -2, 3, 4}),
                 c = tensor_of(DType::I32, {2}, {10, 20});
  const Constant zb = tensor_of(DType::I8, {}, {0});
  EXPECT_EQ(values(run_op({"QGemm", {a, scale(0.5), zero(10), b, f32({2}, {1, 2}), zb, c}, {}, 1, kMs})[0]),
            (std::vector<double>{(1 + 6 + 10) * 0.5, -2 + 8 + 20}));
  EXPECT_EQ(values(run_op({"MatMulIntegerToFloat",
                           {a, b, scale(0.5), f32({2}, {1, 2}), zero(10), zb, f32({2}, {1, 1})},
                           {},
                           1,
                           kMs})[0]),
            (std::vector<double>{4.5, 7}));
}

TEST(QLinear, GemmRefusesABiasThatIsNoSum) {
  const Constant a = u8({1, 2}, {11, 12}), b = u8({2, 2}, {1, 2, 3, 4}), c = u8({2}, {10, 20});
  const Constant longer = f32({4}, {1, 1, 2, 2});
  EXPECT_NE(op_error({"MatMulIntegerToFloat", {a, b, scale(0.5), scale(1), zero(10), zero(0), longer}, {}, 1, kMs}),
            "");
  EXPECT_NE(op_error({"MatMulIntegerToFloat", {a, b, longer, scale(1), zero(10), zero(0)}, {}, 1, kMs}), "");
  EXPECT_NE(op_error({"QGemm", {a, scale(0.5), zero(10), b, scale(1), zero(0), c}, {}, 1, kMs}).find("int32"),
            std::string::npos);
}

TEST(QLinear, DynamicQuantizeMatMulIsCloseToTheRealProduct) {
  const Constant a = random_tensor(DType::F32, {3, 8}, 1, 2, false), b = random_tensor(DType::I8, {8, 4}, 2, 100);
  std::vector<double> real = values(b);
  for (double& v : real) v *= 0.01;
  const auto want = values(run_op({"MatMul", {a, f32({8, 4}, real)}})[0]);
  EXPECT_LT(max_error(values(run_op({"DynamicQuantizeMatMul", {a, b, scale(0.01)}, {}, 1, kMs})[0]), want), 0.05);
}

}  // namespace
}  // namespace tc::microsoft_test
