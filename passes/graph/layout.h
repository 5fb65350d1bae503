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
  explicit Layouts(Graph& g) : g_(g) {}

  Graph& graph() { return g_; }
  /// The channels-last tensor from which v is transposed, null if v is not made that way.
  Value* native(const Value* v) const;
  /// The channels-last version of v: its native one, a transposed constant, or a Transpose before `at`.
  Value* last(Value* v, Node* at);
  /// An operand that broadcasts against `rank` axes, in channels-last order; one of a single element stays as it is.
  Value* broadcast_last(Value* v, int rank, Node* at);
  /// Replaces n, whose result is `v` [N, C, ...], by a node that makes the channels-last version: `y` is its output,
  /// and users of v now read Transpose(y). Erases n.
  void replace(Node* n, Value* y);
  /// A name for the channels-last version of n's result: the result's own unless that names an output of the graph.
  static ModelText name_for(const Node* n);

 private:
  Value* transpose(Value* v, const std::vector<int64_t>& perm, ModelText name, Node* at);

  Graph& g_;
  std::vector<Value*> native_, last_;  // by value id
};

/// Rewrites n, one of whose operands has a native channels-last version, to work on these; false if it cannot.
bool follow_layout(Layouts& l, Node* n);

}  // namespace tc
