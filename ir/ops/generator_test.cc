#include <complex>

#include "ir/ops/test_cases.h"

namespace tc::case_testing::generator_test {
namespace {

TEST(Range, CountsExactly) {
  EXPECT_EQ(values({"Range", {ints({}, {10}), ints({}, {4}), ints({}, {-2})}}), (std::vector<double>{10, 8, 6}));
  EXPECT_EQ(values({"Range", {floats({}, {0}), floats({}, {1}), floats({}, {0.25})}}),
            (std::vector<double>{0, 0.25, 0.5, 0.75}));
  EXPECT_EQ(values({"Range", {ints({}, {5}), ints({}, {5}), ints({}, {1})}}), (std::vector<double>{}));
  EXPECT_NE(error_of({"Range", {ints({}, {0}), ints({}, {5}), ints({}, {0})}}), "");
  EXPECT_NE(error_of({"Range", {floats({}, {0}), floats({}, {INFINITY}), floats({}, {1})}}), "");
  EXPECT_NE(error_of({"Range", {ints({}, {INT64_MIN}), ints({}, {INT64_MAX}), ints({}, {1})}}), "");
}

TEST(Shape, StartAndEnd) {
  const Constant x = floats({2, 3, 4}, std::vector<float>(24));
  EXPECT_EQ(values({"Shape", {x}}), (std::vector<double>{2, 3, 4}));
  EXPECT_EQ(values({"Shape", {x}, {{"start", int64_t(-2)}}}), (std::vector<double>{3, 4}));
  EXPECT_EQ(values({"Shape", {x}, {{"start", int64_t(1)}, {"end", int64_t(-1)}}}), (std::vector<double>{3}));
  EXPECT_EQ(values({"Shape", {x}, {{"start", int64_t(3)}}}), (std::vector<double>{}));
  EXPECT_EQ(values({"Size", {x}}), std::vector<double>{24});
  EXPECT_TRUE(run({"Shape", {x}}).fn.inputs.empty());
}

TEST(Fills, ConstantOfShapeEyeOneHotTrilu) {
  EXPECT_EQ(values({"ConstantOfShape", {ints({1}, {2})}, {{"value", numbers(DType::I8, {1}, {-3})}}}),
            (std::vector<double>{-3, -3}));
  EXPECT_EQ(values({"ConstantOfShape", {ints({0}, {})}}), std::vector<double>{0});
  const Constant x = floats({2, 3}, {1, 2, 3, 4, 5, 6});
  EXPECT_EQ(values({"EyeLike", {x}, {{"k", int64_t(1)}}}), (std::vector<double>{0, 1, 0, 0, 0, 1}));
  EXPECT_EQ(values({"OneHot", {ints({3}, {0, -1, 5}), ints({}, {2}), floats({2}, {7, 9})}}),
            (std::vector<double>{9, 7, 7, 9, 7, 7}));
  EXPECT_EQ(values({"Trilu", {x}}), (std::vector<double>{1, 2, 3, 0, 5, 6}));
  EXPECT_EQ(values({"Trilu", {x, ints({}, {-1})}, {{"upper", int64_t(0)}}, {1}}),
            (std::vector<double>{0, 0, 0, 4, 0, 0}));
}

TEST(Windows, PeriodicAndSymmetric) {
  expect_near(values({"HannWindow", {ints({}, {4})}}), {0, 0.5, 1, 0.5});
  expect_near(values({"HannWindow", {ints({}, {3})}, {{"periodic", int64_t(0)}}}), {0, 1, 0});
  expect_near(values({"HammingWindow", {ints({}, {2})}}), {25.0 / 46 - 21.0 / 46, 1});
  expect_near(values({"BlackmanWindow", {ints({}, {2})}}), {0, 1});
}

std::vector<std::complex<double>> transform(const std::vector<std::complex<double>>& x, double sign) {
  const double n = double(x.size());
  std::vector<std::complex<double>> y(x.size());
  for (size_t k = 0; k < x.size(); k++)
    for (size_t m = 0; m < x.size(); m++) y[k] += x[m] * std::polar(1.0, sign * 2 * M_PI * double(k * m) / n);
  return y;
}

TEST(Dft, ForwardInverseAndOneSided) {
  const std::vector<float> signal = {1, -2, 3.5, 0.25, 7};
  std::vector<std::complex<double>> x(signal.begin(), signal.end());
  const auto want = transform(x, -1);
  std::vector<double> pairs, half;
  for (size_t k = 0; k < want.size(); k++) {
    for (double part : {want[k].real(), want[k].imag()}) {
      pairs.push_back(part);
      if (k < 3) half.push_back(part);
    }
  }
  const Constant in = floats({1, 5, 1}, signal);
  expect_near(values({"DFT", {in}}), pairs, 1e-6);
  expect_near(values({"DFT", {in}, {{"onesided", int64_t(1)}}}), half, 1e-6);
  expect_near(
      values({"DFT", {in, nullptr, ints({}, {1})}, {}, {2}, {ValueType::tensor(DType::F32, to_shape({1, 5, 2}))}}),
      pairs, 1e-6);
  const Constant spectrum = run({"DFT", {in}}).outputs[0],
                 bins = run({"DFT", {in}, {{"onesided", int64_t(1)}}}).outputs[0];
  std::vector<double> back;
  for (float v : signal) back.insert(back.end(), {double(v), 0});
  expect_near(values({"DFT", {spectrum}, {{"inverse", int64_t(1)}}}), back, 1e-6);
  expect_near(values({"DFT", {bins, ints({}, {5})}, {{"inverse", int64_t(1)}, {"onesided", int64_t(1)}}}),
              {signal.begin(), signal.end()}, 1e-6);
}

TEST(Stft, FramesOverlap) {
  const Constant x = floats({1, 6, 1}, {1, 2, 3, 4, 5, 6});
  const Result r = run({"STFT", {x, ints({}, {2}), nullptr, ints({}, {4})}});
  EXPECT_EQ(r.outputs[0]->dims, (Dims{1, 2, 3, 2}));
  expect_near(values(r.outputs[0]), {10, 0, -2, 2, -2, 0, 18, 0, -2, 2, -2, 0});
  const Call late = {"STFT",
                     {x, ints({}, {2}), nullptr, ints({}, {4})},
                     {},
                     {1, 3},
                     {ValueType::tensor(DType::F32, to_shape({1, 2, 3, 2}))}};
  expect_near(values(late), values(r.outputs[0]));
  Call far = late;
  far.inputs[1] = ints({}, {3});
  EXPECT_NE(error_of(far), "");
}

TEST(Random, DependsOnSeedAndIndexOnly) {
  auto attrs = [](float seed) { return Attrs{{"shape", std::vector<int64_t>{2000}}, {"seed", seed}}; };
  const auto a = values({"RandomUniform", {}, attrs(1)});
  EXPECT_EQ(a, values({"RandomUniform", {}, attrs(1)}));
  EXPECT_NE(a, values({"RandomUniform", {}, attrs(2)}));
  double mean = 0, square = 0;
  for (double v : a) {
    EXPECT_TRUE(v >= 0 && v <= 1);
    mean += v / 2000;
  }
  EXPECT_NEAR(mean, 0.5, 0.03);
  mean = 0;
  for (double v : values({"RandomNormal", {}, attrs(3)})) mean += v / 2000, square += v * v / 2000;
  EXPECT_NEAR(mean, 0, 0.1);
  EXPECT_NEAR(square, 1, 0.1);
  for (double v : values({"Multinomial", {floats({1, 3}, {-100, 0, -100})}, {{"sample_size", int64_t(20)}}}))
    EXPECT_EQ(v, 1);
}

}  // namespace
}  // namespace tc::case_testing::generator_test
