#include <gtest/gtest.h>

#include "ir/ops/resize.h"
#include "ir/ops/test_ops.h"

namespace tc::window_test {
namespace {

using Ints = std::vector<int64_t>;

Constant f32(Dims d, const std::vector<double>& v) { return tensor_of(DType::F32, std::move(d), v); }
std::string str(const char* s) { return s; }

TEST(MaxPool, FindsTheFirstMaximumInBothStorageOrders) {
  const Constant x = f32({1, 2, 2, 3}, {1, 4, 4, 4, 0, 9, 5, 5, 5, 5, 5, 5});
  const Attrs a = {{"kernel_shape", Ints{2, 2}}, {"strides", Ints{1, 1}}};
  const auto y = run_op({"MaxPool", {x}, a, 2});
  EXPECT_EQ(values(y[0]), (std::vector<double>{4, 9, 5, 5}));
  EXPECT_EQ(values(y[1]), (std::vector<double>{1, 5, 6, 7}));
  Attrs column = a;
  column["storage_order"] = int64_t(1);
  // Column-major inside a channel of 2 x 3: element (h, w) is number h + 2 w.
  EXPECT_EQ(values(run_op({"MaxPool", {x}, column, 2})[1]), (std::vector<double>{2, 5, 6, 8}));
}

TEST(MaxPool, PropagatesNanAndHandlesIntegers) {
  const auto y = run_op({"MaxPool", {f32({1, 1, 4}, {1, NAN, 3, -INFINITY})}, {{"kernel_shape", Ints{2}}}, 2});
  EXPECT_TRUE(std::isnan(values(y[0])[0]) && std::isnan(values(y[0])[1]));
  EXPECT_EQ(values(y[0])[2], 3);
  EXPECT_EQ(values(y[1]), (std::vector<double>{1, 1, 2}));
  const Constant i8 = tensor_of(DType::I8, {1, 1, 3}, {-128, -128, -3});
  EXPECT_EQ(values(run_op({"MaxPool", {i8}, {{"kernel_shape", Ints{2}}, {"pads", Ints{1, 1}}}})[0]),
            (std::vector<double>{-128, -128, -3, -3}));
}

TEST(MaxPool, RoundingUpNeverStartsAWindowInThePadding) {
  // (5 + 1 + 1 - 2) / 3 rounds up to 3 windows, at -1, 2 and 5; the last one starts behind the input.
  const Attrs a = {{"kernel_shape", Ints{2}}, {"strides", Ints{3}}, {"pads", Ints{1, 1}}, {"ceil_mode", int64_t(1)}};
  EXPECT_EQ(values(run_op({"MaxPool", {f32({1, 1, 5}, {1, 2, 3, 4, 5})}, a})[0]), (std::vector<double>{1, 4}));
}

TEST(AveragePool, CountsOnlyWhatLiesInside) {
  const Constant x = f32({1, 1, 4}, {2, 4, 6, 8});
  auto run = [&](int64_t include, int64_t ceil) {
    return values(run_op({"AveragePool",
                          {x},
                          {{"kernel_shape", Ints{3}},
                           {"strides", Ints{2}},
                           {"pads", Ints{1, 0}},
                           {"count_include_pad", include},
                           {"ceil_mode", ceil}}})[0]);
  };
  EXPECT_EQ(run(0, 0), (std::vector<double>{3, 6}));
  EXPECT_EQ(run(1, 0), (std::vector<double>{2, 6}));
  EXPECT_EQ(run(0, 1), (std::vector<double>{3, 6}));
  // Rounded up over the end: kernel 3, stride 3 on 4 + 1 elements; the second window holds two of the three.
  EXPECT_EQ(values(run_op({"AveragePool",
                           {x},
                           {{"kernel_shape", Ints{3}},
                            {"strides", Ints{3}},
                            {"pads", Ints{1, 0}},
                            {"count_include_pad", int64_t(1)},
                            {"ceil_mode", int64_t(1)}}})[0]),
            (std::vector<double>{2, 7}));
}

TEST(Pools, DilateAndReadBothLayouts) {
  const Constant x = random_tensor(DType::F32, {2, 3, 7, 8}, 1, 9);
  for (const char* op : {"MaxPool", "AveragePool", "LpPool"}) {
    Attrs a = {
        {"kernel_shape", Ints{2, 3}}, {"strides", Ints{2, 1}}, {"dilations", Ints{2, 1}}, {"pads", Ints{1, 0, 0, 1}}};
    const Constant y = run_op({op, {x}, a})[0];
    std::vector<double> want;
    for_each_index(y->dims, [&](const Dims& i) {
      double sum = 0, squares = 0, top = -INFINITY, count = 0;
      for_each_index({2, 3}, [&](const Dims& k) {
        const int64_t h = i[2] * 2 + k[0] * 2 - 1, w = i[3] + k[1];
        if (h < 0 || h >= 7 || w < 0 || w >= 8) return;
        const double v = at(x, {i[0], i[1], h, w});
        sum += v, squares += v * v, top = std::max(top, v), count++;
      });
      want.push_back(op[0] == 'M' ? top : op[0] == 'A' ? sum / count : std::sqrt(squares));
    });
    EXPECT_LT(max_error(values(y), want), 1e-6) << op;
    a["data_layout"] = str("NHWC");
    const Constant last = run_op({op, {permuted(x, {0, 2, 3, 1})}, a})[0];
    EXPECT_EQ(values(permuted(last, {0, 3, 1, 2})), values(y)) << op;
  }
}

TEST(GlobalPools, ReduceTheWholeImage) {
  const Constant x = f32({1, 2, 2, 2}, {1, 2, 3, 6, -1, -2, -2, 0});
  EXPECT_EQ(values(run_op({"GlobalAveragePool", {x}})[0]), (std::vector<double>{3, -1.25}));
  EXPECT_EQ(values(run_op({"GlobalMaxPool", {x}})[0]), (std::vector<double>{6, 0}));
  EXPECT_EQ(values(run_op({"GlobalLpPool", {x}, {{"p", int64_t(1)}}})[0]), (std::vector<double>{12, 5}));
  EXPECT_EQ(values(run_op({"GlobalLpPool", {x}})[0])[1], 3);
  EXPECT_EQ(run_op({"GlobalLpPool", {x}})[0]->dims, (Dims{1, 2, 1, 1}));
}

TEST(MaxUnpool, IndicesCountInTheInferredShape) {
  const Constant x = f32({1, 1, 2, 2}, {5, 6, 7, 8}), i = tensor_of(DType::I64, {1, 1, 2, 2}, {5, 7, 13, 15});
  const Attrs a = {{"kernel_shape", Ints{2, 2}}, {"strides", Ints{2, 2}}};
  const auto y = run_op({"MaxUnpool", {x, i, int64_constant({1, 1, 4, 5})}, a});
  EXPECT_EQ(values(y[0]), (std::vector<double>{0, 0, 0, 0, 0, 0, 5, 0, 6, 0, 0, 0, 0, 0, 0, 0, 7, 0, 8, 0}));
}

TEST(Col2Im, AddsOverlappingBlocks) {
  const auto y = run_op({"Col2Im",
                         {f32({1, 4, 4}, {1, 2, 3, 4, 1, 1, 1, 1, 0, 0, 0, 5, 2, 2, 2, 2}), int64_constant({3, 3}),
                          int64_constant({2, 2})}});
  EXPECT_EQ(values(y[0]), (std::vector<double>{1, 3, 1, 3, 4 + 1 + 0 + 2, 1 + 2, 0, 5 + 2, 2}));
}

TEST(Resize, DoublesWithClosedForms) {
  const Constant x = f32({1, 1, 1, 3}, {1, 2, 4}), scales = f32({4}, {1, 1, 1, 2});
  EXPECT_EQ(values(run_op({"Resize", {x, nullptr, scales}})[0]), (std::vector<double>{1, 1, 2, 2, 4, 4}));
  EXPECT_EQ(values(run_op({"Resize", {x, nullptr, scales}, {{"mode", str("linear")}}})[0]),
            (std::vector<double>{1, 1.25, 1.75, 2.5, 3.5, 4}));
  EXPECT_EQ(values(run_op({"Resize",
                           {x, nullptr, scales},
                           {{"mode", str("linear")}, {"coordinate_transformation_mode", str("asymmetric")}}})[0]),
            (std::vector<double>{1, 1.5, 2, 3, 4, 4}));
}

TEST(Resize, AlignsCornersAndRespectsThePolicy) {
  const Constant x = f32({1, 1, 2, 3}, {0, 1, 2, 3, 4, 5});
  const Attrs a = {
      {"mode", str("linear")}, {"coordinate_transformation_mode", str("align_corners")}, {"axes", Ints{3}}};
  EXPECT_LT(max_error(values(run_op({"Resize", {x, nullptr, nullptr, int64_constant({5})}, a})[0]),
                      {0, .5, 1, 1.5, 2, 3, 3.5, 4, 4.5, 5}),
            1e-6);
  const Attrs p = {{"axes", Ints{2, 3}}, {"keep_aspect_ratio_policy", str("not_larger")}};
  EXPECT_EQ(run_op({"Resize", {x, nullptr, nullptr, int64_constant({8, 6})}, p})[0]->dims, (Dims{1, 1, 4, 6}));
}

TEST(Resize, CropsWithARunTimeRegion) {
  const Constant x = f32({1, 1, 1, 5}, {0, 1, 2, 3, 4}), roi = f32({2}, {0.25, 1.25});
  const Attrs a = {{"mode", str("linear")},
                   {"coordinate_transformation_mode", str("tf_crop_and_resize")},
                   {"axes", Ints{3}},
                   {"extrapolation_value", -1.0f}};
  const std::vector<double> want = {1, 2, 3, 4, -1};
  EXPECT_EQ(values(run_op({"Resize", {x, roi, nullptr, int64_constant({5})}, a})[0]), want);
  // The same with a region that is an input of the graph.
  Graph g;
  Value* vx = g.add_constant(ModelText("x"), x);
  Value* vr = g.add_input(ModelText("roi"), ValueType::tensor(DType::F32, to_shape({2})));
  Node* n =
      g.append("Resize", {vx, vr, nullptr, g.add_constant(ModelText("s"), int64_constant({5}))}, {ModelText("y")}, a);
  const TensorFn& fn = tensor_fn(*n);
  verify(fn);
  EXPECT_EQ(values(evaluate(fn, {x, roi})[0]), want);
}

TEST(Resize, FitsFloorForms) {
  std::vector<int64_t> table;
  for (int64_t o = 0; o < 40; o++) table.push_back((o * 3 + 1) / 7);
  const auto f = fit_floor_form(table, 3.0 / 7);
  ASSERT_TRUE(f);
  for (int64_t o = 0; o < 40; o++) EXPECT_EQ((o * f->p + f->r) / f->q, table[size_t(o)]);
  table[20] += 3;
  EXPECT_FALSE(fit_floor_form(table, 3.0 / 7));
}

TEST(Resize, LongAxesTakeTablesAndHugeOnesAreRefused) {
  const Constant x = f32({1, 2}, {1, 3});
  const Attrs a = {
      {"mode", str("linear")}, {"axes", Ints{1}}, {"coordinate_transformation_mode", str("align_corners")}};
  const auto y = values(run_op({"Resize", {x, nullptr, nullptr, int64_constant({70001})}, a})[0]);
  EXPECT_EQ(y[0], 1);
  EXPECT_NEAR(y[35000], 2, 1e-6);
  EXPECT_NEAR(y[70000], 3, 1e-6);
  EXPECT_EQ(op_error({"Resize", {x, nullptr, nullptr, int64_constant({int64_t(1) << 40})}, a}),
            "a size must lie in 0..2^31-1, and the input must not be empty");
}

TEST(GridSample, TheIdentityGridGivesTheImage) {
  const Constant x = random_tensor(DType::F32, {1, 2, 3, 4}, 1);
  const Constant theta = f32({1, 2, 3}, {1, 0, 0, 0, 1, 0});
  for (int64_t align : {0, 1}) {
    const Constant grid = run_op({"AffineGrid", {theta, int64_constant({1, 2, 3, 4})}, {{"align_corners", align}}})[0];
    for (const char* mode : {"nearest", "linear", "cubic"})
      for (const char* padding : {"zeros", "border", "reflection"})
        EXPECT_LT(
            max_error(
                values(run_op({"GridSample",
                               {x, grid},
                               {{"align_corners", align}, {"mode", str(mode)}, {"padding_mode", str(padding)}}})[0]),
                values(x)),
            1e-5)
            << mode << padding;
  }
}

TEST(GridSample, PadsOutsideOfTheImage) {
  const Constant x = f32({1, 1, 1, 4}, {1, 2, 3, 4}), grid = f32({1, 1, 3, 2}, {-1.5, 0, 1.25, 0, NAN, 0});
  auto run = [&](const char* padding) {
    return values(run_op({"GridSample", {x, grid}, {{"mode", str("nearest")}, {"padding_mode", str(padding)}}})[0]);
  };
  EXPECT_EQ(run("zeros"), (std::vector<double>{0, 4 * 0, 0}));
  EXPECT_EQ(run("border"), (std::vector<double>{1, 4, 1}));
  EXPECT_EQ(run("reflection")[0], 2);  // position -1.5 rounds to -2, which -0.5 mirrors to 1
}

TEST(GridSample, CubicsRepeatTheBorder) {
  // At -1.25 the pixels -3, -2, -1 and 0 are weighed, all of which are the first; at -0.25 -2, -1, 0 and 1.
  const Constant x = f32({1, 1, 1, 4}, {1, 2, 3, 4}), grid = f32({1, 1, 2, 2}, {-1.375, 0, -0.875, 0});
  const auto y = run_op({"GridSample", {x, grid}, {{"mode", str("cubic")}, {"padding_mode", str("border")}}});
  EXPECT_LT(max_error(values(y[0]), {1, 1 - 0.75 * 0.75 * 0.75 * 0.25}), 1e-6);
}

TEST(RoiAlign, AveragesALinearImageExactly) {
  // x[h, w] = w: the average over a box is the middle of the box.
  std::vector<double> v;
  for (int h = 0; h < 6; h++)
    for (int w = 0; w < 8; w++) v.push_back(w);
  const Constant rois = f32({1, 4}, {1, 1, 5, 5}), batch = int64_constant({0});
  for (int64_t samples : {0, 2}) {
    const auto y = run_op({"RoiAlign",
                           {f32({1, 1, 6, 8}, v), rois, batch},
                           {{"output_width", int64_t(2)}, {"output_height", int64_t(1)}, {"sampling_ratio", samples}}});
    EXPECT_LT(max_error(values(y[0]), {1.5, 3.5}), 1e-6);
  }
}

TEST(MaxRoiPool, TakesTheMaximumOfEveryBin) {
  std::vector<double> v;
  for (int k = 0; k < 16; k++) v.push_back(k);
  const auto y = run_op({"MaxRoiPool",
                         {f32({1, 1, 4, 4}, v), f32({2, 5}, {0, 0, 0, 3, 3, 0, 6, 6, 7, 7})},
                         {{"pooled_shape", Ints{2, 2}}}});
  EXPECT_EQ(values(y[0]), (std::vector<double>{5, 7, 13, 15, 0, 0, 0, 0}));
}

}  // namespace
}  // namespace tc::window_test
