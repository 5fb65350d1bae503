#include <gtest/gtest.h>

#include "ir/ops/test_ops.h"

namespace tc::conv_test {
namespace {

using Ints = std::vector<int64_t>;

struct Case {
  Dims x, w;
  int64_t group = 1;
  Ints strides, dilations, pads;
};

const Case kCases[] = {
    {{2, 3, 9}, {4, 3, 3}, 1, {2}, {2}, {1, 2}},
    {{1, 4, 7, 6}, {6, 2, 3, 2}, 2, {1, 2}, {1, 1}, {1, 0, 2, 1}},
    {{2, 4, 5, 5}, {4, 1, 3, 3}, 4, {1, 1}, {1, 1}, {1, 1, 1, 1}},
    {{1, 2, 5, 4, 6}, {3, 2, 2, 1, 3}, 1, {2, 1, 1}, {1, 1, 2}, {1, 0, 2, 0, 1, 1}},
};

Attrs attrs_of(const Case& c) {
  return {{"group", c.group}, {"strides", c.strides}, {"dilations", c.dilations}, {"pads", c.pads}};
}

// The input position that tap k of output o reads.
Dims position(const Case& c, const Dims& o, const Dims& k) {
  Dims p;
  for (size_t d = 0; d < k.size(); d++) p.push_back(o[d] * c.strides[d] + k[d] * c.dilations[d] - c.pads[d]);
  return p;
}

Dims join(Dims a, const Dims& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

std::vector<double> conv_reference(const Case& c, const Constant& x, const Constant& w, const Constant& bias,
                                   const Dims& y) {
  const int64_t per_group = w->dims[1], out_per_group = w->dims[0] / c.group;
  const Dims kernel(w->dims.begin() + 2, w->dims.end());
  std::vector<double> r;
  for_each_index(y, [&](const Dims& i) {
    double sum = bias ? at(bias, {i[1]}) : 0;
    const Dims o(i.begin() + 2, i.end());
    for (int64_t ic = 0; ic < per_group; ic++)
      for_each_index(kernel, [&](const Dims& k) {
        const int64_t channel = i[1] / out_per_group * per_group + ic;
        sum += at(x, join({i[0], channel}, position(c, o, k))) * at(w, join({i[1], ic}, k));
      });
    r.push_back(sum);
  });
  return r;
}

TEST(Conv, MatchesTheDefinitionInEveryRankAndLayout) {
  for (const Case& c : kCases) {
    const Constant x = random_tensor(DType::F32, c.x, 1), w = random_tensor(DType::F32, c.w, 2);
    const Constant bias = random_tensor(DType::F32, {c.w[0]}, 3);
    const Constant y = run_op({"Conv", {x, w, bias}, attrs_of(c)})[0];
    EXPECT_EQ(values(y), conv_reference(c, x, w, bias, y->dims));
    std::vector<int> last = {0}, back = {0, int(c.x.size()) - 1};
    for (int d = 2; d < int(c.x.size()); d++) last.push_back(d), back.push_back(d - 1);
    last.push_back(1);
    Attrs nhwc = attrs_of(c);
    nhwc["data_layout"] = std::string("NHWC");
    const Constant y_last = run_op({"Conv", {permuted(x, last), w, bias}, nhwc})[0];
    EXPECT_EQ(values(permuted(y_last, back)), values(y));
  }
}

TEST(Conv, PadsAutomatically) {
  const Constant x = random_tensor(DType::F32, {1, 1, 5, 8}, 1), w = random_tensor(DType::F32, {1, 1, 4, 3}, 2);
  auto run = [&](Attrs a) {
    a["strides"] = Ints{2, 3};
    return run_op({"Conv", {x, w}, a})[0];
  };
  // 3 outputs of 5 rows: (3 - 1) * 2 + 4 - 5 = 3 rows of padding; 3 of 8 columns: 1 column.
  EXPECT_EQ(values(run({{"auto_pad", std::string("SAME_UPPER")}})), values(run({{"pads", Ints{1, 0, 2, 1}}})));
  EXPECT_EQ(values(run({{"auto_pad", std::string("SAME_LOWER")}})), values(run({{"pads", Ints{2, 1, 1, 0}}})));
  EXPECT_EQ(values(run({{"auto_pad", std::string("VALID")}})), values(run({{"pads", Ints{0, 0, 0, 0}}})));
}

TEST(Conv, RefusesWhatDoesNotFit) {
  const Constant x = random_tensor(DType::F32, {1, 4, 5, 5}, 1);
  EXPECT_EQ(op_error({"Conv", {x, random_tensor(DType::F32, {2, 3, 3, 3}, 2)}}),
            "the weights take 3 channels in each of 1 groups, but the input has 4 channels");
  EXPECT_EQ(op_error({"Conv", {x, random_tensor(DType::F32, {2, 4, 7, 3}, 2)}}),
            "the kernel covers 7 elements of a spatial axis, but the padded input has only 5");
  EXPECT_EQ(op_error({"Conv", {x, random_tensor(DType::F32, {2, 4, 3, 3}, 2)}, {{"strides", Ints{0, 1}}}}),
            "attribute strides holds 0; allowed: 1 and more");
  EXPECT_EQ(op_error({"Conv", {x, random_tensor(DType::F32, {2, 4, 3, 3}, 2)}, {{"group", int64_t(0)}}}),
            "group is 0, which does not divide the 2 output channels");
}

TEST(ConvTranspose, ScattersWhatConvGathers) {
  for (const Case& c : kCases) {
    // x of the transposed convolution has the output channels of the weights.
    Dims small = {c.x[0], c.w[0]};
    small.insert(small.end(), c.x.begin() + 2, c.x.end());
    const Constant x = random_tensor(DType::F32, small, 1), w = random_tensor(DType::F32, c.w, 2);
    const Constant y = run_op({"ConvTranspose", {x, w}, attrs_of(c)})[0];
    std::vector<double> want(size_t(y->size()), 0.0);
    const Dims kernel(c.w.begin() + 2, c.w.end());
    for_each_index(small, [&](const Dims& i) {
      for_each_index(Dims(c.w.begin() + 1, c.w.end()), [&](const Dims& r) {
        const Dims k(r.begin() + 1, r.end()), to = position(c, Dims(i.begin() + 2, i.end()), k);
        int64_t flat = i[0] * y->dims[1] + i[1] / (c.w[0] / c.group) * c.w[1] + r[0];
        for (size_t d = 0; d < to.size(); d++) {
          if (to[d] < 0 || to[d] >= y->dims[d + 2]) return;
          flat = flat * y->dims[d + 2] + to[d];
        }
        want[size_t(flat)] += at(x, i) * at(w, join({i[1]}, r));
      });
    });
    EXPECT_EQ(values(y), want);
  }
}

TEST(ConvTranspose, SizesTheOutput) {
  const Constant x = random_tensor(DType::F32, {1, 1, 3, 3}, 1), w = random_tensor(DType::F32, {1, 2, 3, 3}, 2);
  auto dims = [&](Attrs a) {
    a["strides"] = Ints{3, 2};
    return run_op({"ConvTranspose", {x, w}, a})[0]->dims;
  };
  EXPECT_EQ(dims({}), (Dims{1, 2, 9, 7}));
  EXPECT_EQ(dims({{"output_padding", Ints{1, 1}}}), (Dims{1, 2, 10, 8}));
  EXPECT_EQ(dims({{"output_shape", Ints{10, 8}}}), (Dims{1, 2, 10, 8}));
  EXPECT_EQ(dims({{"auto_pad", std::string("SAME_UPPER")}}), (Dims{1, 2, 9, 6}));
}

TEST(ConvInteger, PadsWithTheZeroPoint) {
  const Case c = kCases[1];
  const Constant x = random_tensor(DType::U8, c.x, 1, 100), w = random_tensor(DType::I8, c.w, 2, 100);
  const Constant zx = tensor_of(DType::U8, {}, {131}), zw = tensor_of(DType::I8, {}, {-5});
  auto shifted = [](const Constant& t, double zero) {
    std::vector<double> v = values(t);
    for (double& e : v) e -= zero;
    return tensor_of(DType::I32, t->dims, v);
  };
  const Constant y = run_op({"ConvInteger", {x, w, zx, zw}, attrs_of(c)})[0];
  EXPECT_EQ(values(y), conv_reference(c, shifted(x, 131), shifted(w, -5), nullptr, y->dims));
}

TEST(QLinearConv, ScalesPerChannelAndSaturates) {
  auto f32 = [](Dims d, std::vector<double> v) { return tensor_of(DType::F32, std::move(d), v); };
  const auto y = run_op({"QLinearConv",
                         {tensor_of(DType::U8, {1, 1, 3}, {0, 5, 255}), f32({}, {0.5}), tensor_of(DType::U8, {}, {0}),
                          tensor_of(DType::I8, {2, 1, 1}, {1, -2}), f32({2}, {1, 0.5}), tensor_of(DType::I8, {}, {0}),
                          f32({}, {0.25}), tensor_of(DType::U8, {}, {10}), tensor_of(DType::I32, {2}, {1, 2})}});
  // channel 0: 2 * (x + 1) + 10; channel 1: 1 * (-2 x + 2) + 10
  EXPECT_EQ(values(y[0]), (std::vector<double>{12, 22, 255, 12, 2, 0}));
}

TEST(DeformConv, WithoutOffsetsIsConv) {
  const Constant x = random_tensor(DType::F32, {1, 4, 5, 6}, 1), w = random_tensor(DType::F32, {2, 2, 3, 2}, 2);
  const Attrs a = {{"group", int64_t(2)}, {"pads", Ints{1, 0, 1, 0}}, {"offset_group", int64_t(2)}};
  const Constant y =
      run_op({"DeformConv", {x, w, tensor_of(DType::F32, {1, 24, 5, 5}, std::vector<double>(600, 0))}, a})[0];
  EXPECT_EQ(values(y), values(run_op({"Conv", {x, w}, {{"group", int64_t(2)}, {"pads", Ints{1, 0, 1, 0}}}})[0]));
}

TEST(DeformConv, SamplesBetweenPixels) {
  const Constant x = tensor_of(DType::F32, {1, 1, 1, 3}, {1, 5, 7}), w = tensor_of(DType::F32, {1, 1, 1, 1}, {2});
  const Constant offset = tensor_of(DType::F32, {1, 2, 1, 3}, {0, 0, 0, 0.25, -0.5, 0.5});
  const Constant mask = tensor_of(DType::F32, {1, 1, 1, 3}, {1, 0.5, 1});
  EXPECT_EQ(values(run_op({"DeformConv", {x, w, offset, nullptr, mask}})[0]), (std::vector<double>{4, 3, 7}));
}

}  // namespace
}  // namespace tc::conv_test
