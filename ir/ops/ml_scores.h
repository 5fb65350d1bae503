// Scores of the classifiers and regressors of ai.onnx.ml: what happens to them after they are summed.
#pragma once
#include "ir/ops/expansion.h"

namespace tc {

/// X as [N, C]: one row where it has one axis. Its type is f64 if it was, else f32.
Value* rows_of(const Expansion& e, Value* x);

/// `scores` [N, T] under post_transform NONE, SOFTMAX, LOGISTIC, SOFTMAX_ZERO or PROBIT, along the last axis.
Value* post_transform(const Expansion& e, Value* scores, const std::string& transform);

/// The same for the targets [N, T] of a regressor. As in ONNX Runtime, a single target knows
/// PROBIT only: the other transforms are for scores of several.
Value* transform_targets(const Expansion& e, Value* y, const std::string& transform);

/// The labels of a classifier.
struct Labels {
  std::vector<int64_t> ints;
  size_t count() const { return ints.size(); }
};
/// Reads the attributes; refuses strings.
Labels labels_of(const Expansion& e, const std::string& ints, const std::string& strings);

/// The label (I64 [N]) of the largest of each row of `scores`, the first one of several.
Value* label_of_largest(const Expansion& e, Value* scores, const Labels& labels);
/// The label of each row of `scores` [N, 1]: `yes` where the score is above `bar`, else `no`.
Value* label_above(const Expansion& e, Value* scores, double bar, int64_t yes, int64_t no);
/// [1 - s, s] of the scores s [N, 1].
Value* with_complement(const Expansion& e, Value* scores);
/// [-s, s].
Value* with_negative(const Expansion& e, Value* scores);

}  // namespace tc
