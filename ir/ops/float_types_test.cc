// Every operator of floats in every float type: the result has the operand's type and is that of f64, rounded.
#include <gtest/gtest.h>

#include "ir/ops/test_ops.h"

namespace tc::float_types_test {
namespace {

using Ints = std::vector<int64_t>;

std::vector<OpRun> runs(DType t) {
  auto x = [t](Dims d, int seed = 1) { return random_tensor(t, std::move(d), seed, 3); };
  auto positive = [t](Dims d) { return tensor_of(t, d, std::vector<double>(size_t(num_elements(d)), 1.5)); };
  const std::string linear = "linear", cubic = "cubic";
  const Constant scales = tensor_of(DType::F32, {4}, {1, 1, 1.5, 2.5});
  return {
      {"MatMul", {x({3, 4}), x({4, 2}, 2)}},
      {"Gemm", {x({3, 4}), x({4, 2}, 2), x({2}, 3)}, {{"alpha", 0.5f}, {"beta", 2.0f}}},
      {"Einsum", {x({2, 3}), x({3, 4}, 2), x({4, 2}, 3)}, {{"equation", std::string("ij,jk,kl->il")}}},
      {"Conv", {x({1, 2, 5, 5}), x({3, 2, 3, 3}, 2), x({3}, 3)}, {{"pads", Ints{1, 1, 1, 1}}}},
      {"ConvTranspose", {x({1, 2, 3, 3}), x({2, 2, 2, 2}, 2), x({2}, 3)}, {{"strides", Ints{2, 2}}}},
      {"DeformConv", {x({1, 1, 4, 4}), x({1, 1, 2, 2}, 2), x({1, 8, 3, 3}, 3)}},
      {"MaxPool", {x({1, 2, 5, 5})}, {{"kernel_shape", Ints{2, 2}}}},
      {"AveragePool", {x({1, 2, 5, 5})}, {{"kernel_shape", Ints{2, 3}}, {"pads", Ints{1, 1, 1, 1}}}},
      {"LpPool", {x({1, 2, 5, 5})}, {{"kernel_shape", Ints{2, 2}}, {"p", int64_t(3)}}},
      {"GlobalAveragePool", {x({1, 2, 5, 5})}},
      {"GlobalMaxPool", {x({1, 2, 5, 5})}},
      {"GlobalLpPool", {x({1, 2, 5, 5})}},
      {"MaxUnpool",
       {x({1, 1, 2, 2}), int64_constant({5, 7, 13, 15})},
       {{"kernel_shape", Ints{2, 2}}, {"strides", Ints{2, 2}}}},
      {"MaxRoiPool", {x({1, 1, 4, 4}), tensor_of(t, {1, 5}, {0, 0, 0, 3, 3})}, {{"pooled_shape", Ints{2, 2}}}},
      {"RoiAlign",
       {x({1, 1, 4, 4}), tensor_of(t, {1, 4}, {0, 0, 3, 3}), int64_constant({0})},
       {{"sampling_ratio", int64_t(2)}}},
      {"Resize", {x({1, 1, 4, 4}), nullptr, scales}},
      {"Resize", {x({1, 1, 4, 4}), nullptr, scales}, {{"mode", linear}}},
      {"Resize", {x({1, 1, 4, 4}), nullptr, scales}, {{"mode", cubic}}},
      {"GridSample", {x({1, 1, 4, 4}), tensor_of(t, {1, 1, 2, 2}, {0.25, -0.5, 0.75, 0})}},
      {"AffineGrid", {x({1, 2, 3}), int64_constant({1, 1, 2, 3})}},
      {"Col2Im", {x({1, 4, 4}), int64_constant({3, 3}), int64_constant({2, 2})}},
      {"BatchNormalization", {x({2, 3, 2}), x({3}, 2), x({3}, 3), x({3}, 4), positive({3})}},
      {"LayerNormalization", {x({2, 3, 4}), x({4}, 2), x({4}, 3)}},
      {"RMSNormalization", {x({2, 3, 4}), x({4}, 2)}},
      {"InstanceNormalization", {x({2, 3, 4}), x({3}, 2), x({3}, 3)}},
      {"GroupNormalization", {x({2, 4, 3}), x({4}, 2), x({4}, 3)}, {{"num_groups", int64_t(2)}}},
      {"LRN", {x({1, 4, 3})}, {{"size", int64_t(3)}}},
      {"MeanVarianceNormalization", {x({2, 3, 4, 2})}},
      {"LSTM", {x({3, 2, 2}), x({1, 8, 2}, 2), x({1, 8, 2}, 3)}, {}, 3},
      {"GRU", {x({3, 2, 2}), x({1, 6, 2}, 2), x({1, 6, 2}, 3)}, {}, 2},
      {"RNN", {x({3, 2, 2}), x({1, 2, 2}, 2), x({1, 2, 2}, 3)}, {}, 2},
      {"Attention", {x({1, 2, 3, 4}), x({1, 2, 5, 4}, 2), x({1, 2, 5, 4}, 3)}},
      {"RotaryEmbedding", {x({1, 2, 3, 4}), x({1, 3, 2}, 2), x({1, 3, 2}, 3)}},
  };
}

Constant reshaped(const Constant& c, Dims d) {
  MutableTensor m = new_tensor(c->dtype, std::move(d));
  std::copy(c->bytes.get(), c->bytes.get() + c->num_bytes, m.bytes);
  return std::make_shared<const TensorData>(std::move(m.data));
}

TEST(FloatTypes, AgreeWithDouble) {
  const std::vector<OpRun> exact = runs(DType::F64);
  for (const auto& [t, tolerance] : {std::pair{DType::F32, 1e-5}, {DType::F16, 4e-3}, {DType::BF16, 3e-2}}) {
    std::vector<OpRun> narrow = runs(t);
    for (size_t k = 0; k < narrow.size(); k++) {
      OpRun wide = exact[k];
      for (OpRun* r : {&wide, &narrow[k]})
        if (r->op == "MaxUnpool") r->inputs[1] = reshaped(r->inputs[1], {1, 1, 2, 2});
      const auto want = run_op(wide), got = run_op(narrow[k]);
      ASSERT_EQ(got.size(), want.size());
      for (size_t o = 0; o < got.size(); o++) {
        EXPECT_EQ(got[o]->dtype, t) << wide.op;
        EXPECT_LT(max_error(values(got[o]), values(want[o])), tolerance) << wide.op << " in " << info(t).name;
      }
    }
  }
}

}  // namespace
}  // namespace tc::float_types_test
