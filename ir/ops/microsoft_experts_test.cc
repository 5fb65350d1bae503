// Mixtures of experts: which experts a token goes through, with which shares, and weights of few bits.
#include <gtest/gtest.h>

#include "ir/ops/test_ops.h"

namespace tc::microsoft_experts_test {
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

TEST(ExpertMatmul, MultipliesBlocksOfFewBits) {
  // One expert of two columns, four numbers of 4 bits each, in blocks of two: 1 2 | 3 4 and 8 9 | 10 11.
  const Constant packed = u8({1, 2, 2}, {0x21, 0x43, 0x98, 0xba}), scales = f32({1, 2, 2}, {1, 10, 2, 20});
  const auto parts = [&](int64_t block) {
    return run_op({"part_numbers", {packed}, {{"bits", int64_t(4)}, {"block_size", block}}, 1, "tc"})[0];
  };
  EXPECT_EQ(values(parts(2)), values(packed));
  EXPECT_EQ(values(parts(4)), (std::vector<double>{0x31, 0x42, 0xa8, 0xb9}));
  const Attrs attrs = {{"bits", int64_t(4)}};
  const Constant x = f32({1, 4}, {1, 2, 3, 4}), chosen = i64({1, 1}, {0}), zeros = u8({1, 2, 2}, {1, 3, 8, 0});
  EXPECT_EQ(values(run_op({"expert_matmul", {x, chosen, parts(2), nullptr, scales, zeros}, attrs, 1, "tc"})[0]),
            (std::vector<double>{2 + 10 * 4, 2 * 2 + 20 * (30 + 44)}));
  const Constant whole = f32({1, 2, 1}, {1, 10});
  EXPECT_EQ(values(run_op({"expert_matmul", {x, chosen, parts(4), nullptr, whole}, attrs, 1, "tc"})[0]),
            (std::vector<double>{-7 - 12 - 15 - 16, 10 * (0 + 2 + 6 + 12)}));
}

TEST(UnpackNumbers, LeavesThePaddingOut) {
  const Attrs attrs = {{"bits", int64_t(2)}, {"size", int64_t(3)}};
  EXPECT_EQ(values(run_op({"unpack_numbers", {u8({2, 1}, {0b11100100, 0b00000001})}, attrs, 1, "tc"})[0]),
            (std::vector<double>{0, 1, 2, 1, 0, 0}));
}

TEST(Swiglu, CutsBothHalvesAtTheLimit) {
  const auto gate = [](double g, double l) { return g / (1 + std::exp(-2 * g)) * (l + 1); };
  Attrs attrs = {{"alpha", 2.0f}, {"beta", 1.0f}, {"limit", 3.0f}, {"interleaved", int64_t(1)}};
  EXPECT_LT(max_error(values(run_op({"swiglu", {f32({1, 6}, {1, 2, 5, -5, -5, 5})}, attrs, 1, "tc"})[0]),
                      {gate(1, 2), gate(3, -3), gate(-5, 3)}),
            1e-6);
  attrs["interleaved"] = int64_t(0);
  EXPECT_LT(
      max_error(values(run_op({"swiglu", {f32({1, 4}, {1, 2, 5, -1})}, attrs, 1, "tc"})[0]), {gate(1, 3), gate(2, -1)}),
      1e-6);
  EXPECT_LT(
      max_error(values(run_op({"swiglu", {f32({1, 1}, {1}), f32({1, 1}, {2})}, attrs, 1, "tc"})[0]), {gate(1, 2)}),
      1e-6);
}

TEST(MoE, SharesAreASoftmaxOfTheChosenOrOfAll) {
  // Two of three experts, each of which multiplies by a number.
  const Constant x = f32({1, 1}, {1}), router = f32({1, 3}, {1, 3, 2}), w = f32({3, 1, 1}, {10, 20, 30}),
                 u = f32({3, 1, 1}, {1, 1, 1});
  const double a = std::exp(3), b = std::exp(2), c = std::exp(1);
  Attrs attrs = {{"k", int64_t(2)}, {"activation_type", std::string("identity")}};
  EXPECT_NEAR(values(run_rewritten({"MoE", {x, router, w, nullptr, u}, attrs, 1, kMs})[0])[0],
              (20 * a + 30 * b) / (a + b + c), 1e-5);
  attrs["normalize_routing_weights"] = int64_t(1);
  EXPECT_NEAR(values(run_rewritten({"MoE", {x, router, w, nullptr, u}, attrs, 1, kMs})[0])[0],
              (20 * a + 30 * b) / (a + b), 1e-5);
}

TEST(MoE, SaysWhatItCannot) {
  const Constant x = f32({1, 1}, {1}), router = f32({1, 3}, {1, 3, 2}), w = f32({3, 1, 1}, {10, 20, 30});
  const auto message = [&](const Attrs& attrs, const std::string& op, const std::vector<Constant>& in) {
    return op_error({op, in, attrs, 1, kMs});
  };
  EXPECT_NE(message({{"k", int64_t(4)}}, "MoE", {x, router, w, nullptr, w}).find("k must be from 1"),
            std::string::npos);
  EXPECT_NE(message({{"use_sparse_mixer", int64_t(1)}}, "MoE", {x, router, w, nullptr, w}).find("use_sparse_mixer"),
            std::string::npos);
  EXPECT_NE(
      message({{"quant_type", std::string("fp4")}}, "QMoE", {x, router, w, w, nullptr, w, w}).find("quant_type int"),
      std::string::npos);
}

}  // namespace
}  // namespace tc::microsoft_experts_test
