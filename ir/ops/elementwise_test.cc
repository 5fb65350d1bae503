#include <limits>

#include "ir/ops/test_cases.h"

namespace tc::case_testing::elementwise_test {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN(), kInf = std::numeric_limits<double>::infinity();
const std::vector<float> kSamples = {-30, -3.5, -1, -0.25, 0, 0.25, 0.5, 1, 2.5, 3.5, 20, 95};

struct Formula {
  std::string op;
  std::function<double(double)> reference;
  Attrs attrs = {};
};

double softplus(double x) { return std::max(x, 0.0) + std::log1p(std::exp(-std::fabs(x))); }
double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

const std::vector<Formula> kFormulas = {
    {"Abs", [](double x) { return std::fabs(x); }},
    {"Ceil", [](double x) { return std::ceil(x); }},
    {"Floor", [](double x) { return std::floor(x); }},
    {"Round", [](double x) { return std::nearbyint(x); }},
    {"Sign", [](double x) { return double((x > 0) - (x < 0)); }},
    {"Exp", [](double x) { return x > 88 ? kInf : std::exp(x); }},
    {"Log", [](double x) { return std::log(x); }},
    {"Sqrt", [](double x) { return std::sqrt(x); }},
    {"Reciprocal", [](double x) { return 1 / x; }},
    {"Erf", [](double x) { return std::erf(x); }},
    {"Atan", [](double x) { return std::atan(x); }},
    {"Asinh", [](double x) { return std::asinh(x); }},
    {"Sin", [](double x) { return std::sin(x); }},
    {"Tanh", [](double x) { return std::tanh(x); }},
    {"Relu", [](double x) { return std::max(x, 0.0); }},
    {"Sigmoid", sigmoid},
    {"Softplus", softplus},
    {"Softsign", [](double x) { return x / (1 + std::fabs(x)); }},
    {"Mish", [](double x) { return x * std::tanh(softplus(x)); }},
    {"Gelu", [](double x) { return 0.5 * x * (1 + std::erf(x / std::sqrt(2.0))); }},
    {"Gelu",
     [](double x) { return 0.5 * x * (1 + std::tanh(0.7978845608 * (x + 0.044715 * x * x * x))); },
     {{"approximate", std::string("tanh")}}},
    {"Elu", [](double x) { return x < 0 ? 2 * (std::exp(x) - 1) : x; }, {{"alpha", 2.0f}}},
    {"Selu", [](double x) { return 1.0507009873554805 * (x > 0 ? x : 1.6732632423543772 * (std::exp(x) - 1)); }},
    {"Celu", [](double x) { return std::max(0.0, x) + std::min(0.0, 2 * (std::exp(x / 2) - 1)); }, {{"alpha", 2.0f}}},
    {"LeakyRelu", [](double x) { return x < 0 ? 0.1 * x : x; }, {{"alpha", 0.1f}}},
    {"ThresholdedRelu", [](double x) { return x > 1 ? x : 0; }},
    {"Shrink", [](double x) { return x < -1  ? x + 0.5
                                     : x > 1 ? x - 0.5
                                             : 0; }, {{"lambd", 1.0f}, {"bias", 0.5f}}},
    {"HardSigmoid", [](double x) { return std::max(0.0, std::min(1.0, 0.2 * x + 0.5)); }},
    {"HardSwish", [](double x) { return x * std::max(0.0, std::min(1.0, x / 6 + 0.5)); }},
    {"Swish", [](double x) { return x * sigmoid(0.5 * x); }, {{"alpha", 0.5f}}},
};

TEST(Elementwise, FormulasInSinglePrecision) {
  const Constant x = floats({int64_t(kSamples.size())}, kSamples);
  for (const Formula& f : kFormulas) {
    SCOPED_TRACE(f.op);
    std::vector<double> want;
    for (float v : kSamples) want.push_back(f.reference(double(v)));
    expect_near(values({f.op, {x}, f.attrs}), want, 2e-6);
  }
}

TEST(Elementwise, SwiGluGatesByAnotherOperand) {
  const std::vector<double> y = values({"SwiGLU", {floats({2}, {1, -2}), floats({2}, {3, 4})}});
  expect_near(y, {3 * sigmoid(1), -8 * sigmoid(-2)});
}

TEST(Elementwise, NarrowFloatsAreComputedAsSingle) {
  // 1 + 2^-11 is no f16: the sum of three keeps it only if the partial sum was not rounded.
  const Constant a = numbers(DType::F16, {1}, {1}), b = numbers(DType::F16, {1}, {1.0 / 2048});
  EXPECT_EQ(values({"Sum", {a, b, b}}), std::vector<double>{1 + 1.0 / 1024});
  EXPECT_EQ(run({"Sum", {a, b, b}}).outputs[0]->dtype, DType::F16);
}

TEST(Elementwise, IntegersWrapAndDivideTowardZero) {
  auto i8 = [](const std::vector<double>& v) { return numbers(DType::I8, {int64_t(v.size())}, v); };
  EXPECT_EQ(values({"Add", {i8({127, -128}), i8({1, -1})}}), (std::vector<double>{-128, 127}));
  EXPECT_EQ(values({"Div", {i8({7, -7, 5}), i8({2, 2, 0})}}), (std::vector<double>{3, -3, 0}));
  EXPECT_EQ(values({"Mod", {i8({7, -7, 7, -7}), i8({3, 3, -3, -3})}}), (std::vector<double>{1, 2, -2, -1}));
  EXPECT_EQ(values({"Mod", {i8({7, -7, 7, -7}), i8({3, 3, -3, -3})}, {{"fmod", int64_t(1)}}}),
            (std::vector<double>{1, -1, 1, -1}));
}

TEST(Elementwise, ShiftsBeyondTheWidth) {
  const Constant x = numbers(DType::I8, {4}, {-128, -128, 64, 1}), by = numbers(DType::I8, {4}, {2, 9, -1, 7});
  EXPECT_EQ(values({"BitShift", {x, by}, {{"direction", std::string("RIGHT")}}}), (std::vector<double>{-32, -1, 0, 0}));
  EXPECT_EQ(values({"BitShift", {x, by}, {{"direction", std::string("LEFT")}}}), (std::vector<double>{0, 0, 0, -128}));
}

TEST(Elementwise, PowTakesTheTypeOfItsBase) {
  const Result r = run({"Pow", {ints({3}, {2, -3, 10}), floats({3}, {3, 3, 0.5})}});
  EXPECT_EQ(r.outputs[0]->dtype, DType::I64);
  EXPECT_EQ(values(r.outputs[0]), (std::vector<double>{8, -27, 3}));
  EXPECT_EQ(values({"Pow", {floats({2}, {4, 2}), numbers(DType::I32, {}, {-2})}}),
            (std::vector<double>{1.0 / 16, 0.25}));
}

TEST(Elementwise, NanGoesThroughMaxMinClipAndRelu) {
  const Constant x = floats({3}, {float(kNan), -2, 2}), lo = floats({}, {-1}), hi = floats({}, {1});
  expect_near(values({"Max", {x, lo}}), {kNan, -1, 2});
  expect_near(values({"Min", {x, hi}}), {kNan, -2, 1});
  expect_near(values({"Clip", {x, lo, hi}}), {kNan, -1, 1});
  expect_near(values({"Clip", {x, hi, lo}}), {kNan, -1, -1});  // lower bound above the upper one: the upper one wins
  expect_near(values({"Clip", {x, nullptr, hi}}), {kNan, -2, 1});
  expect_near(values({"Relu", {x}}), {kNan, 0, 2});
}

TEST(Elementwise, IsInfSidesAndIsNan) {
  const Constant x = floats({4}, {float(kInf), -float(kInf), float(kNan), 1});
  EXPECT_EQ(values({"IsInf", {x}}), (std::vector<double>{1, 1, 0, 0}));
  EXPECT_EQ(values({"IsInf", {x}, {{"detect_negative", int64_t(0)}}}), (std::vector<double>{1, 0, 0, 0}));
  EXPECT_EQ(values({"IsInf", {x}, {{"detect_positive", int64_t(0)}}}), (std::vector<double>{0, 1, 0, 0}));
  EXPECT_EQ(values({"IsNaN", {x}}), (std::vector<double>{0, 0, 1, 0}));
}

TEST(Elementwise, BroadcastsBothWays) {
  const Result r = run({"Add", {floats({2, 1}, {10, 20}), floats({3}, {1, 2, 3})}});
  EXPECT_EQ(r.outputs[0]->dims, (Dims{2, 3}));
  EXPECT_EQ(values(r.outputs[0]), (std::vector<double>{11, 12, 13, 21, 22, 23}));
  EXPECT_EQ(pattern_of(r.fn), Pattern::Broadcast);
  EXPECT_EQ(pattern_of(run({"Relu", {floats({2}, {1, 2})}}).fn), Pattern::Elementwise);
  EXPECT_NE(error_of({"Add", {floats({2}, {1, 2}), floats({3}, {1, 2, 3})}}), "");
  EXPECT_NE(error_of({"Add", {floats({1}, {1}), ints({1}, {1})}}), "");
}

TEST(Casts, WrapSaturateAndRound) {
  auto cast = [](const Constant& x, DType t, Attrs attrs = {}) {
    attrs["to"] = int64_t(t);
    return values({"Cast", {x}, attrs});
  };
  EXPECT_EQ(cast(ints({3}, {200, -129, 256}), DType::I8), (std::vector<double>{-56, 127, 0}));
  EXPECT_EQ(cast(floats({6}, {-9, 7.4f, 15, 2.5, 3.5, -0.6f}), DType::I4), (std::vector<double>{7, 7, -1, 2, 4, -1}));
  EXPECT_EQ(cast(floats({3}, {15.4f, 15.6f, -1.2f}), DType::U4), (std::vector<double>{15, 0, 15}));
  EXPECT_EQ(cast(numbers(DType::F16, {2}, {0.75, -1.75}), DType::I2), (std::vector<double>{1, -2}));
  EXPECT_EQ(cast(floats({2}, {7.9f, -7.9f}), DType::I8), (std::vector<double>{7, -7}));
  EXPECT_EQ(cast(floats({3}, {-0.0f, float(kNan), 0.5}), DType::Bool), (std::vector<double>{0, 1, 1}));
  EXPECT_EQ(cast(floats({2}, {1000, 0.3f}), DType::F8E4M3FN), (std::vector<double>{448, 0.3125}));
  expect_near(cast(floats({1}, {1000}), DType::F8E4M3FN, {{"saturate", int64_t(0)}}), {kNan});
  const Constant x = floats({4}, {1, 1.25, 1.5, 3});
  auto mode = [](const char* m) { return Attrs{{"round_mode", std::string(m)}}; };
  EXPECT_EQ(cast(x, DType::F8E8M0), (std::vector<double>{1, 2, 2, 4}));
  EXPECT_EQ(cast(x, DType::F8E8M0, mode("down")), (std::vector<double>{1, 1, 1, 2}));
  EXPECT_EQ(cast(x, DType::F8E8M0, mode("nearest")), (std::vector<double>{1, 1, 2, 4}));
  EXPECT_EQ(values({"BitCast", {floats({1}, {1})}, {{"to", int64_t(DType::U32)}}}), std::vector<double>{0x3f800000});
  auto bits = [](DType from, double v, DType to) {
    return values({"BitCast", {numbers(from, {1}, {v})}, {{"to", int64_t(to)}}})[0];
  };
  EXPECT_EQ(bits(DType::U4, 15, DType::I4), -1);
  EXPECT_EQ(bits(DType::F4E2M1, -6, DType::I4), -1);
  EXPECT_EQ(bits(DType::I4, -7, DType::F4E2M1), -0.5);
  EXPECT_EQ(bits(DType::F16, -2, DType::I16), -16384);
  EXPECT_EQ(bits(DType::I8, 2, DType::Bool), 1);
  EXPECT_NE(error_of({"BitCast", {floats({1}, {1})}, {{"to", int64_t(DType::U16)}}}), "");
}

TEST(Dropout, InferencePassesTrainingDrops) {
  const Constant x = floats({1000}, std::vector<float>(1000, 2)), half = floats({}, {0.5});
  auto flag = [](double v) { return numbers(DType::Bool, {}, {v}); };
  EXPECT_EQ(values({"Dropout", {x, half, flag(0)}}), values(x));
  const Result r = run({"Dropout", {x, half, flag(1)}, {{"seed", int64_t(1)}}, {2}, {}, 2});
  const auto y = values(r.outputs[0]), mask = values(r.outputs[1]);
  int kept = 0;
  for (size_t k = 0; k < y.size(); k++) {
    EXPECT_EQ(y[k], mask[k] * 4);
    kept += int(mask[k]);
  }
  EXPECT_NEAR(kept, 500, 80);
}

// Numbers of a formula are not cut off to fit the type of the elements.
TEST(Elementwise, FormulasWithFractionsAreOfFloats) {
  for (const char* op : {"HardSigmoid", "HardSwish", "LeakyRelu", "Reciprocal", "Softsign", "Gelu"})
    for (DType t : {DType::U8, DType::I32, DType::I64}) EXPECT_NE(error_of({op, {numbers(t, {1}, {1})}}), "") << op;
  EXPECT_EQ(values({"ThresholdedRelu", {numbers(DType::I32, {2}, {1, 2})}}), (std::vector<double>{0, 2}));
  EXPECT_NE(error_of({"ThresholdedRelu", {numbers(DType::I32, {1}, {1})}, {{"alpha", 0.5f}}}), "");
  EXPECT_NE(error_of({"ThresholdedRelu", {numbers(DType::U8, {1}, {1})}, {{"alpha", 256.0f}}}), "");
}

}  // namespace
}  // namespace tc::case_testing::elementwise_test
