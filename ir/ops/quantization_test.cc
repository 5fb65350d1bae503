#include <gtest/gtest.h>

#include "ir/ops/test_ops.h"

namespace tc::quantization_test {
namespace {

Constant f32(Dims d, const std::vector<double>& v) { return tensor_of(DType::F32, std::move(d), v); }

TEST(QuantizeLinear, RoundsHalfToEvenAndSaturates) {
  const Constant x = f32({7}, {-1000, -1.5, -0.5, 0.5, 1.5, 2.5, 1000});
  const Constant one = f32({}, {1});
  EXPECT_EQ(values(run_op({"QuantizeLinear", {x, one, tensor_of(DType::I8, {}, {1})}})[0]),
            (std::vector<double>{-128, -1, 1, 1, 3, 3, 127}));
  EXPECT_EQ(run_op({"QuantizeLinear", {x, one}})[0]->dtype, DType::U8);
  for (const auto& [t, low, high] :
       {std::tuple{DType::I4, -8, 7}, {DType::U4, 0, 15}, {DType::I2, -2, 1}, {DType::U16, 0, 1000}}) {
    const auto y = values(run_op({"QuantizeLinear", {x, one}, {{"output_dtype", int64_t(t)}}})[0]);
    EXPECT_EQ(y.front(), low);
    EXPECT_EQ(y.back(), high);
  }
}

TEST(QuantizeLinear, SaturatesNarrowFloatsOnlyIfAsked) {
  const Constant x = f32({2}, {1e6, -3}), one = f32({}, {1});
  const Attrs f8 = {{"output_dtype", int64_t(DType::F8E4M3FN)}};
  EXPECT_EQ(values(run_op({"QuantizeLinear", {x, one}, f8})[0]), (std::vector<double>{448, -3}));
  Attrs open = f8;
  open["saturate"] = int64_t(0);
  EXPECT_TRUE(std::isnan(values(run_op({"QuantizeLinear", {x, one}, open})[0])[0]));
}

TEST(QuantizeLinear, DividesInThePrecisionOfTheScale) {
  // 10.03 / 0.01 is 1003 in f32; as halves both round, and the quotient is a multiple of 0.5 near 1002.5.
  const Constant scale = tensor_of(DType::F16, {}, {0.01}), x = f32({1}, {10.03});
  auto run = [&](DType precision) {
    return values(run_op({"QuantizeLinear",
                          {x, scale},
                          {{"output_dtype", int64_t(DType::I16)}, {"precision", int64_t(precision)}}})[0])[0];
  };
  const double half_x = narrow_float_to_double(DType::F16, double_to_narrow_float(DType::F16, 10.03));
  const double half_scale = narrow_float_to_double(DType::F16, double_to_narrow_float(DType::F16, 0.01));
  const double half_q = narrow_float_to_double(DType::F16, double_to_narrow_float(DType::F16, half_x / half_scale));
  EXPECT_EQ(run(DType::Undefined), std::nearbyint(half_q));
  EXPECT_EQ(run(DType::F32), std::nearbyint(double(float(10.03) / float(half_scale))));
}

TEST(DequantizeLinear, KnowsAxesAndBlocks) {
  const Constant x = tensor_of(DType::I8, {2, 3}, {1, 2, 3, 4, 5, 6});
  EXPECT_EQ(values(run_op({"DequantizeLinear", {x, f32({3}, {1, 10, 100}), tensor_of(DType::I8, {3}, {0, 1, 2})}})[0]),
            (std::vector<double>{1, 10, 100, 4, 40, 400}));
  EXPECT_EQ(values(run_op({"DequantizeLinear", {x, f32({2, 2}, {1, 2, 3, 4})}, {{"block_size", int64_t(2)}}})[0]),
            (std::vector<double>{1, 2, 6, 12, 15, 24}));
  const auto half = run_op({"DequantizeLinear", {x, f32({}, {0.5})}, {{"output_dtype", int64_t(DType::F16)}}});
  EXPECT_EQ(half[0]->dtype, DType::F16);
  EXPECT_EQ(values(half[0])[5], 3);
  EXPECT_EQ(op_error({"DequantizeLinear", {x, f32({2}, {1, 2})}}),
            "the scale has the shape 2 but must be a scalar or have the shape 3");
}

TEST(DequantizeLinear, InvertsQuantizeForEveryIntegerType) {
  for (DType t : {DType::I8, DType::U8, DType::I16, DType::U16, DType::I4, DType::U4, DType::I2, DType::U2}) {
    const double high = info(t).is_signed_int ? std::pow(2, info(t).bits - 1) - 1 : std::pow(2, info(t).bits) - 1;
    const Constant x = f32({3}, {0, 0.25, high * 0.25}), scale = f32({}, {0.25});
    const Constant q = run_op({"QuantizeLinear", {x, scale}, {{"output_dtype", int64_t(t)}}})[0];
    EXPECT_EQ(values(run_op({"DequantizeLinear", {q, scale}})[0]), values(x)) << info(t).name;
  }
}

TEST(DynamicQuantizeLinear, RangeAlwaysHoldsZero) {
  const auto y = run_op({"DynamicQuantizeLinear", {f32({3}, {2, 4, 51})}, {}, 3});
  EXPECT_LT(max_error(values(y[1]), {0.2}), 1e-6);
  EXPECT_EQ(values(y[2]), std::vector<double>{0});
  EXPECT_EQ(values(y[0]), (std::vector<double>{10, 20, 255}));
  const auto zeros = run_op({"DynamicQuantizeLinear", {f32({2}, {0, 0})}, {}, 3});
  EXPECT_EQ(values(zeros[0]), (std::vector<double>{0, 0}));
}

TEST(DynamicQuantizeLinear, TakesFloat32Only) {
  EXPECT_THROW(run_op({"DynamicQuantizeLinear", {tensor_of(DType::BF16, {2}, {1, 2})}}), Error);
}

}  // namespace
}  // namespace tc::quantization_test
