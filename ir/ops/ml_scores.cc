#include "ir/ops/ml_scores.h"

namespace tc {

namespace {

Value* number(const Expansion& e, Value* like, double v, std::string_view suffix) {
  return e.number(like->type.dtype, v, suffix);
}

void require_transform(const Expansion& e, const std::string& transform) {
  for (const char* known : {"NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT"})
    if (transform == known) return;
  e.reject("attribute post_transform must be NONE, SOFTMAX, LOGISTIC, SOFTMAX_ZERO or PROBIT");
}

/// Softmax over the elements that are not zero; those stay (close to) zero.
Value* softmax_zero(const Expansion& e, Value* x) {
  constexpr double kZero = 1e-7;
  Value* keepdims_axes = e.constant(int64_constant({-1}), "_axis");
  Value* largest = e.op("ReduceMax", {x, keepdims_axes}, "_largest");
  Value* is_zero = e.op("LessOrEqual", {e.op("Abs", {x}, "_abs"), number(e, x, kZero, "_zero")}, "_is_zero");
  Value* grown = e.op("Exp", {e.op("Sub", {x, largest}, "_shifted")}, "_exp");
  Value* shrunk = e.op("Mul", {x, e.op("Exp", {e.op("Neg", {largest}, "_negated")}, "_scale")}, "_scaled");
  Value* counted = e.op("Where", {is_zero, number(e, x, 0, "_nothing"), grown}, "_counted");
  Value* sum = e.op("ReduceSum", {counted, keepdims_axes}, "_sum");
  Value* whole =
      e.op("Where", {e.op("Equal", {sum, number(e, x, 0, "_none")}, "_empty"), number(e, x, 1, "_one"), sum}, "_whole");
  return e.op("Div", {e.op("Where", {is_zero, shrunk, grown}, "_terms"), whole}, "_softmax_zero");
}

/// The inverse of the normal distribution's integral, by Winitzki's approximation, which ONNX Runtime uses, too.
Value* probit(const Expansion& e, Value* p) {
  constexpr double kPi = 3.14159, kA = 0.147;
  Value* x = e.op("Sub", {e.op("Mul", {p, number(e, p, 2, "_two")}, "_doubled"), number(e, p, 1, "_one")}, "_x");
  Value* one = number(e, p, 1, "_1");
  Value* product = e.op("Mul", {e.op("Sub", {one, x}, "_below"), e.op("Add", {one, x}, "_above")}, "_product");
  Value* log = e.op("Log", {product}, "_log");
  Value* v = e.op(
      "Add", {e.op("Mul", {log, number(e, p, 0.5, "_half")}, "_half_log"), number(e, p, 2 / (kPi * kA), "_c")}, "_v");
  Value* w = e.op("Mul", {log, number(e, p, 1 / kA, "_d")}, "_w");
  Value* root = e.op("Sqrt", {e.op("Sub", {e.op("Mul", {v, v}, "_v2"), w}, "_v2w")}, "_root");
  Value* size = e.op("Sqrt", {e.op("Sub", {root, v}, "_rest")}, "_size");
  Value* sign =
      e.op("Where", {e.op("Less", {x, number(e, p, 0, "_0")}, "_lower"), number(e, p, -1, "_minus"), one}, "_sign");
  return e.op("Mul", {e.op("Mul", {sign, size}, "_erfinv"), number(e, p, 1.41421356, "_sqrt2")}, "_probit");
}

}  // namespace

OpRow ml_row(std::string_view name, int since, std::vector<AttrSpec> attrs, bool (*expand)(Graph&, Node*)) {
  return expanding_row("ai.onnx.ml", name, since, std::move(attrs), expand);
}

std::vector<double> doubles(const std::vector<float>& v) { return {v.begin(), v.end()}; }

Value* rows_of(const Expansion& e, Value* x) {
  const Dims dims = dims_of_type(x);
  if (dims.empty() || dims.size() > 2) e.reject("the input must have one or two axes");
  if (!is_float(x->type.dtype) && !is_int(x->type.dtype)) e.reject("the input must hold numbers");
  x = e.cast(x->type.dtype == DType::F64 ? DType::F64 : DType::F32, x, "_x");
  return dims.size() == 1 ? e.reshape(x, {1, dims[0]}, "_row") : x;
}

Value* times_rows(const Expansion& e, Value* x, const std::vector<float>& rows, int64_t count, std::string_view factor,
                  std::string_view product) {
  const auto n = size_t(count), features = size_t(dims_of_type(x)[1]);
  check(rows.size() == n * features, "times_rows: one number for each row and feature");
  std::vector<double> columns(rows.size());
  for (size_t r = 0; r < n; r++)
    for (size_t c = 0; c < features; c++) columns[c * n + r] = double(rows[r * features + c]);
  return e.op("MatMul", {x, e.floats(x->type.dtype, {int64_t(features), count}, columns, factor)}, product);
}

Value* post_transform(const Expansion& e, Value* scores, const std::string& transform) {
  require_transform(e, transform);
  if (transform == "NONE") return scores;
  if (transform == "LOGISTIC") return e.op("Sigmoid", {scores}, "_logistic");
  if (transform == "SOFTMAX") return e.op("Softmax", {scores}, "_softmax", {{"axis", int64_t(-1)}});
  if (transform == "SOFTMAX_ZERO") return softmax_zero(e, scores);
  return probit(e, scores);
}

Value* transform_targets(const Expansion& e, Value* y, const std::string& transform) {
  if (dims_of_type(y)[1] != 1 || transform == "PROBIT") return post_transform(e, y, transform);
  require_transform(e, transform);
  return y;
}

Constant labels_of(const Expansion& e, const std::string& ints, const std::string& strings) {
  if (const std::vector<std::string> words = e.attr_strings(strings); !words.empty())
    return string_constant({int64_t(words.size())}, words);
  const std::vector<int64_t> labels = e.attr_ints(ints);
  if (labels.empty()) e.reject("attribute " + ints + " is missing");
  return int64_constant(labels);
}

Value* label_of_largest(const Expansion& e, Value* scores, const Constant& labels) {
  Value* index = e.op("ArgMax", {scores}, "_place", {{"axis", int64_t(1)}, {"keepdims", int64_t(0)}});
  bool counts = labels->dtype == DType::I64;  // label k is k
  for (int64_t k = 0; counts && k < labels->size(); k++) counts = labels->as_int(k) == k;
  if (counts) return index;
  return e.op("Gather", {e.constant(labels, "_labels"), index}, "_chosen");
}

Value* label_above(const Expansion& e, Value* scores, double bar, const Constant& labels) {
  Value* flat = e.reshape(scores, {dims_of_type(scores)[0]}, "_flat");
  Value* above = e.op("Greater", {flat, number(e, scores, bar, "_bar")}, "_above_bar");
  const auto label = [&](size_t k) {
    return labels->dtype == DType::String ? string_constant({}, {labels->strings.at(k)})
                                          : make_constant(DType::I64, {}, labels->as<int64_t>() + k);
  };
  return e.op("Where", {above, e.constant(label(1), "_yes"), e.constant(label(0), "_no")}, "_chosen");
}

Value* with_complement(const Expansion& e, Value* scores) {
  Value* other = e.op("Sub", {number(e, scores, 1, "_whole"), scores}, "_complement");
  return e.op("Concat", {other, scores}, "_pair", {{"axis", int64_t(1)}});
}

Value* with_negative(const Expansion& e, Value* scores) {
  return e.op("Concat", {e.op("Neg", {scores}, "_negative"), scores}, "_pair", {{"axis", int64_t(1)}});
}

}  // namespace tc
