// Scores of the classifiers and regressors of ai.onnx.ml: what happens to them after they are summed.
#pragma once
#include "ir/ops/expansion.h"

namespace tc {

/// A row of ai.onnx.ml, which is rewritten by `expand`.
OpRow ml_row(std::string_view name, int since, std::vector<AttrSpec> attrs, bool (*expand)(Graph&, Node*));

/// What attributes hold in single precision.
std::vector<double> doubles(const std::vector<float>& v);

/// X as [N, C]: one row where it has one axis. Its type is f64 if it was, else f32.
Value* rows_of(const Expansion& e, Value* x);

/// x [N, C] times each of `count` rows [count, C]: [N, count]. Suffixes: of the constant, and of the product.
Value* times_rows(const Expansion& e, Value* x, const std::vector<float>& rows, int64_t count, std::string_view factor,
                  std::string_view product);

/// `scores` [N, T] under post_transform NONE, SOFTMAX, LOGISTIC, SOFTMAX_ZERO or PROBIT, along the last axis.
Value* post_transform(const Expansion& e, Value* scores, const std::string& transform);

/// The same for the targets [N, T] of a regressor. As in ONNX Runtime, a single target knows
/// PROBIT only: the other transforms are for scores of several.
Value* transform_targets(const Expansion& e, Value* y, const std::string& transform);

/// The labels of a classifier, from these attributes: whole numbers (I64) or strings, of rank 1.
Constant labels_of(const Expansion& e, const std::string& ints, const std::string& strings);

/// The label ([N], of the labels' type) of the largest of each row of `scores`, the first one of several.
Value* label_of_largest(const Expansion& e, Value* scores, const Constant& labels);
/// The label of each row of `scores` [N, 1]: the second of two where the score is above `bar`, else the first.
Value* label_above(const Expansion& e, Value* scores, double bar, const Constant& labels);
/// [1 - s, s] of the scores s [N, 1].
Value* with_complement(const Expansion& e, Value* scores);
/// [-s, s].
Value* with_negative(const Expansion& e, Value* scores);

}  // namespace tc
