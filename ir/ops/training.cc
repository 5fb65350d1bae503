// One step of the optimisers of ai.onnx.preview.training. Operands: rate, step count, then groups of n tensors (values,
// gradients, one or two kinds of accumulated state); outputs: new values and states in the same order.
#include "ir/ops/helpers.h"
#include "ir/ops/parts.h"

namespace tc {
namespace {

/// `groups` counts the kinds of tensors after rate and step count.
int tensors_of(OpBuilder& b, int groups) {
  if (b.num_inputs() < 2 + groups || (b.num_inputs() - 2) % groups != 0)
    b.reject("the inputs must be a rate, a step count and " + to_text(int64_t(groups)) + " tensors for each variable");
  return (b.num_inputs() - 2) / groups;
}

Expr scalar_of(OpBuilder& b, int input) {
  const Tensor t = b.in(input);
  if (!has_one_element(t.dims())) b.reject("a scalar is needed", input);
  return t(Exprs(size_t(t.rank()), Expr(0)));
}

/// Tensor k of group g; all groups agree in shape and type.
Tensor group_tensor(OpBuilder& b, int n, int g, int k) {
  const Tensor first = b.in(2 + k), t = b.in(2 + g * n + k);
  if (t.dims() != first.dims() || t.dtype() != first.dtype())
    b.reject("the tensors of a variable differ in shape or type", 2 + g * n + k);
  return t;
}

/// gradient + norm_coefficient * value
Expr regularised(OpBuilder& b, const Tensor& x, const Tensor& g, const Exprs& i) {
  return num(x(i), double(b.attr_float("norm_coefficient"))) * x(i) + g(i);
}

void define_adagrad(OpBuilder& b) {
  const int n = tensors_of(b, 3);
  for (int k = 0; k < n; k++) {
    const Tensor x = group_tensor(b, n, 0, k), g = group_tensor(b, n, 1, k), h = group_tensor(b, n, 2, k);
    const DType t = x.dtype();
    const Expr rate =
        cast(t, scalar_of(b, 0)) /
        (make_const(t, 1) + cast(t, scalar_of(b, 1)) * make_const(t, double(b.attr_float("decay_factor"))));
    const Tensor squares = b.compute("squares", t, x.dims(), [&](const Exprs& i) {
      return h(i) + regularised(b, x, g, i) * regularised(b, x, g, i);
    });
    const Expr epsilon = make_const(t, double(b.attr_float("epsilon")));
    b.output(k, b.compute("adagrad", t, x.dims(), [&](const Exprs& i) {
      return x(i) - rate * regularised(b, x, g, i) / (sqrt(squares(i)) + epsilon);
    }));
    b.output(n + k, squares);
  }
}

void define_adam(OpBuilder& b) {
  const int n = tensors_of(b, 4);
  for (int k = 0; k < n; k++) {
    const Tensor x = group_tensor(b, n, 0, k), g = group_tensor(b, n, 1, k), v = group_tensor(b, n, 2, k),
                 h = group_tensor(b, n, 3, k);
    const DType t = x.dtype();
    auto attr = [&](const char* name) { return make_const(t, double(b.attr_float(name))); };
    const Expr one = make_const(t, 1), alpha = attr("alpha"), beta = attr("beta"), epsilon = attr("epsilon");
    const Expr rate = cast(t, scalar_of(b, 0)), steps = scalar_of(b, 1);
    auto power = [&](const Expr& base) { return apply(Op::Pow, {base, cast(t, steps)}); };
    const Expr adjusted = select(steps > num(steps, 0), rate * sqrt(one - power(beta)) / (one - power(alpha)), rate);
    const Tensor mean = b.compute(
        "mean", t, x.dims(), [&](const Exprs& i) { return alpha * v(i) + (one - alpha) * regularised(b, x, g, i); });
    const Tensor squares = b.compute("squares", t, x.dims(), [&](const Exprs& i) {
      const Expr e = regularised(b, x, g, i);
      return beta * h(i) + (one - beta) * e * e;
    });
    b.output(k, b.compute("adam", t, x.dims(), [&](const Exprs& i) {
      return (one - attr("norm_coefficient_post")) * (x(i) - adjusted * mean(i) / (sqrt(squares(i)) + epsilon));
    }));
    b.output(n + k, mean);
    b.output(2 * n + k, squares);
  }
}

void define_momentum(OpBuilder& b) {
  const int n = tensors_of(b, 3);
  const std::string mode = b.attr_string("mode");
  if (mode != "standard" && mode != "nesterov") b.reject("attribute mode must be standard or nesterov");
  for (int k = 0; k < n; k++) {
    const Tensor x = group_tensor(b, n, 0, k), g = group_tensor(b, n, 1, k), v = group_tensor(b, n, 2, k);
    const DType t = x.dtype();
    const Expr rate = cast(t, scalar_of(b, 0)), steps = scalar_of(b, 1);
    const Expr alpha = make_const(t, double(b.attr_float("alpha")));
    const Expr beta = select(steps > num(steps, 0), make_const(t, double(b.attr_float("beta"))), make_const(t, 1));
    const Tensor speed = b.compute("momentum", t, x.dims(),
                                   [&](const Exprs& i) { return alpha * v(i) + beta * regularised(b, x, g, i); });
    b.output(k, b.compute("momentum", t, x.dims(), [&](const Exprs& i) {
      const Expr direction = mode == "nesterov" ? regularised(b, x, g, i) + alpha * speed(i) : speed(i);
      return x(i) - rate * direction;
    }));
    b.output(n + k, speed);
  }
}

}  // namespace

OpFamily training_ops() {
  const std::string_view domain = "ai.onnx.preview.training";
  return {
      {"Adagrad",
       1,
       {{"decay_factor", 0.0f}, {"epsilon", 1e-6f}, {"norm_coefficient", 0.0f}},
       define_adagrad,
       "rate step x",
       "adagrad",
       domain},
      {"Adam",
       1,
       {{"alpha", 0.9f},
        {"beta", 0.999f},
        {"epsilon", 1e-6f},
        {"norm_coefficient", 0.0f},
        {"norm_coefficient_post", 0.0f}},
       define_adam,
       "rate step x",
       "adam",
       domain},
      {"Momentum",
       1,
       {{"alpha", {}}, {"beta", {}}, {"mode", {}}, {"norm_coefficient", {}}},
       define_momentum,
       "rate step x",
       "momentum",
       domain},
  };
}

}  // namespace tc
