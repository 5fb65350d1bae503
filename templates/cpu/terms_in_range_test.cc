// Sums whose terms go over the elements that have them equal the plain loops, which ask for each element.
#include "ir/ops/test_ops.h"
#include "templates/cpu/test_schedule.h"

namespace tc::terms_in_range_test {
namespace {

struct Blocks {
  Dims image, block, strides, dilations, pads;
  int64_t channels = 3;
};

// Col2Im of so many positions as the image gives.
testing::TestFunction overlapping(const Blocks& b) {
  const size_t rank = b.image.size();
  int64_t positions = 1;
  for (size_t d = 0; d < rank; d++)
    positions *= (b.image[d] + b.pads[d] + b.pads[rank + d] - b.dilations[d] * (b.block[d] - 1) - 1) / b.strides[d] + 1;
  Graph g;
  const Dims x = {2, b.channels * num_elements(b.block), positions};
  const std::vector<Value*> in = {g.add_constant(ModelText("x"), testing::small_integers(x, 1)),
                                  g.add_constant(ModelText("i"), int64_constant(b.image)),
                                  g.add_constant(ModelText("b"), int64_constant(b.block))};
  Node* n = g.append("Col2Im", in, {ModelText("y")},
                     {{"strides", b.strides}, {"dilations", b.dilations}, {"pads", b.pads}}, "");
  infer_types(g, *n);
  return {tensor_fn(*n), {false}};
}

TEST(CpuTermsInRange, StridesDilationsAndPads) {
  for (const int64_t stride : {1, 2, 3})
    for (const int64_t dilation : {1, 2})
      for (const int64_t pad : {0, 1, 2})
        for (const Dims& image : std::vector<Dims>{{9, 21}, {7, 40}})
          testing::expect_equal(overlapping({image, {3, 3}, {stride, stride}, {dilation, dilation}, Dims(4, pad)}),
                                "terms_in_range");
}

TEST(CpuTermsInRange, OneAndThreeAxes) {
  testing::expect_equal(overlapping({{50}, {4}, {1}, {1}, {0, 0}}), "terms_in_range");
  testing::expect_equal(overlapping({{50}, {5}, {3}, {2}, {2, 1}}), "terms_in_range");
  testing::expect_equal(overlapping({{4, 5, 17}, {2, 3, 3}, {1, 2, 1}, {1, 1, 2}, {1, 0, 1, 0, 2, 1}}),
                        "terms_in_range");
  testing::expect_equal(overlapping({{6, 30}, {1, 4}, {1, 1}, {1, 1}, {0, 0, 0, 0}}), "terms_in_range");
}

// Images of several blocks of rows, the last of which may be smaller; rows longer than a block.
TEST(CpuTermsInRange, BlocksOfRows) {
  for (const Dims& image : std::vector<Dims>{{40, 300}, {33, 257}, {5, 2100}}) {
    testing::expect_equal(overlapping({image, {3, 2}, {1, 1}, {1, 1}, {1, 1, 1, 0}, 1}), "terms_in_range");
    testing::expect_equal(overlapping({image, {3, 3}, {2, 2}, {1, 1}, {0, 1, 1, 1}, 1}), "terms_in_range");
  }
}

// How many elements of a row have the term depends on the row: rows stay around the terms.
TEST(CpuTermsInRange, RowsThatEndElsewhere) {
  testing::FunctionBuilder b;
  const Buffer x = b.input("x", {12, 40});
  const Buffer y = b.reduce("y", Op::Add, {12, 40}, {3}, [&](const Exprs& i, const Exprs& r) {
    const Expr h = i[0] - r[0], w = i[1] - r[0];
    return select(h >= Expr(0) && w >= Expr(0) && w < i[0] * Expr(2) && w < Expr(37), load(x, {h, w}),
                  make_float(DType::F32, 0));
  });
  testing::expect_equal(b.take(y), "terms_in_range");
}

// Results that are made of the sums, which then have memory of their own.
TEST(CpuTermsInRange, ResultsThatAreNoSums) {
  for (const Dims& image : std::vector<Dims>{{9, 21}, {20, 300}, {50}}) {
    testing::TestFunction f = overlapping(
        {image, Dims(image.size(), 3), Dims(image.size(), 1), Dims(image.size(), 1), Dims(image.size() * 2, 1)});
    Stage& sums = f.fn.stages.back();
    Stage relu;
    Exprs at;
    for (const Axis& a : sums.axes) {
      relu.axes.push_back({make_var("i"), a.extent});
      at.push_back(Expr(relu.axes.back().var));
    }
    relu.values = {max(load(sums.outputs[0], at), make_float(DType::F32, 0))};
    relu.outputs = {make_buffer("relu", DType::F32, sums.outputs[0]->shape)};
    f.fn.outputs = relu.outputs;
    f.fn.stages.push_back(relu);
    testing::expect_equal(f, "terms_in_range");
  }
}

}  // namespace
}  // namespace tc::terms_in_range_test
