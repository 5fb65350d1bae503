// Channels-last versions of values, for convert_layout.
#pragma once
#include "passes/graph/rewrite.h"

namespace tc {

/// perm of the Transpose [N, C, spatial...] -> [N, spatial..., C].
std::vector<int64_t> to_channels_last(int rank);
/// perm of the Transpose [N, spatial..., C] -> [N, C, spatial...].
std::vector<int64_t> to_channels_first(int rank);
/// Where axis `axis` of [N, C, spatial...] is in [N, spatial..., C]. Negative axes count from the end.
int64_t axis_in_last(int64_t axis, int rank);

/// What is known while a graph is rewritten from its first node to its last.
class Layouts {
 public:
  Layouts(Graph& g, bool strict) : g_(g), strict_(strict) {}

  Graph& graph() { return g_; }
  /// --fp strict: no sum in another order.
  bool strict() const { return strict_; }
  /// The channels-last tensor from which v is transposed, null if v is not made that way.
  Value* native(const Value* v) const;
  /// The channels-last version of v: its native one, a transposed constant, or a Transpose before `at`.
  Value* last(Value* v, Node* at);
  /// An operand that broadcasts against `rank` axes, in channels-last order; one of a single element stays as it is.
  Value* broadcast_last(Value* v, int rank, Node* at);
  /// Is n a Transpose of the model's to channels first? Then its operand is the channels-last version of its result.
  bool adopt(const Node* n);
  /// Does n read values that a convolution made, or nothing but values that the model itself has made channels last?
  bool may_follow(const Node* n) const;
  /// Replaces n, whose result is `v` [N, C, ...], by a node that makes the channels-last version: `y` is its output,
  /// and users of v now read Transpose(y). Erases n.
  void replace(Node* n, Value* y, bool is_convolution = false);
  /// A name for the channels-last version of n's result: the result's own unless that names an output of the graph.
  static ModelText name_for(const Node* n);

 private:
  Value* transpose(Value* v, const std::vector<int64_t>& perm, ModelText name, Node* at);

  bool adopted(const Value* v) const { return size_t(v->id) < adopted_.size() && adopted_[size_t(v->id)]; }
  void set_native(const Value* v, Value* last, bool adopted);

  Graph& g_;
  const bool strict_;
  std::vector<Value*> native_, last_;  // by value id
  std::vector<bool> adopted_;          // by value id: native, and made so by the model alone
};

/// The same of GroupNormalization and InstanceNormalization, as sums over the places of each channel (layout_norm.cc).
bool follow_normalization(Layouts& l, Node* n);

/// Rewrites n, one of whose operands has a native channels-last version, to work on these; false if it cannot.
bool follow_layout(Layouts& l, Node* n);

}  // namespace tc
