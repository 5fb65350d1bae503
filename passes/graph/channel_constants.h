// Part of fold_scale_axis: constants of one value per channel, and how they reach the weights of a contraction through
// operators that lie between.
#pragma once
#include "passes/graph/rewrite.h"

namespace tc {

/// New values of constants, computed at once; where an operand is none after all, by operators before `n`.
struct Constants {
  Graph& g;
  Node* n;
  ModelText base;

  Value* op(const char* name, std::vector<Value*> in, std::string_view suffix, Attrs attrs = {}) const {
    return constant_op(g, n, name, std::move(in), derived(base, suffix), std::move(attrs));
  }
  Value* reshape(Value* v, const Dims& dims, std::string_view suffix) const;
  /// The constant as a vector of `channels` values.
  Value* as_vector(Value* c, int64_t channels, std::string_view suffix) const;
};

/// Does `c`, broadcast against `rank` axes, have one value for each of the `channels` of `axis`, or one in all?
bool is_per_channel(const Value* c, int rank, int axis, int64_t channels);
Dims along(int axis, int64_t size, int rank);
/// May the weights take the scales in?
bool may_scale(const Value* w, const Value* s);
/// May the two be added ahead? Large numbers of opposite signs are there for the rounding between them.
bool may_add(const Value* bias, const Value* t, double limit = 0x1p20);

/// n = v op c by a constant c of one value per channel of `axis`: v, c, and whether c divides.
struct ChannelStep {
  Value *v = nullptr, *c = nullptr;  // v null: n is no such node
  bool divides = false;
};
/// `op` is "Mul", which stands for Div by numbers of a usual size, too, or "Add".
ChannelStep channel_step(const Node* n, std::string_view op, int axis);
/// The factor of a Mul or Div.
Value* factor_of(Graph& g, Node* before, const ChannelStep& s);

/// Has n weights and a bias that are known? Then which axis of the result has the channels.
struct Contraction {
  bool fits = false;
  int axis = 0;  // 1, or the last one of a MatMul
};
Contraction contraction_of(const Node* n);
/// Does a convolution or a pool read elements beside its operand?
bool is_padded(const Node& n);
/// The contraction with a factor for each channel of its result: w * s, b * s. Inserted before k.n.
Value* scale_result(const Constants& k, const Node* contraction, Value* s, ModelText name);
/// The weights of a contraction whose operand has lost a factor for each of its channels.
Value* scale_weights(const Constants& k, const Node* contraction, Value* vector);

/// Lets what makes n's operand take in the constant that n multiplies by or adds: through operators that commute with
/// it, into contractions with known weights.
///   y = Mul(Relu(Conv(x, w)), s)   ->   y = Relu(Conv(x, w * s))
bool fold_backward(Graph& g, Node* n);
/// The same from in front of a contraction n.
///   y = Conv(Relu(Mul(x, s)), w)   ->   y = Conv(Relu(x), w * s)
bool fold_forward(Graph& g, Node* n);

}  // namespace tc
