// LSTM, GRU and RNN. The products with the input weights are one matrix product over all times, outside of the scan;
// a scan step multiplies the state with the recurrent weights and applies the gates.
#include "ir/ops/recurrent.h"

#include "ir/ops/families.h"
#include "ir/ops/numeric.h"

namespace tc {
namespace {

const std::vector<std::string> kState = {"t", "n", "h"};

void define_rnn(OpBuilder& op) {
  const Recurrence r = read_recurrence(op, 1);
  std::vector<Tensor> states;
  for (int d = 0; d < r.directions; d++) {
    const Activation f = read_activations(r, {"Tanh"}, d)[0];
    const Tensor x = r.projection(d, r.full_bias(d));
    op.begin_scan();
    const Tensor h = op.declare("h", r.t, {r.steps, r.batch, r.hidden});
    const Tensor product = r.recurrent_product(
        d, 0, 1,
        [&](const Exprs& i, const Expr& k) {
          return r.previous(h, 5, d, {i[0], i[1], k});
        },
        "recurrent");
    op.define(
        h,
        [&](const Exprs& i) {
          const Expr next = f(x({r.time_of(d, i[0], i[1]), i[1], i[2]}) + product(i));
          return r.held(next, r.previous(h, 5, d, i), i);
        },
        kState);
    op.end_scan();
    states.push_back(h);
  }
  r.output_sequence(0, states);
  r.output_last(1, states);
}

void define_gru(OpBuilder& op) {
  const Recurrence r = read_recurrence(op, 3);
  const bool linear_first = op.attr_int("linear_before_reset", 0) != 0;
  const int64_t hidden = r.hidden;
  std::vector<Tensor> states;
  for (int d = 0; d < r.directions; d++) {
    const std::vector<Activation> act = read_activations(r, {"Sigmoid", "Tanh"}, d);
    // With linear_before_reset the recurrent bias of the candidate is inside of the product with the reset gate; those of
    // the other gates stay beside it.
    const bool apart = linear_first && op.has(3);
    const Tensor x = r.projection(
        d, !apart ? r.full_bias(d) : [&](const Expr& g) { return r.bias_element(d, 0, g); });
    op.begin_scan();
    const Tensor h = op.declare("h", r.t, {r.steps, r.batch, hidden});
    auto before = [&](const Exprs& i, const Expr& k) { return r.previous(h, 5, d, {i[0], i[1], k}); };
    auto input = [&](const Exprs& i, int64_t gate) {
      return x({r.time_of(d, i[0], i[1]), i[1], i[2] + gate * hidden});
    };
    const Tensor gates = r.recurrent_product(d, 0, linear_first ? 3 : 2, before, "recurrent");
    auto recurrent = [&](const Exprs& i, int64_t g) {
      const Expr sum = gates({i[0], i[1], i[2] + g * hidden});
      return apart ? sum + r.bias_element(d, 1, i[2] + g * hidden) : sum;
    };
    auto gate = [&](const Exprs& i, int64_t g) { return act[0](input(i, g) + recurrent(i, g)); };
    Tensor candidate;
    if (!linear_first) {
      const Tensor reset = op.compute(
          "reset", r.t, {r.steps, r.batch, hidden}, [&](const Exprs& i) { return gate(i, 1) * before(i, i[2]); },
          kState);
      candidate = r.recurrent_product(
          d, 2, 1,
          [&](const Exprs& i, const Expr& k) {
            return reset({i[0], i[1], k});
          },
          "candidate");
    }
    op.define(
        h,
        [&](const Exprs& i) {
          Expr inner;
          if (linear_first) {
            inner = gate(i, 1) * recurrent(i, 2);
          } else {
            inner = candidate(i);
          }
          const Expr z = gate(i, 0), old = before(i, i[2]);
          const Expr next = (make_const(r.t, 1) - z) * act[1](input(i, 2) + inner) + z * old;
          return r.held(next, old, i);
        },
        kState);
    op.end_scan();
    states.push_back(h);
  }
  r.output_sequence(0, states);
  r.output_last(1, states);
}

void define_lstm(OpBuilder& op) {
  const Recurrence r = read_recurrence(op, 4);
  const int64_t hidden = r.hidden;
  if (op.has(7) && op.in(7).dims() != Dims{r.directions, 3 * hidden})
    op.reject("the peephole weights must have the shape [directions, 3 * hidden_size]", 7);
  const bool coupled = op.attr_int("input_forget", 0) != 0;
  enum Gate { kInput, kOutput, kForget, kCell };
  std::vector<Tensor> states, cells;
  for (int d = 0; d < r.directions; d++) {
    const std::vector<Activation> act = read_activations(r, {"Sigmoid", "Tanh", "Tanh"}, d);
    const Tensor x = r.projection(d, r.full_bias(d));
    op.begin_scan();
    const Dims shape = {r.steps, r.batch, hidden};
    const Tensor h = op.declare("h", r.t, shape), c = op.declare("c", r.t, shape);
    const Tensor product = r.recurrent_product(
        d, 0, 4,
        [&](const Exprs& i, const Expr& k) {
          return r.previous(h, 5, d, {i[0], i[1], k});
        },
        "recurrent");
    auto sum = [&](const Exprs& i, Gate g) {
      const Expr at = i[2] + int64_t(g) * hidden;
      return x({r.time_of(d, i[0], i[1]), i[1], at}) + product({i[0], i[1], at});
    };
    auto peephole = [&](const Exprs& i, Gate g, const Expr& gate_input, const Expr& cell) {
      return op.has(7) ? gate_input + widen(op.in(7)({d, i[2] + int64_t(g) * hidden})) * cell : gate_input;
    };
    op.define(
        c,
        [&](const Exprs& i) {
          const Expr old = r.previous(c, 6, d, i);
          const Expr in = act[0](peephole(i, kInput, sum(i, kInput), old));
          const Expr forget = coupled ? make_const(r.t, 1) - in : act[0](peephole(i, kForget, sum(i, kForget), old));
          return r.held(forget * old + in * act[1](sum(i, kCell)), old, i);
        },
        kState);
    op.define(
        h,
        [&](const Exprs& i) {
          const Expr out = act[0](peephole(i, kOutput, sum(i, kOutput), c(i)));
          return r.held(out * act[2](c(i)), r.previous(h, 5, d, i), i);
        },
        kState);
    op.end_scan();
    states.push_back(h);
    cells.push_back(c);
  }
  r.output_sequence(0, states);
  r.output_last(1, states);
  r.output_last(2, cells);
}

}  // namespace

OpFamily recurrent_ops() {
  const std::vector<AttrSpec> shared = {string_attr("direction", "forward"),
                                        int_attr("layout", 0),
                                        optional_attr("hidden_size"),
                                        optional_attr("activations"),
                                        optional_attr("activation_alpha"),
                                        optional_attr("activation_beta"),
                                        optional_attr("clip")};
  std::vector<AttrSpec> gru = shared, lstm = shared;
  gru.push_back(int_attr("linear_before_reset", 0));
  lstm.push_back(int_attr("input_forget", 0));
  return {
      {"RNN", 22, shared, define_rnn, "x w r b lengths initial_h"},
      {"GRU", 22, gru, define_gru, "x w r b lengths initial_h"},
      {"LSTM", 22, lstm, define_lstm, "x w r b lengths initial_h initial_c peephole"},
  };
}

}  // namespace tc
