// Linear models of ai.onnx.ml: LinearRegressor, LinearClassifier, rewritten into a matrix product and what follows it.
#include <algorithm>

#include "ir/ops/ml_scores.h"
#include "ir/ops/parts.h"

namespace tc {
namespace {

/// x [N, C] times the rows of `coefficients`, plus the intercepts: [N, targets].
Value* linear_scores(const Expansion& e, Value* x, int64_t targets) {
  const int64_t features = dims_of_type(x)[1];
  const std::vector<float> w = e.attr_floats("coefficients"), b = e.attr_floats("intercepts");
  if (targets < 1 || int64_t(w.size()) != checked_mul(targets, features))
    e.reject("attribute coefficients has " + to_text(int64_t(w.size())) + " numbers, not " + to_text(targets) +
             " for each of " + to_text(features) + " features");
  if (!b.empty() && b.size() != size_t(targets)) e.reject("attribute intercepts must have one number for each target");
  Value* y = times_rows(e, x, w, targets, "_coefficients", "_product");
  const bool none = std::all_of(b.begin(), b.end(), [](float v) { return v == 0; });
  return none ? y : e.op("Add", {y, e.floats(x->type.dtype, {targets}, doubles(b), "_intercepts")}, "_scores");
}

bool expand_regressor(Graph& g, Node* n) {
  const Expansion e(g, n);
  Value* y = linear_scores(e, rows_of(e, e.in(0)), e.attr_int("targets"));
  e.finish(0, e.cast(DType::F32, transform_targets(e, y, e.attr_string("post_transform")), "_f32"));
  return true;
}

bool expand_classifier(Graph& g, Node* n) {
  const Expansion e(g, n);
  const Constant labels = labels_of(e, "classlabels_ints", "classlabels_strings");
  Value* x = rows_of(e, e.in(0));
  const int64_t features = dims_of_type(x)[1];
  const auto rows = features > 0 ? int64_t(e.attr_floats("coefficients").size()) / features : 0;
  Value* scores = linear_scores(e, x, rows);
  const bool one_of_two = rows == 1 && labels->size() == 2;
  if (!one_of_two && labels->size() != rows) e.reject("there must be one row of coefficients for each label");
  if (e.wants(0)) e.finish(0, one_of_two ? label_above(e, scores, 0, labels) : label_of_largest(e, scores, labels));
  if (!e.wants(1)) return true;
  const std::string transform = e.attr_string("post_transform");
  // One row for two classes is the score of the second one.
  Value* y = post_transform(e, scores, one_of_two && transform.starts_with("SOFTMAX") ? "NONE" : transform);
  e.finish(1, e.cast(DType::F32, one_of_two ? with_complement(e, y) : y, "_f32"));
  return true;
}

}  // namespace

OpFamily ml_linear_ops() {
  const std::vector<AttrSpec> regressor = {{"coefficients", {}},
                                           {"intercepts", {}},
                                           {"post_transform", std::string("NONE")},
                                           {"targets", int64_t(1)}},
                              classifier = {{"classlabels_ints", {}},    {"classlabels_strings", {}},
                                            {"coefficients", {}},        {"intercepts", {}},
                                            {"multi_class", int64_t(0)}, {"post_transform", std::string("NONE")}};
  return {ml_row("LinearRegressor", 1, regressor, expand_regressor),
          ml_row("LinearClassifier", 1, classifier, expand_classifier)};
}

}  // namespace tc
