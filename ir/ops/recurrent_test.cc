#include <gtest/gtest.h>

#include "ir/ops/test_ops.h"

namespace tc::recurrent_test {
namespace {

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

struct Sizes {
  int64_t steps = 4, batch = 3, inputs = 2, hidden = 3, gates = 4, directions = 1;
};

struct Operands {
  Constant x, w, r, b, lengths, h, c, p;
};

Operands make_operands(const Sizes& s, bool with_lengths) {
  auto rnd = [](Dims d, int seed) { return random_tensor(DType::F32, std::move(d), seed, 1, false); };
  const int64_t gh = s.gates * s.hidden;
  return {rnd({s.steps, s.batch, s.inputs}, 1),
          rnd({s.directions, gh, s.inputs}, 2),
          rnd({s.directions, gh, s.hidden}, 3),
          rnd({s.directions, 2 * gh}, 4),
          with_lengths ? tensor_of(DType::I32, {s.batch}, {4, 1, 3}) : nullptr,
          rnd({s.directions, s.batch, s.hidden}, 5),
          rnd({s.directions, s.batch, s.hidden}, 6),
          rnd({s.directions, 3 * s.hidden}, 7)};
}

// One cell step: gates[g][k] are the pre-activations without the peepholes; h and c are updated.
using Cell = std::function<void(int64_t d, std::vector<double>& h, std::vector<double>& c, const Dims& at)>;

struct Result {
  std::vector<double> y, last_h, last_c;
};

// Runs every direction and sequence on its own, backwards where the direction says so.
Result run_reference(const Sizes& s, const Operands& o, bool first_reversed, const Cell& cell) {
  Result result;
  result.y.assign(size_t(s.steps * s.directions * s.batch * s.hidden), 0);
  for (int64_t d = 0; d < s.directions; d++)
    for (int64_t n = 0; n < s.batch; n++) {
      const int64_t length = o.lengths ? o.lengths->as_int(n) : s.steps;
      std::vector<double> h, c;
      for (int64_t k = 0; k < s.hidden; k++) h.push_back(at(o.h, {d, n, k})), c.push_back(at(o.c, {d, n, k}));
      for (int64_t t = 0; t < length; t++) {
        const int64_t time = d == 1 || first_reversed ? length - 1 - t : t;
        cell(d, h, c, {time, n});
        for (int64_t k = 0; k < s.hidden; k++)
          result.y[size_t(((time * s.directions + d) * s.batch + n) * s.hidden + k)] = h[size_t(k)];
      }
      result.last_h.insert(result.last_h.end(), h.begin(), h.end());
      result.last_c.insert(result.last_c.end(), c.begin(), c.end());
    }
  return result;
}

// x W^T + bias of gate g, unit k.
double input_part(const Sizes& s, const Operands& o, int64_t d, const Dims& at_tn, int64_t g, int64_t k) {
  double sum = at(o.b, {d, g * s.hidden + k});
  for (int64_t i = 0; i < s.inputs; i++) sum += at(o.x, {at_tn[0], at_tn[1], i}) * at(o.w, {d, g * s.hidden + k, i});
  return sum;
}
double state_part(const Sizes& s, const Operands& o, int64_t d, const std::vector<double>& h, int64_t g, int64_t k) {
  double sum = 0;
  for (int64_t i = 0; i < s.hidden; i++) sum += h[size_t(i)] * at(o.r, {d, g * s.hidden + k, i});
  return sum;
}
double state_bias(const Sizes& s, const Operands& o, int64_t d, int64_t g, int64_t k) {
  return at(o.b, {d, (s.gates + g) * s.hidden + k});
}

TEST(LSTM, MatchesTheEquationsInEveryDirection) {
  for (const char* direction : {"forward", "reverse", "bidirectional"})
    for (bool with_lengths : {false, true}) {
      Sizes s;
      s.directions = direction[0] == 'b' ? 2 : 1;
      const Operands o = make_operands(s, with_lengths);
      const Result want = run_reference(s, o, direction[0] == 'r', [&](int64_t d, auto& h, auto& c, const Dims& tn) {
        const std::vector<double> old = h;
        for (int64_t k = 0; k < s.hidden; k++) {
          auto gate = [&](int64_t g) {
            return input_part(s, o, d, tn, g, k) + state_part(s, o, d, old, g, k) + state_bias(s, o, d, g, k);
          };
          auto peep = [&](int64_t g, double cell) { return at(o.p, {d, g * s.hidden + k}) * cell; };
          const double before = c[size_t(k)], i = sigmoid(gate(0) + peep(0, before)),
                       f = sigmoid(gate(2) + peep(2, before));
          c[size_t(k)] = f * before + i * std::tanh(gate(3));
          h[size_t(k)] = sigmoid(gate(1) + peep(1, c[size_t(k)])) * std::tanh(c[size_t(k)]);
        }
      });
      const auto got =
          run_op({"LSTM", {o.x, o.w, o.r, o.b, o.lengths, o.h, o.c, o.p}, {{"direction", std::string(direction)}}, 3});
      EXPECT_LT(max_error(values(got[0]), want.y), 1e-5) << direction;
      EXPECT_LT(max_error(values(got[1]), want.last_h), 1e-5) << direction;
      EXPECT_LT(max_error(values(got[2]), want.last_c), 1e-5) << direction;
    }
}

TEST(GRU, ResetsBeforeOrAfterTheProduct) {
  for (int64_t linear : {0, 1}) {
    Sizes s;
    s.gates = 3;
    const Operands o = make_operands(s, true);
    const Result want = run_reference(s, o, false, [&](int64_t d, auto& h, auto&, const Dims& tn) {
      const std::vector<double> old = h;
      auto gate = [&](int64_t g, int64_t k) {
        return sigmoid(input_part(s, o, d, tn, g, k) + state_part(s, o, d, old, g, k) + state_bias(s, o, d, g, k));
      };
      std::vector<double> reset(old);
      for (int64_t k = 0; k < s.hidden; k++) reset[size_t(k)] *= gate(1, k);
      for (int64_t k = 0; k < s.hidden; k++) {
        const double inner = linear ? gate(1, k) * (state_part(s, o, d, old, 2, k) + state_bias(s, o, d, 2, k))
                                    : state_part(s, o, d, reset, 2, k) + state_bias(s, o, d, 2, k);
        const double z = gate(0, k);
        h[size_t(k)] = (1 - z) * std::tanh(input_part(s, o, d, tn, 2, k) + inner) + z * old[size_t(k)];
      }
    });
    const auto got = run_op({"GRU", {o.x, o.w, o.r, o.b, o.lengths, o.h}, {{"linear_before_reset", linear}}, 2});
    EXPECT_LT(max_error(values(got[0]), want.y), 1e-5);
    EXPECT_LT(max_error(values(got[1]), want.last_h), 1e-5);
  }
}

TEST(RNN, TakesOtherActivationsClipsAndBatchFirst) {
  Sizes s;
  s.gates = 1;
  const Operands o = make_operands(s, false);
  const Result want = run_reference(s, o, false, [&](int64_t d, auto& h, auto&, const Dims& tn) {
    const std::vector<double> old = h;
    for (int64_t k = 0; k < s.hidden; k++) {
      const double v = input_part(s, o, d, tn, 0, k) + state_part(s, o, d, old, 0, k) + state_bias(s, o, d, 0, k);
      const double clipped = std::min(0.5, std::max(-0.5, v));
      h[size_t(k)] = clipped >= 0 ? clipped : 0.25 * clipped;
    }
  });
  Attrs a = {{"activations", std::vector<std::string>{"LeakyRelu"}},
             {"activation_alpha", std::vector<float>{0.25f}},
             {"clip", 0.5f}};
  const auto got = run_op({"RNN", {o.x, o.w, o.r, o.b, nullptr, o.h}, a, 2});
  EXPECT_LT(max_error(values(got[0]), want.y), 1e-5);
  a["layout"] = int64_t(1);
  const auto batch_first =
      run_op({"RNN", {permuted(o.x, {1, 0, 2}), o.w, o.r, o.b, nullptr, permuted(o.h, {1, 0, 2})}, a, 2});
  EXPECT_EQ(values(permuted(batch_first[0], {1, 2, 0, 3})), values(got[0]));
  EXPECT_EQ(values(permuted(batch_first[1], {1, 0, 2})), values(got[1]));
}

TEST(Recurrent, RefusesWhatDoesNotFit) {
  const Operands o = make_operands({}, false);
  EXPECT_EQ(op_error({"LSTM", {o.x, o.w, o.r}, {{"direction", std::string("bidirectional")}}}),
            "the shape is 1x12x2 but must be 2x12x2");
  EXPECT_EQ(op_error({"LSTM", {o.x, o.w, o.r}, {{"activations", std::vector<std::string>{"Tanh", "Tanh", "Sin"}}}}),
            "activation \"Sin\" is none of ONNX's");
}

}  // namespace
}  // namespace tc::recurrent_test
