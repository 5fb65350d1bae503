// What LSTM, GRU and RNN share: sequences, directions, activations.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "ir/ops/op.h"

namespace tc {

using Activation = std::function<Expr(const Expr&)>;

/// Operands 0 to 2 (X, W, R), 3 (B), 4 (sequence_lens) and 5 (initial_h), checked against each other. Step t of a
/// direction is the t-th element that it sees: time t forwards, the last valid time first backwards.
struct Recurrence {
  OpBuilder& op;
  Tensor x, w, r;
  DType t;  // of states and sums
  int64_t steps = 0, batch = 0, inputs = 0, hidden = 0, gates = 0, directions = 1;
  bool batch_first = false, first_is_reverse = false;

  bool reversed(int d) const { return d == 1 || first_is_reverse; }
  bool has_lengths() const { return op.has(4); }
  /// The length of sequence n, at most `steps`.
  Expr length(const Expr& n) const;
  /// The time of step t and, being its own inverse, the step of a time. Valid where t < length(n).
  Expr time_of(int d, const Expr& t, const Expr& n) const;

  /// x[time, n, :] * w[d, gate, :] + bias for all times at once, [steps, batch, gates * hidden]. `bias(gate)` may be
  /// null.
  Tensor projection(int d, const std::function<Expr(const Expr& gate)>& bias) const;
  /// Sum of both biases of one gate; null without a B.
  std::function<Expr(const Expr& gate)> full_bias(int d) const;
  /// The state before step t: the initial one (operand `initial`, zero if absent), then state[t - 1].
  Expr previous(const Tensor& state, int initial, int d, const Exprs& i) const;
  /// next where the sequence still runs, else the old state.
  Expr held(const Expr& next, const Expr& old, const Exprs& i) const;
  /// state * r[d, first_gate * hidden + gate, :] at every step, a stage of the current scan; `at(t, n, k)` reads the
  /// state.
  Tensor recurrent_product(int d, int64_t first_gate, int64_t count,
                           const std::function<Expr(const Exprs& i, const Expr& k)>& at, const std::string& name) const;
  Expr bias_element(int d, int64_t set, const Expr& gate) const;

  /// Outputs: Y from the states of every direction, and the last state.
  void output_sequence(int k, const std::vector<Tensor>& states) const;
  void output_last(int k, const std::vector<Tensor>& states) const;
};

/// Reads operands and attributes; `gates` is 4, 3 or 1.
Recurrence read_recurrence(OpBuilder& op, int64_t gates);

/// The activations of direction d, clipped as the attribute says; `defaults` names one direction's.
std::vector<Activation> read_activations(const Recurrence& r, const std::vector<std::string>& defaults, int d);

}  // namespace tc
