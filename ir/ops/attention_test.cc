#include <gtest/gtest.h>

#include "ir/ops/test_ops.h"

namespace tc::attention_test {
namespace {

struct Shape4 {
  int64_t batch, heads, kv_heads, queries, keys, size, v_size;
};

// Softmax over the allowed keys in double; a row without a key is zero.
std::vector<double> reference(const Shape4& s, const Constant& q, const Constant& k, const Constant& v, double scale,
                              const std::function<bool(const Dims& bhij)>& allowed) {
  std::vector<double> y;
  for_each_index({s.batch, s.heads, s.queries}, [&](const Dims& i) {
    const int64_t kv = i[1] / (s.heads / s.kv_heads);
    std::vector<double> score(size_t(s.keys), -INFINITY), out(size_t(s.v_size), 0.0);
    double top = -INFINITY, sum = 0;
    for (int64_t j = 0; j < s.keys; j++) {
      if (!allowed({i[0], i[1], i[2], j})) continue;
      double dot = 0;
      for (int64_t d = 0; d < s.size; d++) dot += at(q, {i[0], i[1], i[2], d}) * at(k, {i[0], kv, j, d});
      top = std::max(top, score[size_t(j)] = dot * scale);
    }
    for (int64_t j = 0; j < s.keys && top > -INFINITY; j++) {
      const double e = std::exp(score[size_t(j)] - top);
      sum += e;
      for (int64_t d = 0; d < s.v_size; d++) out[size_t(d)] += e * at(v, {i[0], kv, j, d});
    }
    for (double o : out) y.push_back(sum == 0 ? 0 : o / sum);
  });
  return y;
}

const Shape4 kShape = {2, 4, 2, 3, 5, 4, 6};

struct Qkv {
  Constant q = random_tensor(DType::F32, {2, 4, 3, 4}, 1, 1, false),
           k = random_tensor(DType::F32, {2, 2, 5, 4}, 2, 1, false),
           v = random_tensor(DType::F32, {2, 2, 5, 6}, 3, 1, false);
};

TEST(Attention, GroupsQueriesOverKeyHeads) {
  const Qkv x;
  const auto want = reference(kShape, x.q, x.k, x.v, 0.5, [](const Dims&) { return true; });
  EXPECT_LT(max_error(values(run_op({"Attention", {x.q, x.k, x.v}})[0]), want), 1e-6);
  // The same packed as [batch, sequence, heads * size].
  auto packed = [](const Constant& c) {
    const Constant p = permuted(c, {0, 2, 1, 3});
    return tensor_of(DType::F32, {p->dims[0], p->dims[1], p->dims[2] * p->dims[3]}, values(p));
  };
  const auto y = run_op({"Attention",
                         {packed(x.q), packed(x.k), packed(x.v)},
                         {{"q_num_heads", int64_t(4)}, {"kv_num_heads", int64_t(2)}}});
  EXPECT_EQ(y[0]->dims, (Dims{2, 3, 24}));
  EXPECT_LT(max_error(values(permuted(tensor_of(DType::F32, {2, 3, 4, 6}, values(y[0])), {0, 2, 1, 3})), want), 1e-6);
}

TEST(Attention, MasksCausallyBehindAPast) {
  const Qkv x;
  const Constant past_k = random_tensor(DType::F32, {2, 2, 2, 4}, 4, 1, false),
                 past_v = random_tensor(DType::F32, {2, 2, 2, 6}, 5, 1, false);
  auto append = [](const Constant& a, const Constant& b) {
    std::vector<double> v;
    Dims d = a->dims;
    d[2] += b->dims[2];
    for_each_index(d, [&](const Dims& i) {
      Dims j = i;
      if (i[2] >= a->dims[2]) j[2] -= a->dims[2];
      v.push_back(at(i[2] < a->dims[2] ? a : b, j));
    });
    return tensor_of(DType::F32, d, v);
  };
  Shape4 s = kShape;
  s.keys = 7;
  const auto y = run_op({"Attention", {x.q, x.k, x.v, nullptr, past_k, past_v}, {{"is_causal", int64_t(1)}}, 3});
  EXPECT_EQ(values(y[1]), values(append(past_k, x.k)));
  EXPECT_LT(max_error(values(y[0]), reference(s, x.q, append(past_k, x.k), append(past_v, x.v), 0.5,
                                              [](const Dims& i) { return i[3] <= i[2] + 2; })),
            1e-6);
}

TEST(Attention, ShortMasksForbidTheRestAndEmptyRowsAreZero) {
  const Qkv x;
  const Constant mask = tensor_of(DType::Bool, {3, 4}, {1, 0, 1, 1, 0, 0, 0, 0, 1, 1, 1, 0});
  const auto allowed = [&](const Dims& i) { return i[3] < 4 && at(mask, {i[2], i[3]}) != 0; };
  const auto y =
      run_op({"Attention", {x.q, x.k, x.v, mask}, {{"scale", 2.0f}, {"qk_matmul_output_mode", int64_t(3)}}, 4});
  EXPECT_LT(max_error(values(y[0]), reference(kShape, x.q, x.k, x.v, 2, allowed)), 1e-6);
  EXPECT_EQ(at(y[3], {0, 0, 1, 0}), 0);
  std::vector<double> bias;
  for (double m : values(mask)) bias.push_back(m != 0 ? 0 : -INFINITY);
  EXPECT_EQ(values(run_op({"Attention", {x.q, x.k, x.v, tensor_of(DType::F32, {3, 4}, bias)}, {{"scale", 2.0f}}})[0]),
            values(y[0]));
}

TEST(Attention, PaddedCachesAndWindows) {
  const Qkv x;
  const Constant lengths = tensor_of(DType::I64, {2}, {5, 3});
  const auto y = run_op({"Attention",
                         {x.q, x.k, x.v, nullptr, nullptr, nullptr, lengths},
                         {{"is_causal", int64_t(1)}, {"left_window_size", int64_t(1)}}});
  EXPECT_LT(max_error(values(y[0]), reference(kShape, x.q, x.k, x.v, 0.5,
                                              [&](const Dims& i) {
                                                const int64_t length = lengths->as_int(i[0]),
                                                              position = i[2] + length - 3;
                                                return i[3] < length && i[3] <= position && i[3] >= position - 1;
                                              })),
            1e-6);
}

TEST(Attention, SoftcapComesBeforeTheMask) {
  const Qkv x;
  const Attrs a = {{"softcap", 0.5f}, {"is_causal", int64_t(1)}, {"scale", 3.0f}};
  auto scores = [&](int64_t mode) {
    Attrs m = a;
    m["qk_matmul_output_mode"] = mode;
    return run_op({"Attention", {x.q, x.k, x.v}, m, 4})[3];
  };
  const Constant raw = scores(0), capped = scores(1), masked = scores(2), weights = scores(3);
  for_each_index(raw->dims, [&](const Dims& i) {
    EXPECT_NEAR(at(capped, i), 0.5 * std::tanh(at(raw, i) / 0.5), 1e-6);
    EXPECT_EQ(at(masked, i), i[3] <= i[2] ? at(capped, i) : -INFINITY);
    EXPECT_TRUE(i[3] <= i[2] || at(weights, i) == 0);
  });
}

TEST(RotaryEmbedding, RotatesPairsByTheirPosition) {
  const Constant x = random_tensor(DType::F32, {1, 2, 3, 6}, 1, 1, false),
                 positions = tensor_of(DType::I64, {1, 3}, {4, 0, 2});
  std::vector<double> cosines, sines;
  for (int p = 0; p < 5; p++)
    for (int k = 0; k < 2; k++) cosines.push_back(std::cos(p * (k + 0.5))), sines.push_back(std::sin(p * (k + 0.5)));
  for (int64_t interleaved : {0, 1}) {
    const auto y = run_op({"RotaryEmbedding",
                           {x, tensor_of(DType::F32, {5, 2}, cosines), tensor_of(DType::F32, {5, 2}, sines), positions},
                           {{"interleaved", interleaved}, {"rotary_embedding_dim", int64_t(4)}}});
    std::vector<double> want = values(x);
    for (int64_t h = 0; h < 2; h++)
      for (int64_t s = 0; s < 3; s++)
        for (int64_t k = 0; k < 2; k++) {
          const int64_t a = interleaved ? 2 * k : k, b = interleaved ? 2 * k + 1 : k + 2, row = (h * 3 + s) * 6;
          const double angle = double(positions->as_int(s)) * (double(k) + 0.5), u = at(x, {0, h, s, a}),
                       w = at(x, {0, h, s, b});
          want[size_t(row + a)] = u * std::cos(angle) - w * std::sin(angle);
          want[size_t(row + b)] = u * std::sin(angle) + w * std::cos(angle);
        }
    EXPECT_LT(max_error(values(y[0]), want), 1e-6);
  }
}

TEST(SoftmaxOrZero, RowsThatAreForbiddenAreZero) {
  const double inf = std::numeric_limits<double>::infinity();
  const Constant x = tensor_of(DType::F32, {3, 2}, {1, 2, -inf, -inf, -inf, 5});
  const auto y = values(run_op({"softmax_or_zero", {x}, {{"axis", int64_t(-1)}}, 1, "tc"})[0]);
  const double e = std::exp(-1.0);
  EXPECT_LT(max_error(y, {e / (1 + e), 1 / (1 + e), 0, 0, 0, 1}), 1e-6);
}

}  // namespace
}  // namespace tc::attention_test
