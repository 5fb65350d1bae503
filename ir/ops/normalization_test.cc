#include <gtest/gtest.h>

#include "ir/ops/test_ops.h"

namespace tc::normalization_test {
namespace {

// (x - mean) / sqrt(variance + epsilon) in double, over groups of consecutive elements.
std::vector<double> normalized(std::vector<double> x, size_t group, double epsilon, bool center = true) {
  for (size_t b = 0; b < x.size(); b += group) {
    double mean = 0, var = 0;
    for (size_t k = 0; k < group; k++) mean += x[b + k] / double(group);
    if (!center) mean = 0;
    for (size_t k = 0; k < group; k++) var += (x[b + k] - mean) * (x[b + k] - mean) / double(group);
    for (size_t k = 0; k < group; k++) x[b + k] = (x[b + k] - mean) / std::sqrt(var + epsilon);
  }
  return x;
}

Constant shifted(const Constant& c, double by) {
  std::vector<double> v = values(c);
  for (double& x : v) x += by;
  return tensor_of(c->dtype, c->dims, v);
}

TEST(LayerNormalization, SurvivesALargeMean) {
  const Constant x = shifted(random_tensor(DType::F32, {3, 4, 5}, 1, 1, false), 10000);
  const Constant scale = random_tensor(DType::F32, {4, 5}, 2), bias = random_tensor(DType::F32, {5}, 3);
  OpRun r{"LayerNormalization", {x, scale, bias}, {{"axis", int64_t(1)}}, 3};
  r.cuda_tolerance = 1e-2;  // the mean is rounded to a thousandth
  const auto y = run_op(r);
  std::vector<double> want = normalized(values(x), 20, 1e-5);
  for (size_t k = 0; k < want.size(); k++)
    want[k] = want[k] * scale->as_double(int64_t(k % 20)) + bias->as_double(int64_t(k % 5));
  EXPECT_LT(max_error(values(y[0]), want), 1e-2);  // E[x^2] - mean^2 in f32 would be off by several units
  EXPECT_EQ(y[1]->dims, (Dims{3, 1, 1}));
  EXPECT_NEAR(values(y[1])[0], 10000, 1);
}

TEST(LayerNormalization, ComputesHalvesInSingle) {
  const Constant x = random_tensor(DType::F16, {2, 64}, 1, 300, false);
  const auto y = run_op({"LayerNormalization", {x, tensor_of(DType::F16, {64}, std::vector<double>(64, 1))}, {}, 3});
  EXPECT_EQ(y[0]->dtype, DType::F16);
  EXPECT_EQ(y[2]->dtype, DType::F32);
  EXPECT_LT(max_error(values(y[0]), normalized(values(x), 64, 1e-5)), 1e-3);
}

TEST(RMSNormalization, DividesByTheRoot) {
  const Constant x = random_tensor(DType::F32, {2, 3, 4}, 1, 4, false);
  EXPECT_LT(max_error(values(run_op({"RMSNormalization", {x, tensor_of(DType::F32, {4}, {2, 2, 2, 2})}})[0]),
                      [&] {
                        std::vector<double> v = normalized(values(x), 4, 1e-5, false);
                        for (double& e : v) e *= 2;
                        return v;
                      }()),
            1e-6);
}

TEST(InstanceAndGroupNormalization, AgreeWithTheDefinition) {
  const Constant x = random_tensor(DType::F32, {2, 6, 3, 4}, 1, 4, false);
  const Constant scale = random_tensor(DType::F32, {6}, 2), bias = random_tensor(DType::F32, {6}, 3);
  auto affine = [&](std::vector<double> v) {
    for (size_t k = 0; k < v.size(); k++) {
      const int64_t c = int64_t(k / 12 % 6);
      v[k] = v[k] * scale->as_double(c) + bias->as_double(c);
    }
    return v;
  };
  EXPECT_LT(max_error(values(run_op({"InstanceNormalization", {x, scale, bias}})[0]),
                      affine(normalized(values(x), 12, 1e-5))),
            1e-5);
  EXPECT_LT(max_error(values(run_op({"GroupNormalization", {x, scale, bias}, {{"num_groups", int64_t(3)}}})[0]),
                      affine(normalized(values(x), 24, 1e-5))),
            1e-5);
  EXPECT_EQ(op_error({"GroupNormalization", {x, scale, bias}, {{"num_groups", int64_t(4)}}}),
            "num_groups is 4, which does not divide the 6 channels");
}

TEST(BatchNormalization, UsesGivenStatisticsOrItsOwn) {
  auto f32 = [](std::vector<double> v) { return tensor_of(DType::F32, {int64_t(v.size())}, v); };
  const Constant x = tensor_of(DType::F32, {2, 2, 1}, {1, 10, 3, 30});
  const std::vector<Constant> in = {x, f32({2, 1}), f32({0, 5}), f32({1, 20}), f32({4, 25})};
  EXPECT_LT(max_error(values(run_op({"BatchNormalization", in, {{"epsilon", 0.0f}}})[0]), {0, 3, 2, 7}), 1e-6);
  const auto y =
      run_op({"BatchNormalization", in, {{"epsilon", 0.0f}, {"training_mode", int64_t(1)}, {"momentum", 0.75f}}, 3});
  EXPECT_LT(max_error(values(y[0]), {-2, 4, 2, 6}), 1e-6);
  EXPECT_LT(max_error(values(y[1]), {1.25, 20}), 1e-6);          // 0.75 * old + 0.25 * mean
  EXPECT_LT(max_error(values(y[2]), {3.25, 18.75 + 25}), 1e-6);  // variances 1 and 100
}

TEST(LRN, SumsOverNeighbouringChannels) {
  const Constant x = tensor_of(DType::F32, {1, 4, 1}, {1, 2, 3, 4});
  // size 2: from c - 0 to c + 1
  const std::vector<double> sums = {5, 13, 25, 16};
  std::vector<double> want;
  for (int c = 0; c < 4; c++) want.push_back((c + 1) / std::pow(2 + 3.0 / 2 * sums[size_t(c)], 0.5));
  EXPECT_LT(
      max_error(
          values(run_op({"LRN", {x}, {{"size", int64_t(2)}, {"alpha", 3.0f}, {"beta", 0.5f}, {"bias", 2.0f}}})[0]),
          want),
      1e-6);
}

TEST(MeanVarianceNormalization, NormalisesOverItsAxes) {
  const Constant x = random_tensor(DType::F32, {3, 8}, 1, 4, false);
  EXPECT_LT(max_error(values(run_op({"MeanVarianceNormalization", {x}, {{"axes", std::vector<int64_t>{-1}}}})[0]),
                      normalized(values(x), 8, 0)),
            1e-5);
}

}  // namespace
}  // namespace tc::normalization_test
