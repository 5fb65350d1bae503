// Activations: one formula a row.
#include "ir/ops/helpers.h"
#include "ir/ops/parts.h"

namespace tc {
namespace {

Expr sigmoid(const Expr& x) { return apply(Op::Sigmoid, {x}); }
Expr expm1(const Expr& x) { return apply(Op::Expm1, {x}); }
Expr erf(const Expr& x) { return apply(Op::Erf, {x}); }

/// log(1 + exp(x)) without overflow.
Expr softplus(const Expr& x) { return max(x, num(x, 0)) + apply(Op::Log1p, {exp(-abs(x))}); }

Expr gelu(OpBuilder& b, const Expr& x) {
  const std::string form = b.attr_string("approximate", "none");
  if (form != "none" && form != "tanh") b.reject("attribute approximate must be none or tanh");
  const Expr half = num(x, 0.5), one = num(x, 1);
  if (form == "none") return half * x * (one + erf(x * num(x, 0.70710678118654752)));
  return half * x * (one + tanh(num(x, 0.79788456080286536) * (x + num(x, 0.044715) * x * x * x)));
}

/// Bias and bound of integers are fractions, too.
Expr shrink(OpBuilder& b, const Expr& element) {
  const Expr x = is_float(element->dtype) ? element : cast(DType::F64, element);
  const Expr lambd = num(x, double(b.attr_float("lambd"))), bias = num(x, double(b.attr_float("bias")));
  const Expr y = select(x < -lambd, x + bias, select(x > lambd, x - bias, num(x, 0)));
  return is_float(element->dtype) ? y : cast(element->dtype, y);
}

Expr softsign(OpBuilder& b, const Expr& x) {
  require_float(b, x->dtype);
  return x / (num(x, 1) + abs(x));
}

Expr selu(OpBuilder& b, const Expr& x) {
  const Expr alpha = num(x, double(b.attr_float("alpha"))), gamma = num(x, double(b.attr_float("gamma")));
  return gamma * select(x <= num(x, 0), alpha * expm1(x), x);
}

Expr celu(OpBuilder& b, const Expr& x) {
  const Expr alpha = num(x, double(b.attr_float("alpha")));
  return max(num(x, 0), x) + min(num(x, 0), alpha * expm1(x / alpha));
}

Expr hard_sigmoid(OpBuilder& b, const Expr& x) {
  const Expr alpha = num(x, double(b.attr_float("alpha"))), beta = num(x, double(b.attr_float("beta")));
  return max(num(x, 0), min(num(x, 1), alpha * x + beta));
}

Expr hard_swish(const Expr& x) { return x * max(num(x, 0), min(num(x, 1), x * num(x, 1.0 / 6) + num(x, 0.5))); }

Expr swish(OpBuilder& b, const Expr& x) {
  const double alpha = double(b.attr_float("alpha"));
  return x * sigmoid(alpha == 1 ? x : num(x, alpha) * x);
}

/// The slope broadcasts to the input, never the other way round.
void define_prelu(OpBuilder& b) {
  const Tensor x = b.in(0), slope = b.in(1);
  if (slope.dtype() != x.dtype()) b.reject("the slope has another type than the input", 1);
  if (broadcast_dims(b, {x, slope}) != x.dims()) b.reject("the slope does not broadcast to the input's shape", 1);
  b.output(0, b.compute("prelu", x.dtype(), x.dims(), [&](const Exprs& i) {
    const Expr e = widen(x(i));
    const bool can_be_negative = is_float(x.dtype()) || is_signed_int(x.dtype());
    if (!can_be_negative) return x(i);
    return cast(x.dtype(), select(e < num(e, 0), e * widen(slope.broadcast_at(i)), e));
  }));
}

/// Inference passes its input on. Training keeps an element with probability 1 - ratio and scales what it keeps.
void define_dropout(OpBuilder& b) {
  const Tensor x = b.in(0);
  const Constant known = b.constant(2);
  if (!b.has(2) || (known && known->as_int(0) == 0)) {
    b.output(0, x);
    b.output(1, b.compute("mask", DType::Bool, x.dims(), [](const Exprs&) { return make_int(DType::Bool, 1); }));
    return;
  }
  Expr ratio = make_float(DType::F64, 0.5);
  if (b.has(1)) {
    const Tensor r = b.in(1);
    if (!has_one_element(r.dims())) b.reject("the ratio must be a scalar", 1);
    ratio = cast(DType::F64, r(Exprs(size_t(r.rank()), Expr(0))));
  }
  Expr training = make_int(DType::Bool, 1);
  if (!known) {
    const Tensor t = b.in(2);
    if (t.dtype() != DType::Bool || !has_one_element(t.dims())) b.reject("training_mode must be one bool", 2);
    training = t(Exprs(size_t(t.rank()), Expr(0)));
  }
  const Tensor mask = b.compute("mask", DType::Bool, x.dims(), [&](const Exprs& i) {
    return select(training, uniform_random(b, i, x.dims()) >= ratio, make_int(DType::Bool, 1));
  });
  b.output(0, b.compute("dropout", x.dtype(), x.dims(), [&](const Exprs& i) {
    const Expr e = widen(x(i)), scale = cast(e->dtype, make_float(DType::F64, 1) / (make_float(DType::F64, 1) - ratio));
    const Expr dropped = select(mask(i), e * scale, zero(e->dtype));
    return cast(x.dtype(), select(training, dropped, e));
  }));
  b.output(1, mask);
}

void define_has_element(OpBuilder& b) {
  if (b.has(0) && b.node().inputs[0]->type.kind == ValueType::Kind::Optional)
    b.unsupported("an optional that is filled or empty only when the model runs cannot be compiled", 0);
  const int64_t present = b.has(0) ? 1 : 0;
  b.output(0, b.compute("has_element", DType::Bool, {}, [&](const Exprs&) { return make_int(DType::Bool, present); }));
}

void define_swiglu(OpBuilder& b) {
  const Tensor gate = b.in(0), value = b.in(1);
  if (gate.dims() != value.dims() || gate.dtype() != value.dtype())
    b.reject("both inputs must have one shape and type", 1);
  b.output(0, b.compute("swiglu", gate.dtype(), gate.dims(), [&](const Exprs& i) {
    return cast(gate.dtype(), swish(b, widen(gate(i))) * widen(value(i)));
  }));
}

}  // namespace

OpFamily activation_ops() {
  const OpFamily first = {
      {"Relu", 14, {}, elementwise([](Expr x) { return max(x, num(x, 0)); })},
      {"Sigmoid", 13, {}, elementwise(sigmoid)},
      {"Tanh", 13, {}, elementwise([](Expr x) { return tanh(x); })},
      {"Softplus", 22, {}, elementwise(softplus)},
      {"Softsign", 22, {}, elementwise(softsign)},
      {"Mish", 22, {}, elementwise([](Expr x) { return x * tanh(softplus(x)); })},
      {"Gelu", 20, {{"approximate", std::string("none")}}, elementwise(gelu)},
      {"Elu", 22, {{"alpha", 1.0f}}, elementwise([](OpBuilder& b, Expr x) {
         return select(x < num(x, 0), num(x, double(b.attr_float("alpha"))) * expm1(x), x);
       })},
      {"Selu", 22, {{"alpha", 1.67326319217681884765625f}, {"gamma", 1.05070102214813232421875f}}, elementwise(selu)},
      {"Celu", 28, {{"alpha", 1.0f}}, elementwise(celu)},
      {"LeakyRelu", 16, {{"alpha", 0.01f}}, elementwise([](OpBuilder& b, Expr x) {
         require_float(b, x->dtype);
         return select(x < num(x, 0), num(x, double(b.attr_float("alpha"))) * x, x);
       })},
  };
  const OpFamily second = {
      {"ThresholdedRelu", 22, {{"alpha", 1.0f}}, elementwise([](OpBuilder& b, Expr x) {
         return select(x > num(x, double(b.attr_float("alpha"))), x, num(x, 0));
       })},
      {"Shrink", 9, {{"bias", 0.0f}, {"lambd", 0.5f}}, elementwise(shrink)},
      {"HardSigmoid", 22, {{"alpha", 0.2f}, {"beta", 0.5f}}, elementwise(hard_sigmoid)},
      {"HardSwish", 22, {}, elementwise(hard_swish)},
      {"Swish", 24, {{"alpha", 1.0f}}, elementwise(swish)},
  };
  const OpFamily others = {
      {"SwiGLU", 28, {{"alpha", 1.0f}}, define_swiglu, "gate value", "swiglu"},
      marked(OpTrait::SameSizes,
             marked(OpTrait::KeepsElements, {"Identity", 25, {}, [](OpBuilder& b) { b.output(0, b.in(0)); }})),
      {"Dropout", 22, {{"seed", {}}}, define_dropout, "x ratio training"},
      {"OptionalHasElement", 28, {}, define_has_element},
      {"OptionalGetElement", 28, {}, [](OpBuilder& b) { b.output(0, b.in(0)); }},
  };
  return joined({
      all_marked(OpTrait::Activation, first),
      {marked(OpTrait::Broadcasts, {"PRelu", 16, {}, define_prelu, "x slope", "prelu"})},
      all_marked(OpTrait::Activation, second),
      others,
  });
}

}  // namespace tc
