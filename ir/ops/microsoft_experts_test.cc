// Mixtures of experts: which experts a token goes through, with which shares, and weights of few bits.
#include <gtest/gtest.h>

#include "ir/ops/test_ops.h"

namespace tc {
namespace {

const std::string kMs = "com.microsoft";

Constant f32(Dims d, const std::vector<double>& v) { return tensor_of(DType::F32, std::move(d), v); }
Constant u8(Dims d, const std::vector<double>& v) { return tensor_of(DType::U8, std::move(d), v); }
Constant i64(Dims d, const std::vector<double>& v) { return tensor_of(DType::I64, std::move(d), v); }

TEST(ExpertMatmul, ReadsTheExpertsThatAreChosen) {
  const Constant w = f32({3, 1, 2}, {1, 2, 3, 4, 5, 6}), b = f32({3, 1}, {100, 200, 300});
  const Constant chosen = i64({2, 2}, {2, 0, 1, 2});
  const auto same = run_op({"expert_matmul", {f32({2, 2}, {1, 10, 2, 0}), chosen, w, b}, {}, 1, "tc"});
  EXPECT_EQ(same[0]->dims, (Dims{2, 2, 1}));
  EXPECT_EQ(values(same[0]), (std::vector<double>{365, 121, 206, 310}));
  const auto own = run_op({"expert_matmul", {f32({2, 2, 2}, {1, 0, 0, 1, 1, 1, 2, 2}), chosen, w}, {}, 1, "tc"});
  EXPECT_EQ(values(own[0]), (std::vector<double>{5, 2, 7, 22}));
}

TEST(ExpertMatmul, UnpacksNumbersOfFewBits) {
  // One expert of two columns, four numbers of 4 bits each, in blocks of two.
  const Constant w = u8({1, 2, 2}, {0x21, 0x43, 0x98, 0xba}), scales = f32({1, 2, 2}, {1, 10, 2, 20}),
                 zeros = u8({1, 2, 1}, {0x31, 0x08});
  const Attrs attrs = {{"bits", int64_t(4)}, {"block_size", int64_t(2)}};
  const Constant x = f32({1, 4}, {1, 1, 1, 1}), chosen = i64({1, 1}, {0});
  EXPECT_EQ(values(run_op({"expert_matmul", {x, chosen, w, nullptr, scales, zeros}, attrs, 1, "tc"})[0]),
            (std::vector<double>{0 + 1 + 0 + 10, 2 * (0 + 1) + 20 * (10 + 11)}));
  EXPECT_EQ(values(run_op({"expert_matmul", {x, chosen, w, nullptr, scales}, attrs, 1, "tc"})[0])[0], -7 - 6 - 50 - 40);
  // A scale for each column; their zero points share a byte.
  const Attrs whole = {{"bits", int64_t(4)}};
  EXPECT_EQ(values(run_op({"expert_matmul", {x, chosen, w, nullptr, f32({1, 2}, {1, 10}), u8({1, 1}, {0x21})}, whole, 1, "tc"})[0]),
            (std::vector<double>{1 + 2 + 3 + 4 - 4, 10 * (8 + 9 + 10 + 11 - 8)}));
}

TEST(Swiglu, CutsBothHalvesAtTheLimit) {
  const auto gate = [](double g, double l) { return g / (1 + std::exp(-2 * g)) * (l + 1); };
  Attrs attrs = {{"alpha", 2.0f}, {"beta", 1.0f}, {"limit", 3.0f}, {"interleaved", int64_t(1)}};
  EXPECT_LT(max_error(values(run_op({"swiglu", {f32({1, 6}, {1, 2, 5, -5, -5, 5})}, attrs, 1, "tc"})[0]),
                      {gate(1, 2), gate(3, -3), gate(-5, 3)}),
            1e-6);
  attrs["interleaved"] = int64_t(0);
  EXPECT_LT(max_error(values(run_op({"swiglu", {f32({1, 4}, {1, 2, 5, -1})}, attrs, 1, "tc"})[0]), {gate(1, 3), gate(2, -1)}), 1e-6);
  EXPECT_LT(max_error(values(run_op({"swiglu", {f32({1, 1}, {1}), f32({1, 1}, {2})}, attrs, 1, "tc"})[0]), {gate(1, 2)}), 1e-6);
}

TEST(MoE, SharesAreASoftmaxOfTheChosenOrOfAll) {
  // Two of three experts, each of which multiplies by a number.
  const Constant x = f32({1, 1}, {1}), router = f32({1, 3}, {1, 3, 2}), w = f32({3, 1, 1}, {10, 20, 30}), u = f32({3, 1, 1}, {1, 1, 1});
  const double a = std::exp(3), b = std::exp(2), c = std::exp(1);
  Attrs attrs = {{"k", int64_t(2)}, {"activation_type", std::string("identity")}};
  EXPECT_NEAR(values(run_rewritten({"MoE", {x, router, w, nullptr, u}, attrs, 1, kMs})[0])[0], (20 * a + 30 * b) / (a + b + c), 1e-5);
  attrs["normalize_routing_weights"] = int64_t(1);
  EXPECT_NEAR(values(run_rewritten({"MoE", {x, router, w, nullptr, u}, attrs, 1, kMs})[0])[0], (20 * a + 30 * b) / (a + b), 1e-5);
}

TEST(MoE, SaysWhatItCannot) {
  const Constant x = f32({1, 1}, {1}), router = f32({1, 3}, {1, 3, 2}), w = f32({3, 1, 1}, {10, 20, 30});
  const auto message = [&](const Attrs& attrs, const std::string& op, const std::vector<Constant>& in) {
    return op_error({op, in, attrs, 1, kMs});
  };
  EXPECT_NE(message({{"k", int64_t(4)}}, "MoE", {x, router, w, nullptr, w}).find("k must be from 1"), std::string::npos);
  EXPECT_NE(message({{"use_sparse_mixer", int64_t(1)}}, "MoE", {x, router, w, nullptr, w}).find("use_sparse_mixer"), std::string::npos);
  EXPECT_NE(message({{"quant_type", std::string("fp4")}}, "QMoE", {x, router, w, w, nullptr, w, w}).find("quant_type int"), std::string::npos);
}

}  // namespace
}  // namespace tc
