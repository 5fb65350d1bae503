// What the rewrites of nodes with counted operands (counted_*.cc) ask of a node.
#pragma once
#include <algorithm>
#include <numeric>
#include <vector>

#include "passes/graph/bounded_sizes.h"

namespace tc {

/// Throws Error TC0303: `n` cannot go along with the sizes of `v`.
[[noreturn]] void refuse_counted(const Node& n, const Value* v, const std::string& why,
                                 const std::string& way_out = {});

/// Operand k; null where it is absent.
inline Value* operand(const Node& n, size_t k) { return k < n.inputs.size() ? n.inputs[k] : nullptr; }

/// A view that moves what lies between counted elements (counted_views.cc).
inline bool is_regroup(const Node* n) { return n && n->domain == "tc" && n->op == "regroup"; }

/// An axis of `v`, counted from the front. May lie outside, as `axis` may.
inline int64_t axis_from_front(int64_t axis, const Value* v) {
  return axis < 0 ? axis + int64_t(v->type.shape.size()) : axis;
}

/// 0, 1, ..., n - 1
inline std::vector<int64_t> in_order(size_t n) {
  std::vector<int64_t> list(n);
  std::iota(list.begin(), list.end(), 0);
  return list;
}

/// The integers of operand k, or `otherwise` where it is absent; nullopt: it is no constant.
inline std::optional<std::vector<int64_t>> ints_or(const Node& n, size_t k, std::vector<int64_t> otherwise) {
  const Value* v = operand(n, k);
  return v ? ints_of(v) : std::optional(std::move(otherwise));
}

/// Is one of them a size of an image, [N, C, spatial...]?
inline bool along_space(const std::vector<BoundedSize>& sizes) {
  return std::any_of(sizes.begin(), sizes.end(), [](const BoundedSize& s) { return s.axis > 1; });
}

}  // namespace tc
