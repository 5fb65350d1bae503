// Operators of com.microsoft for language models: attention over a cache, rotated positions, weights of few bits.
#include <gtest/gtest.h>

#include "ir/ops/test_ops.h"

namespace tc::microsoft_language_test {
namespace {

const std::string kMs = "com.microsoft";

Constant f32(Dims d, const std::vector<double>& v) { return tensor_of(DType::F32, std::move(d), v); }
Constant u8(Dims d, const std::vector<double>& v) { return tensor_of(DType::U8, std::move(d), v); }
Constant i32(Dims d, const std::vector<double>& v) { return tensor_of(DType::I32, std::move(d), v); }
Constant i64(Dims d, const std::vector<double>& v) { return tensor_of(DType::I64, std::move(d), v); }

TEST(UnpackWeights, ReadsTheLowBitsFirstAndEachRowsZeroPointsFromAByteOfTheirOwn) {
  // N = 2, K = 6, blocks of 4: two blocks of two bytes each, the last two numbers are padding.
  const Constant packed = u8({2, 2, 2}, {0x21, 0x43, 0x65, 0xff, 0x98, 0xba, 0xdc, 0xff});
  const Constant scales = f32({4}, {1, 10, 100, 1000}), zeros = u8({2}, {0x31, 0x08});
  const Attrs attrs = {{"K", int64_t(6)}, {"N", int64_t(2)}, {"bits", int64_t(4)}, {"block_size", int64_t(4)}};
  const auto y = run_op({"unpack_weights", {packed, scales, zeros}, attrs, 1, "tc"});
  EXPECT_EQ(y[0]->dims, (Dims{6, 2}));
  EXPECT_EQ(values(y[0]), (std::vector<double>{0, 0, 1, 100, 2, 200, 3, 300, 20, 12000, 30, 13000}));
  const auto middle = run_op({"unpack_weights", {packed, scales}, attrs, 1, "tc"});
  EXPECT_EQ(values(middle[0])[0], 1 - 8);
  const auto real = run_op({"unpack_weights", {packed, scales, f32({4}, {0.5, 0, 0, 0})}, attrs, 1, "tc"});
  EXPECT_EQ(values(real[0])[0], 0.5);
}

TEST(UnpackWeights, TwoAndEightBits) {
  const Attrs two = {{"K", int64_t(4)}, {"N", int64_t(1)}, {"bits", int64_t(2)}, {"block_size", int64_t(4)}};
  EXPECT_EQ(values(run_op({"unpack_weights", {u8({1, 1, 1}, {0b11100100}), f32({1}, {1})}, two, 1, "tc"})[0]),
            (std::vector<double>{-2, -1, 0, 1}));
  const Attrs eight = {{"K", int64_t(2)}, {"N", int64_t(1)}, {"bits", int64_t(8)}, {"block_size", int64_t(2)}};
  EXPECT_EQ(values(run_op({"unpack_weights", {u8({1, 1, 2}, {0, 255}), f32({1}, {0.5})}, eight, 1, "tc"})[0]),
            (std::vector<double>{-64, 63.5}));
}

TEST(MatMulNBits, MultipliesAndAdds) {
  const Constant x = f32({1, 2}, {1, 10}), packed = u8({3, 1, 1}, {0x98, 0xa8, 0x89}), scales = f32({3}, {1, 1, 2});
  const Attrs attrs = {{"K", int64_t(2)}, {"N", int64_t(3)}, {"bits", int64_t(4)}, {"block_size", int64_t(2)}};
  EXPECT_EQ(values(run_rewritten({"MatMulNBits", {x, packed, scales}, attrs, 1, kMs})[0]),
            (std::vector<double>{10, 20, 2}));
  const std::vector<Constant> biased = {x, packed, scales, nullptr, nullptr, f32({3}, {1, 2, 3})};
  EXPECT_EQ(values(run_rewritten({"MatMulNBits", biased, attrs, 1, kMs})[0]), (std::vector<double>{11, 22, 5}));
}

TEST(MatMulNBits, AnOrderSaysTheBlockOfEachRow) {
  const Constant packed = u8({1, 2, 1}, {0x21, 0x43}), scales = f32({1, 2}, {1, 10}), order = i32({4}, {1, 0, 0, 1});
  const Attrs attrs = {{"K", int64_t(4)}, {"N", int64_t(1)}, {"bits", int64_t(4)}, {"block_size", int64_t(2)}};
  EXPECT_EQ(values(run_op({"unpack_weights", {packed, scales, nullptr, order}, attrs, 1, "tc"})[0]),
            (std::vector<double>{-70, -6, -5, -40}));
}

TEST(MatMulBnb4, CodesStandHighBitsFirst) {
  // N = 2, K = 3, blocks of 4: the second row begins in the middle of a byte and of a block.
  const Constant packed = u8({3}, {0x01, 0xf7, 0x9a}), absmax = f32({2}, {1, 10});
  Attrs attrs = {{"K", int64_t(3)}, {"N", int64_t(2)}, {"block_size", int64_t(4)}, {"quant_type", int64_t(1)}};
  const Constant x = f32({3, 3}, {1, 0, 0, 0, 1, 0, 0, 0, 1});
  auto y = values(run_rewritten({"MatMulBnb4", {x, packed, absmax}, attrs, 1, kMs})[0]);
  ASSERT_EQ(y.size(), 6u);
  const std::vector<double> normal = {-1, 0, -0.6961928, 1.6093020, 1, 2.4611230};
  for (size_t k = 0; k < 6; k++) EXPECT_NEAR(y[k], normal[k], 1e-6) << k;
  attrs["quant_type"] = int64_t(0);
  y = values(run_rewritten({"MatMulBnb4", {x, packed, absmax}, attrs, 1, kMs})[0]);
  const std::vector<double> floats = {0, 0.25, 5.208333e-3, -0.05208333, -0.25, -6.6666667};
  for (size_t k = 0; k < 6; k++) EXPECT_NEAR(y[k], floats[k], 1e-6) << k;
}

TEST(BlocksOfBytes, AreRoundedToTheStepOfTheirBlock) {
  const Constant x = f32({1, 5}, {127, -50.4, 0, 0, 254});
  const Attrs block = {{"block_size", int64_t(2)}};
  const Constant scales = run_op({"block_scales", {x}, block, 1, "tc"})[0];
  EXPECT_EQ(values(scales), (std::vector<double>{1, 0, 2}));
  const Constant q = run_op({"quantize_blocks", {x, scales}, block, 1, "tc"})[0];
  EXPECT_EQ(q->dims, (Dims{1, 3, 2}));
  EXPECT_EQ(values(q), (std::vector<double>{127, -50, 0, 0, 127, 0}));
  // Two columns of three blocks of two numbers of 4 bits: zero points 1, 2, 3 and 8, 8, 8.
  const Constant packed = u8({2, 3, 1}, {0x32, 0xff, 0x04, 0x98, 0xff, 0x88}),
                 weight_scales = f32({6}, {1, 1, 2, 1, 1, 1}), zeros = u8({2, 2}, {0x21, 0x03, 0x88, 0x08});
  const Attrs attrs = {{"N", int64_t(2)}, {"bits", int64_t(4)}};
  EXPECT_EQ(values(run_op({"matmul_blocks", {q, scales, packed, weight_scales, zeros}, attrs, 1, "tc"})[0]),
            (std::vector<double>{127 - 100 + 127 * 4, -50}));
}

TEST(BlocksOfBytes, MultiplyWhatIsDequantised) {
  // x = 127 -50 | 0 0 | 254: blocks of two.
  const Constant q = tensor_of(DType::I8, {1, 3, 2}, {127, -50, 0, 0, 127, 0}), s = f32({1, 3}, {1, 0, 2});
  const Constant w = tensor_of(DType::I4, {5, 2}, {1, 2, 3, 4, 5, 6, 7, -8, -8, 7});
  EXPECT_EQ(values(run_op({"matmul_dequantized", {q, s, w, f32({2}, {1, 10})}, {{"axis", int64_t(1)}}, 1, "tc"})[0]),
            (std::vector<double>{127 - 150 - 8 * 254, 10 * (254 - 200 + 7 * 254)}));
  // The same matrix the other way round, with a scale and a zero point for each four numbers along the sum.
  const Constant turned = tensor_of(DType::I8, {2, 5}, {1, 3, 5, 7, -8, 2, 4, 6, -8, 7});
  const Constant scales = f32({2, 2}, {1, 10, 2, 4}), zeros = tensor_of(DType::I8, {2, 2}, {1, -1, 0, 7});
  const Attrs attrs = {{"axis", int64_t(1)}, {"block_size", int64_t(4)}, {"transB", int64_t(1)}};
  EXPECT_EQ(values(run_op({"matmul_dequantized", {q, s, turned, scales, zeros}, attrs, 1, "tc"})[0]),
            (std::vector<double>{-50 * 2 + 10 * -7 * 254, 2 * (254 - 200)}));
  EXPECT_NE(op_error({"matmul_dequantized", {q, s, w, f32({5}, {1, 2, 3, 4, 5})}, {{"axis", int64_t(0)}}, 1, "tc"}),
            "");
}

TEST(BlocksOfBytes, MultiplyTheWeightsOfChosenExperts) {
  // Two experts of one column, four numbers of 4 bits each, one scale and zero point for each two: 1 2 | 3 4 and 8 9 | 10 11.
  const Constant packed = u8({2, 1, 2}, {0x21, 0x43, 0x98, 0xba}), scales = f32({2, 1, 2}, {1, 10, 2, 20});
  const Constant q = tensor_of(DType::I8, {1, 2, 2}, {1, 2, 3, -4}), s = f32({1, 2}, {1, 0.5}),
                 bias = f32({2, 1}, {100, 1000}), zeros = u8({2, 1, 2}, {0, 1, 8, 0}), chosen = i64({1, 2}, {1, 0});
  const Attrs attrs = {{"bits", int64_t(4)}, {"block_size", int64_t(2)}};
  EXPECT_EQ(values(run_op({"expert_matmul_blocks", {q, s, chosen, packed, bias, scales, zeros}, attrs, 1, "tc"})[0]),
            (std::vector<double>{1000 + 2 * 2 + 10 * (30 - 44), 100 + 5 + 5 * (6 - 12)}));
  const Constant own = tensor_of(DType::I8, {1, 2, 2, 2}, {1, 2, 3, -4, 1, 0, 0, 0}),
                 steps = f32({1, 2, 2}, {1, 0.5, 1, 1});
  EXPECT_EQ(values(run_op({"expert_matmul_blocks", {own, steps, chosen, packed, nullptr, scales}, attrs, 1, "tc"})[0]),
            (std::vector<double>{2 * 2 + 10 * (6 - 12), -7}));
}

TEST(GatherBlockQuantized, GathersRowsOfPackedNumbers) {
  const Constant data = u8({2, 2}, {0x98, 0xba, 0x10, 0x32}), rows = i64({3}, {1, 0, -1}),
                 scales = f32({2, 1}, {1, 10}), zeros = u8({2, 1}, {0x08, 0x01});
  const Attrs attrs = {{"block_size", int64_t(4)}};
  EXPECT_EQ(values(run_op({"GatherBlockQuantized", {data, rows, scales, zeros}, attrs, 1, kMs})[0]),
            (std::vector<double>{-10, 0, 10, 20, 0, 1, 2, 3, -10, 0, 10, 20}));
}

TEST(RotaryEmbedding, PositionsFollowTheFirstOne) {
  const Constant x = f32({1, 2, 2}, {1, 2, 3, 4}), cosines = f32({3, 1}, {1, 0.5, 0}), sines = f32({3, 1}, {0, 2, 1});
  const std::vector<double> second = {1 * 0.5 - 2 * 2, 1 * 2 + 2 * 0.5}, third = {-4, 3};
  EXPECT_EQ(values(run_rewritten({"RotaryEmbedding", {x, i64({1}, {1}), cosines, sines}, {}, 1, kMs})[0]),
            (std::vector<double>{second[0], second[1], third[0], third[1]}));
}

TEST(AppendToCache, PutsNewKeysBehindThoseThatAreThere) {
  const Constant past = f32({2, 1, 3, 1}, {1, 2, 3, 4, 5, 6}), fresh = f32({2, 1, 1}, {7, 8});
  const auto y = run_op({"append_to_cache", {past, fresh, i64({2}, {1, 3})}, {{"total", int64_t(4)}}, 1, "tc"});
  EXPECT_EQ(values(y[0]), (std::vector<double>{1, 7, 0, 0, 4, 5, 6, 8}));
}

// ONNX Runtime has kernels of packed operands on GPUs only.
TEST(MultiHeadAttention, OperandsMayLieBesideEachOther) {
  const Dims one = {2, 3, 4};  // two heads of two
  const auto number = [](int64_t which, int64_t i) { return std::sin(double(7 * which + i)); };
  const auto alone = [&](int64_t which) {
    std::vector<double> list;
    for (int64_t i = 0; i < num_elements(one); i++) list.push_back(number(which, i));
    return f32(one, list);
  };
  const auto beside = [&](int64_t first) {  // [2, 3, heads, tensors, size]
    std::vector<double> list;
    for (int64_t head = 0; head < 2 * 3 * 2; head++)
      for (int64_t which = first; which < 3; which++)
        for (int64_t i = 0; i < 2; i++) list.push_back(number(which, head * 2 + i));
    return f32({2, 3, 2, 3 - first, 2}, list);
  };
  const Attrs attrs = {{"num_heads", int64_t(2)}};
  const auto result = [&](const std::vector<Constant>& in) {
    return values(run_rewritten({"MultiHeadAttention", in, attrs, 1, kMs})[0]);
  };
  const auto expected = result({alone(0), alone(1), alone(2)});
  EXPECT_EQ(result({beside(0)}), expected);
  EXPECT_EQ(result({alone(0), beside(1)}), expected);
  const std::string message = op_error({"MultiHeadAttention", {beside(1)}, attrs, 1, kMs});
  EXPECT_NE(message.find("axis 3 of packed operands has 3 elements"), std::string::npos) << message;
}

/// Softmax of q . k / sqrt(size) over the keys first..last of one head, applied to its values; optionally with a sink.
double attended(double q, const std::vector<double>& k, const std::vector<double>& v, int first, int last, bool sink) {
  double sum = sink ? 1 : 0, y = 0;
  for (int j = first; j <= last; j++) {
    const double e = std::exp(q * k[size_t(j)]);
    sum += e;
    y += e * v[size_t(j)];
  }
  return y / sum;
}

TEST(GroupQueryAttention, HeadsShareKeysAndSeeWhatTheCacheHolds) {
  const Constant q = f32({1, 1, 2}, {1, -1}), k = f32({1, 1, 1}, {0.5}), v = f32({1, 1, 1}, {4}),
                 past_k = f32({1, 1, 2, 1}, {1, 2}), past_v = f32({1, 1, 2, 1}, {3, 5});
  const Attrs attrs = {{"num_heads", int64_t(2)}, {"kv_num_heads", int64_t(1)}};
  const OpRun r = {"GroupQueryAttention", {q, k, v, past_k, past_v, i32({1}, {2}), i32({}, {3})}, attrs, 3, kMs};
  const auto y = run_rewritten(r);
  EXPECT_EQ(values(y[1]), (std::vector<double>{1, 2, 0.5}));
  EXPECT_EQ(values(y[2]), (std::vector<double>{3, 5, 4}));
  const std::vector<double> keys = {1, 2, 0.5}, vals = {3, 5, 4};
  EXPECT_LT(max_error(values(y[0]), {attended(1, keys, vals, 0, 2, false), attended(-1, keys, vals, 0, 2, false)}),
            1e-6);
}

TEST(GroupQueryAttention, AWindowAndASinkTakePart) {
  const std::vector<double> keys = {1, 2, 0.5}, vals = {3, 5, 4};
  const Constant q = f32({1, 3, 1}, {1, 1, 1}), k = f32({1, 3, 1}, keys), v = f32({1, 3, 1}, vals);
  const Attrs attrs = {{"num_heads", int64_t(1)},
                       {"kv_num_heads", int64_t(1)},
                       {"local_window_size", int64_t(2)},
                       {"smooth_softmax", int64_t(1)}};
  const auto y =
      run_rewritten({"GroupQueryAttention", {q, k, v, nullptr, nullptr, i32({1}, {2}), i32({}, {3})}, attrs, 1, kMs});
  EXPECT_LT(max_error(values(y[0]), {attended(1, keys, vals, 0, 0, true), attended(1, keys, vals, 0, 1, true),
                                     attended(1, keys, vals, 1, 2, true)}),
            1e-6);
}

TEST(GroupQueryAttention, EachHeadHasItsSink) {
  const std::vector<double> keys = {1, 2}, vals = {3, 5};
  const Constant q = f32({1, 2, 2}, {1, -1, 0.5, 2}), k = f32({1, 2, 1}, keys), v = f32({1, 2, 1}, vals);
  const Attrs attrs = {{"num_heads", int64_t(2)}, {"kv_num_heads", int64_t(1)}};
  std::vector<Constant> in = {q, k, v, nullptr, nullptr, i32({1}, {1}), i32({}, {2})};
  in.resize(12);
  in[11] = f32({2}, {0.5, -3});
  const auto row = [&](double query, double sink, int last) {
    double sum = std::exp(sink), y = 0;
    for (int j = 0; j <= last; j++) {
      sum += std::exp(query * keys[size_t(j)]);
      y += std::exp(query * keys[size_t(j)]) * vals[size_t(j)];
    }
    return y / sum;
  };
  EXPECT_LT(max_error(values(run_rewritten({"GroupQueryAttention", in, attrs, 1, kMs})[0]),
                      {row(1, 0.5, 0), row(-1, -3, 0), row(0.5, 0.5, 1), row(2, -3, 1)}),
            1e-6);
}

// Rows of a cache of 5 that serves windows of 4: two go at a time.
TEST(WindowRows, KeepTheWindowAndWhatThereIsRoomFor) {
  const Attrs attrs = {{"capacity", int64_t(5)}, {"window", int64_t(4)}};
  EXPECT_EQ(values(run_op({"window_rows", {i64({8}, {0, 3, 5, 6, 7, 8, 9, 100})}, attrs, 1, "tc"})[0]),
            (std::vector<double>{0, 3, 5, 4, 5, 4, 5, 4}));
}

TEST(LastRows, BeginWhereTheShiftSays) {
  const Constant x = f32({2, 1, 3, 1}, {1, 2, 3, 4, 5, 6});
  const auto y = run_op({"last_rows", {x, i64({2}, {1, 0})}, {{"capacity", int64_t(2)}}, 1, "tc"});
  EXPECT_EQ(values(y[0]), (std::vector<double>{2, 3, 4, 5}));
}

TEST(GroupQueryAttention, ACacheOfAWindowHoldsTheLastKeys) {
  // Four tokens were before, of which the cache of three rows, for windows of two, holds 20 and 30; 40 and 50 are new.
  const Constant q = f32({1, 2, 1}, {0, 0}), k = f32({1, 2, 1}, {4, 5}), v = f32({1, 2, 1}, {40, 50}),
                 past_k = f32({1, 1, 3, 1}, {2, 3, 9}), past_v = f32({1, 1, 3, 1}, {20, 30, 90});
  const Attrs attrs = {{"num_heads", int64_t(1)},
                       {"kv_num_heads", int64_t(1)},
                       {"local_window_size", int64_t(2)},
                       {"sliding_window_cache", int64_t(1)}};
  const auto y =
      run_rewritten({"GroupQueryAttention", {q, k, v, past_k, past_v, i32({1}, {5}), i32({}, {6})}, attrs, 3, kMs});
  EXPECT_EQ(values(y[0]), (std::vector<double>{35, 45}));  // no score: the mean of what is seen
  const auto kept = values(y[2]);
  EXPECT_EQ(kept[0], 40);
  EXPECT_EQ(kept[1], 50);
}

TEST(GroupQueryAttention, HeadsAreNormalizedFirst) {
  const Constant q = f32({1, 1, 4}, {3, 4, 1, 0}), k = f32({1, 1, 2}, {6, 8}), v = f32({1, 1, 2}, {1, 2});
  std::vector<Constant> in = {q, k, v, nullptr, nullptr, i32({1}, {0}), i32({}, {1})};
  in.resize(16);
  in[14] = f32({2}, {1, 2});
  in[15] = f32({2}, {1, 10});
  const Attrs attrs = {{"num_heads", int64_t(2)}, {"kv_num_heads", int64_t(1)}, {"qk_norm_epsilon", 0.0f}};
  const auto y = run_rewritten({"GroupQueryAttention", in, attrs, 3, kMs});
  const double rms = std::sqrt(50.0);
  EXPECT_LT(max_error(values(y[1]), {6 / rms, 80 / rms}), 1e-6);
}

}  // namespace
}  // namespace tc::microsoft_language_test
