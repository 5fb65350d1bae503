// Operators of domain com.microsoft that ONNX Runtime's optimisers and exporters write. Each means what ONNX Runtime's
// documentation of its contrib operators says.
#include <algorithm>
#include <cmath>

#include "ir/ops/block_products.h"
#include "ir/ops/contraction.h"
#include "ir/ops/families.h"
#include "ir/ops/normalization.h"
#include "ir/ops/numeric.h"
#include "ir/ops/parts.h"

namespace tc {
namespace {

Expr exact_gelu(const Expr& x) { return num(x, 0.5) * x * (num(x, 1) + apply(Op::Erf, {x * num(x, std::sqrt(0.5))})); }

Expr tanh_gelu(const Expr& x) {
  const Expr inner = num(x, std::sqrt(2 / M_PI)) * (x + num(x, 0.044715) * x * x * x);
  return num(x, 0.5) * x * (num(x, 1) + tanh(inner));
}

/// y = f(x + bias), the bias along the last axis; it may be absent.
Define biased(Expr (*f)(const Expr&)) {
  return [f](OpBuilder& op) {
    const Tensor x = op.in(0);
    if (op.has(1) && op.in(1).dims() != Dims{x.dims().empty() ? 1 : x.dim(-1)})
      op.reject("the bias must have one value per element of the last axis", 1);
    op.output(0, op.compute(stage_label(op), x.dtype(), x.dims(), [&](const Exprs& i) {
      Expr v = widen(x(i));
      if (op.has(1)) v = v + widen(op.in(1).broadcast_at(i));
      return cast(x.dtype(), f(v));
    }));
  };
}

Expr quick_gelu(OpBuilder& op, Expr x) {
  return x * apply(Op::Sigmoid, {num(x, double(op.attr_float("alpha", 1.702f))) * x});
}

Expr activate(OpBuilder& op, const std::string& name, const std::vector<float>& p, const Expr& x) {
  auto parameter_or = [&](size_t k, double v) { return num(x, k < p.size() ? double(p[k]) : v); };
  if (name.empty()) return x;
  if (name == "Relu") return max(x, num(x, 0));
  if (name == "Tanh") return tanh(x);
  if (name == "Sigmoid") return apply(Op::Sigmoid, {x});
  if (name == "LeakyRelu") return select(x < num(x, 0), parameter_or(0, 0.01) * x, x);
  if (name == "Clip") return min(max(x, parameter_or(0, -INFINITY)), parameter_or(1, INFINITY));
  if (name == "HardSigmoid") return min(max(parameter_or(0, 0.2) * x + parameter_or(1, 0.5), num(x, 0)), num(x, 1));
  op.unsupported("activation \"" + printable(name) + "\"");
}

/// Conv, plus an optional addend of the result's shape, then an activation.
void define_fused_conv(OpBuilder& op) {
  const Tensor y = conv(op);
  const DType t = op.in(0).dtype();
  const std::string name = op.attr_string("activation");
  const std::vector<float> parameters = op.attr_floats("activation_params");
  if (op.has(3) && op.in(3).dims() != y.dims()) op.reject("Z must have the shape of the result", 3);
  op.output(0, op.compute("activation", t, y.dims(), [&](const Exprs& i) {
    const Expr v = op.has(3) ? y(i) + widen(op.in(3)(i)) : y(i);
    return cast(t, activate(op, name, parameters, v));
  }));
}

/// alpha * op(a) @ op(b), where transBatchA and transBatchB move the first axis behind the others but the last, and
/// then transA and transB swap the last two.
void define_fused_matmul(OpBuilder& op) {
  auto oriented = [&](int input, const std::string& trans, const std::string& trans_batch) {
    const Tensor x = op.in(input);
    // perm[k]: the axis of x that is axis k of the matrices
    std::vector<size_t> perm(size_t(x.rank()));
    for (size_t k = 0; k < perm.size(); k++) perm[k] = k;
    if (op.attr_int(trans_batch, 0) != 0 && x.rank() > 2) std::rotate(perm.begin(), perm.begin() + 1, perm.end() - 1);
    if (op.attr_int(trans, 0) != 0 && x.rank() > 1) std::swap(perm[perm.size() - 1], perm[perm.size() - 2]);
    if (std::is_sorted(perm.begin(), perm.end())) return x;
    Dims d;
    for (size_t k : perm) d.push_back(x.dim(int(k)));
    return op.compute("transpose", x.dtype(), d, [&](const Exprs& i) {
      Exprs at = i;
      for (size_t k = 0; k < perm.size(); k++) at[perm[k]] = i[k];
      return x(at);
    });
  };
  const Tensor a = oriented(0, "transA", "transBatchA"), b = oriented(1, "transB", "transBatchB");
  const MatrixProduct p = matrix_product(op, a, b, 0, 1);
  Tensor y = op.reduce(
      "matmul", Op::Add, compute_type(a.dtype()), p.dims(), {p.k},
      [&](const Exprs& i, const Exprs& r) {
        return widen(left_element(p, a, i, r[0])) * widen(right_element(p, b, i, r[0]));
      },
      p.names());
  if (const float alpha = op.attr_float("alpha", 1); alpha != 1)
    y = op.compute("scaled", y.dtype(), y.dims(),
                   [&, y](const Exprs& i) { return y(i) * parameter(y.dtype(), alpha); });
  op.output(0, convert(op, y, a.dtype(), "cast"));
}

/// Layer or RMS normalisation over the last axis of `x` (in its compute type), with the statistics of output 1 and 2.
void normalize_last(OpBuilder& op, const Tensor& x, bool center, int scale, int bias, DType to) {
  const Dims d = x.dims(), rows(d.begin(), d.end() - 1), width = {d.back()};
  const DType t = x.dtype();
  const float epsilon = op.attr_float("epsilon", center ? 1e-12f : 1e-6f);
  if (op.in(scale).dims() != width) op.reject("the scale must have one value per element of the last axis", scale);
  if (bias >= 0 && op.has(bias) && op.in(bias).dims() != width)
    op.reject("the bias must have one value per element of the last axis", bias);
  auto row = [](const Exprs& i) { return Exprs(i.begin(), i.end() - 1); };
  auto element = [&](const Exprs& i, const Exprs& r) { return x(concat(i, r)); };
  Moments m;
  if (center) {
    m = moments(op, t, rows, width, element, {});
  } else {
    const Tensor squares = op.reduce("sum_of_squares", Op::Add, t, rows, width, [&](const Exprs& i, const Exprs& r) {
      const Expr v = element(i, r);
      return v * v;
    });
    m.variance = op.compute("mean_square", t, rows,
                            [&](const Exprs& i) { return squares(i) / make_const(t, double(d.back())); });
  }
  const Tensor inverse =
      op.compute("inv_std_dev", t, rows, [&](const Exprs& i) { return reciprocal_root(m.variance(i), epsilon); });
  op.output(0, op.compute(center ? "layer_norm" : "rms_norm", to, d, [&](const Exprs& i) {
    const Expr v = center ? x(i) - m.mean(row(i)) : x(i);
    const Expr y = v * inverse(row(i)) * cast(t, op.in(scale)({i.back()}));
    return cast(to, bias >= 0 && op.has(bias) ? y + cast(t, op.in(bias)({i.back()})) : y);
  }));
  Dims kept = rows;
  kept.push_back(1);
  auto statistics = [&](const std::string& name, const Tensor& s) {
    return op.compute(name, DType::F32, kept, [&](const Exprs& i) { return cast(DType::F32, s(row(i))); });
  };
  if (center && op.wants(1)) op.output(1, statistics("saved_mean", m.mean));
  if (op.wants(center ? 2 : 1)) op.output(center ? 2 : 1, statistics("saved_inv_std_dev", inverse));
}

/// Inputs: x, skip, gamma, then beta (only if centered), bias. Output 3 is the sum that is normalised.
Define skip_normalization(bool center) {
  return [center](OpBuilder& op) {
    const Tensor x = op.in(0), skip = op.in(1);
    const int bias = center ? 4 : 3;
    const DType t = compute_type(x.dtype());
    if (x.rank() < 2) op.reject("the input must have at least two axes", 0);
    if (broadcast_dims(op, {x, skip}) != x.dims()) op.reject("skip does not broadcast to the input", 1);
    if (op.has(bias) && op.in(bias).dims() != Dims{x.dim(-1)})
      op.reject("the bias must have one value per element of the last axis", bias);
    const Tensor sum = op.compute("skip", t, x.dims(), [&](const Exprs& i) {
      const Expr v = widen(x(i)) + widen(skip.broadcast_at(i));
      return op.has(bias) ? v + widen(op.in(bias)({i.back()})) : v;
    });
    if (op.wants(3)) op.output(3, convert(op, sum, x.dtype(), "cast"));
    if (!center && op.wants(1)) op.unsupported("the mean of a normalisation that takes none");
    if (!center && op.wants(2)) op.unsupported("the saved deviation of SkipSimplifiedLayerNormalization");
    normalize_last(op, sum, center, 2, center ? 3 : -1, x.dtype());
  };
}

}  // namespace

OpFamily microsoft_ops() {
  const std::string_view ms = "com.microsoft";
  const AttrSpec epsilon = float_attr("epsilon", 1e-12f);
  std::vector<AttrSpec> fused_conv = {int_attr("group", 1),        optional_attr("kernel_shape"),
                                      optional_attr("pads"),       optional_attr("strides"),
                                      optional_attr("dilations"),  string_attr("auto_pad", "NOTSET"),
                                      optional_attr("activation"), optional_attr("activation_params")};
  OpFamily rows = {
      {"Gelu", 1, {}, biased(exact_gelu), "x", "gelu", ms},
      {"BiasGelu", 1, {}, biased(exact_gelu), "x bias", "bias_gelu", ms},
      {"FastGelu", 1, {}, biased(tanh_gelu), "x bias", "fast_gelu", ms},
      {"QuickGelu", 1, {float_attr("alpha", 1.702f)}, elementwise(quick_gelu), "x", "quick_gelu", ms},
      {"FusedConv", 1, fused_conv, define_fused_conv, "x w b z", "conv", ms},
      {"FusedMatMul",
       1,
       {float_attr("alpha", 1), int_attr("transA", 0), int_attr("transB", 0), int_attr("transBatchA", 0),
        int_attr("transBatchB", 0)},
       define_fused_matmul,
       "a b",
       "matmul",
       ms},
      {"SkipLayerNormalization",
       1,
       {epsilon},
       skip_normalization(true),
       "x skip scale bias x_bias",
       "skip_layer_norm",
       ms},
      {"SkipSimplifiedLayerNormalization",
       1,
       {epsilon},
       skip_normalization(false),
       "x skip scale x_bias",
       "skip_rms_norm",
       ms},
  };
  for (OpFamily (*part)() : {microsoft_fused_ops, microsoft_language_ops, microsoft_weights_ops, block_products_ops,
                             microsoft_experts_ops, microsoft_linear_ops, microsoft_layout_ops, qlinear_ops})
    for (OpRow& row : part()) rows.push_back(std::move(row));
  for (OpRow& row : quantization_ops()) {
    if (row.name == "DynamicQuantizeLinear") continue;
    row.domain = ms;
    rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace tc
