// Parameters that come at run time, where the model declares the result's shape: the same numbers as with constants,
// and E_RANGE where they contradict that shape.
#include <gtest/gtest.h>

#include "ir/ops/test_cases.h"

namespace tc::case_testing::run_time_parameters_test {
namespace {

using Ints = std::vector<int64_t>;

std::string str(const char* s) { return s; }

/// `c` with the operands `late` as run-time values and the constants' shape declared.
Call late(Call c, const std::vector<int>& operands) {
  const Constant y = run(c).outputs[0];
  c.run_time = operands;
  c.declared = {ValueType::tensor(y->dtype, to_shape(y->dims))};
  return c;
}

void expect_same(const Call& c, const std::vector<int>& operands, const std::string& what) {
  SCOPED_TRACE(what);
  expect_near(values(late(c, operands)), values(c), 1e-6);
}

Constant image(int64_t h, int64_t w) {
  std::vector<float> v;
  for (int64_t k = 0; k < h * w; k++) v.push_back(float((k * 7) % 11) - 3);
  return floats({1, 1, h, w}, v);
}

TEST(RunTimeResize, GivesWhatConstantScalesGive) {
  const Constant roi = floats({8}, {0, 0, 0.1f, 0.2f, 1, 1, 0.9f, 1.3f});
  for (const float s : {0.4f, 0.6f, 1.0f, 2.3f})
    for (const char* mode : {"nearest", "linear", "cubic"})
      for (const char* at : {"half_pixel", "pytorch_half_pixel", "half_pixel_symmetric", "asymmetric", "align_corners",
                             "tf_crop_and_resize"}) {
        const Call c = {"Resize",
                        {image(5, 4), roi, floats({4}, {1, 1, s, 0.3f})},
                        {{"mode", str(mode)}, {"coordinate_transformation_mode", str(at)}}};
        expect_same(c, {2}, std::string(mode) + " " + at);
      }
}

TEST(RunTimeResize, AntialiasesAndExcludesWhatIsOutside) {
  for (const char* mode : {"linear", "cubic"})
    for (const int64_t exclude : {0, 1})
      for (const int64_t antialias : {0, 1})
        expect_same(
            {"Resize",
             {image(9, 8), nullptr, floats({2}, {0.35f, 1.5f})},
             {{"mode", str(mode)}, {"antialias", antialias}, {"exclude_outside", exclude}, {"axes", Ints{2, 3}}}},
            {2}, mode);
}

TEST(RunTimeResize, KeepsTheAspectRatio) {
  for (const char* policy : {"stretch", "not_larger", "not_smaller"})
    expect_same({"Resize",
                 {image(4, 6), nullptr, nullptr, ints({2}, {7, 8})},
                 {{"mode", str("linear")}, {"axes", Ints{2, 3}}, {"keep_aspect_ratio_policy", str(policy)}}},
                {3}, policy);
}

TEST(RunTimeResize, ScalesThatContradictTheDeclaredShapeAreRefused) {
  Call c = late({"Resize", {image(4, 6), nullptr, floats({2}, {0.5f, 1.5f})}, {{"axes", Ints{2, 3}}}}, {2});
  for (const float wrong : {0.8f, 0.4f, -0.5f, 0.0f, 1e30f, NAN}) {
    c.inputs[2] = floats({2}, {wrong, 1.5f});
    EXPECT_NE(error_of(c), "") << wrong;
  }
  c.inputs[2] = floats({2}, {0.74f, 1.5f});  // 4 * 0.74 rounds down to 2
  EXPECT_EQ(error_of(c), "");
  c.declared = {};
  EXPECT_NE(error_of(c).find("the model must declare the result's shape"), std::string::npos);
  c.declared = {ValueType::tensor(DType::F32, to_shape({1, 2, 2, 9}))};
  EXPECT_NE(error_of(c).find("does not fit the input"), std::string::npos);
}

TEST(RunTimeResize, Upsample) {
  expect_same({"Upsample", {image(2, 3), floats({4}, {1, 1, 2, 1.5f})}, {{"mode", str("linear")}}}, {1}, "linear");
}

TEST(RunTimeCol2Im, ChoosesAmongTheBlocksThatFit) {
  std::vector<float> v;
  for (int k = 0; k < 60; k++) v.push_back(float(k));
  // 6 taps and 6 positions on an image of 4 x 4: blocks of 2 x 3 and of 3 x 2 fit.
  expect_same({"Col2Im", {floats({1, 6, 6}, {v.begin(), v.begin() + 36}), ints({2}, {4, 4}), ints({2}, {2, 3})}},
              {1, 2}, "6 positions");
  // 4 taps and 12 positions on an image of 5 x 4: of 1 x 4, 2 x 2 and 4 x 1 only 2 x 2 fits.
  Call c =
      late({"Col2Im", {floats({1, 4, 12}, {v.begin(), v.begin() + 48}), ints({2}, {5, 4}), ints({2}, {2, 2})}}, {1, 2});
  EXPECT_EQ(error_of(c), "");
  // Only the block comes at run time; both orders fit, and the values decide.
  const Constant x = floats({1, 2, 12}, {v.begin(), v.begin() + 24});
  for (const Ints& block : {Ints{1, 2}, Ints{2, 1}})
    expect_same({"Col2Im", {x, ints({2}, {4, 4}), ints({2}, block)}}, {2}, "square");
  Call wrong = late({"Col2Im", {x, ints({2}, {4, 4}), ints({2}, {1, 2})}}, {1, 2});
  wrong.inputs[2] = ints({2}, {2, 2});
  EXPECT_NE(error_of(wrong), "");
}

TEST(CenterCropPad, KeepsTheMiddle) {
  const Constant x = floats({5, 2}, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9});
  const Call c = {"CenterCropPad", {x, ints({2}, {2, 5})}};
  EXPECT_EQ(values(c), (std::vector<double>{0, 2, 3, 0, 0, 0, 4, 5, 0, 0}));
  expect_same(c, {1}, "run time");
  const Call one = {"CenterCropPad", {x, ints({1}, {3})}, {{"axes", Ints{-1}}}};
  EXPECT_EQ(values(one), (std::vector<double>{0, 1, 0, 2, 3, 0, 4, 5, 0, 6, 7, 0, 8, 9, 0}));
  expect_same(one, {1}, "one axis");
  EXPECT_NE(error_of({"CenterCropPad", {x, ints({1}, {3})}}), "");
  EXPECT_NE(error_of({"CenterCropPad", {x, ints({1}, {-3})}, {{"axes", Ints{0}}}}), "");
}

}  // namespace
}  // namespace tc::case_testing::run_time_parameters_test
