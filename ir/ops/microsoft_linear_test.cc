// Layers with a state of a fixed size: attention as a recurrence, causal convolution.
#include <gtest/gtest.h>

#include "ir/ops/test_ops.h"

namespace tc::microsoft_linear_test {
namespace {

const std::string kMs = "com.microsoft";

Constant f32(Dims d, const std::vector<double>& v) { return tensor_of(DType::F32, std::move(d), v); }
Constant i64(Dims d, const std::vector<double>& v) { return tensor_of(DType::I64, std::move(d), v); }

// One head whose state is a number.
TEST(LinearAttention, EachRuleUpdatesTheState) {
  const Constant q = f32({1, 2, 1}, {2, 3}), k = f32({1, 2, 1}, {0.5, 1}), v = f32({1, 2, 1}, {4, 6}),
                 past = f32({1, 1, 1, 1}, {10}), decay = f32({1, 2, 1}, {-1, -2}), beta = f32({1, 2, 1}, {0.5, 0.25});
  for (const char* rule : {"linear", "gated", "delta", "gated_delta"}) {
    const bool decays = std::string(rule).starts_with("gated"), corrects = std::string(rule).ends_with("delta");
    std::vector<double> want;
    double s = 10;
    for (int t = 0; t < 2; t++) {
      const double key = values(k)[size_t(t)], value = values(v)[size_t(t)];
      if (decays) s *= std::exp(values(decay)[size_t(t)]);
      s += key * (corrects ? values(beta)[size_t(t)] * (value - s * key) : value);
      want.push_back(values(q)[size_t(t)] * s);
    }
    const Attrs attrs = {{"q_num_heads", int64_t(1)}, {"kv_num_heads", int64_t(1)}, {"update_rule", std::string(rule)}};
    const auto y = run_rewritten(
        {"LinearAttention", {q, k, v, past, decays ? decay : nullptr, corrects ? beta : nullptr}, attrs, 2, kMs});
    EXPECT_LT(max_error(values(y[0]), want), 1e-5) << rule;
    EXPECT_LT(max_error(values(y[1]), {s}), 1e-5) << rule;
  }
}

TEST(CausalConv, GoesOnFromItsState) {
  const Constant x = f32({1, 1, 3}, {1, 2, 3}), w = f32({1, 1, 3}, {100, 10, 1}), past = f32({1, 1, 2}, {8, 9});
  const auto y = run_rewritten({"CausalConvWithState", {x, w, nullptr, past}, {}, 2, kMs});
  EXPECT_EQ(values(y[0]), (std::vector<double>{891, 912, 123}));
  EXPECT_EQ(values(y[1]), (std::vector<double>{2, 3}));
  EXPECT_EQ(values(run_op({"last_steps", {past, x, i64({}, {1})}, {}, 1, "tc"})[0]), (std::vector<double>{9, 1}));
  const auto first = run_rewritten({"CausalConvWithState", {x, w}, {{"dilation", int64_t(2)}}, 2, kMs});
  EXPECT_EQ(values(first[0]), (std::vector<double>{1, 2, 13}));
  EXPECT_EQ(values(first[1]), (std::vector<double>{0, 1, 2, 3}));
}

TEST(RotarySections, EachPartOfAPositionTurnsItsColumns) {
  std::vector<double> table;
  for (int p = 0; p < 4; p++)
    for (int k = 0; k < 6; k++) table.push_back(10 * p + k);
  const Constant cache = f32({4, 6}, table), positions = i64({3, 1, 1}, {1, 2, 3});
  Attrs attrs = {{"sections", std::vector<int64_t>{3, 2, 1}}};
  EXPECT_EQ(values(run_op({"rotary_sections", {cache, positions}, attrs, 1, "tc"})[0]),
            (std::vector<double>{10, 11, 12, 23, 24, 35}));
  attrs["interleaved"] = int64_t(1);
  EXPECT_EQ(values(run_op({"rotary_sections", {cache, positions}, attrs, 1, "tc"})[0]),
            (std::vector<double>{10, 21, 32, 13, 24, 15}));
}

}  // namespace
}  // namespace tc::microsoft_linear_test
