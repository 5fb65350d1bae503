// Folds multiplications and additions by constants of one value per channel into the weights beside them.
//   backward:  y = Mul(Conv(x, w, b), s)         ->   y = Conv(x, w * s, b * s)
//              y = Add(Conv(x, w, b), t)         ->   y = Conv(x, w, b + t)
//              y = Mul(MatMul(x, w), s)          ->   y = MatMul(x, w * s)
//              y = Mul(Add(v, t), s)             ->   y = Add(Mul(v, s), t * s)      v of a MatMul, so that the line above
//              fits
//              y = Mul(MaxPool(Relu(Conv(x, w))), s)   ->   y = MaxPool(Relu(Conv(x, w * s)))
//   forward:   y = Conv(Mul(x, s), w)            ->   y = Conv(x, w * s)             s per input channel
//              y = Conv(Relu(Mul(x, s)), w)      ->   y = Conv(Relu(x), w * s)
//              y = Conv(Add(x, t), w, b)         ->   y = Conv(x, w, b + the sums of w * t)
//              y = MatMul(Mul(x, s), w)          ->   y = MatMul(x, s * w)
//              y = MatMul(Mul(a, c), b)          ->   y = Mul(MatMul(a, b), c)      c a scalar, a and b computed
//                                                     y = tc.scaled_matmul(a, b)    of halves, which could not hold a * b
// Div by a constant is Mul by its reciprocal; ConvTranspose is like Conv. w, b, s, t are constants and the value between
// the two nodes has no other use. Padding is zero, and zero scaled is zero, so forward holds for padded convolutions too,
// but not for what is added. Not under strict_fp: the roundings move.
//
// Between the constant and the contraction there may be operators that commute with it: Relu, LeakyRelu, PRelu, MaxPool
// and ReduceMax where all of s is positive, or with t (but the first three); AveragePool and ReduceMean; an Add of which
// both operands take s in (forward: have it), and one t; a Concat, of which each operand takes its part in (forward: some
// have one).
//
// Preconditions of all: f32 or f64 (a half could leave its range), but for the last line; the constants and what becomes of them are of a usual
// size (is_moderate), divisors in each element; the result, and x, v and a, have the shape of what they replace: the
// constant only broadcasts; the value between the two nodes has no other user and is no output. And of
//   Conv     weights and bias are constants; s and t have one value in all, or one for each channel along axis 1 and
//            ones elsewhere
//   MatMul   w has two axes, y at least two; s has one value in all or one for each column (forward: row) of w, along
//            the last axis; t may have any shape that broadcasts; c: neither factor is constant
//   forward t   no padding, no ConvTranspose; t within 2^8 and one value for each channel or in all; of a MatMul: a constant
//               vector is added to its result, which takes the sums in
//   between  pools: along the spatial axes and not in ceil_mode, for t AveragePool without padding; reductions: keep
//            their axes and leave the channels; eight operators at most
//
// Needs: simplify_inference has turned batch normalisations into Mul and Add. Leaves: products and sums of constants
// for fold_constant, and no per-channel Mul or Add beside a contraction whose weights are constant.
#include <cmath>
#include <numeric>

#include "ir/ops/op.h"
#include "passes/graph/channel_constants.h"
#include "passes/graph/match.h"
#include "passes/graph/passes.h"

namespace tc {

namespace {

/// The MatMul with a constant matrix on the right that makes v for one user.
Node* private_matmul(const Value* v) {
  Node* m = made_by(v, "MatMul");
  return m && only_user(v) && m->inputs[1]->constant && rank_of(m->inputs[1]) == 2 && rank_of(v) >= 2 ? m : nullptr;
}

/// (MatMul(x, w) + t) * s -> MatMul(x, w * s) + t * s
bool around_bias(Graph& g, Node* n) {
  const ChannelStep step = channel_step(n, "Mul", rank_of(n->outputs[0]) - 1);
  const Node* add = step.v && only_user(step.v) ? made_by(step.v, "Add") : nullptr;
  Value* inner = other_operand(add, [](const Value* o) { return o->constant != nullptr; });
  Node* m = inner && inner->type == step.v->type ? private_matmul(inner) : nullptr;
  if (!m || !may_scale(m->inputs[1], step.c)) return false;
  Value* t = add->inputs[0] == inner ? add->inputs[1] : add->inputs[0];
  const Constants k{g, n, m->inputs[1]->name};
  Value* s = factor_of(g, n, step);
  Value* product = scale_result(k, m, s, inner->name);
  Value* sum = add_op(g, n, "Add", {product, k.op("Mul", {t, s}, "_shift")}, n->outputs[0]->name);
  sum->producer->origins = add->origins;
  replace_node(g, n, sum);
  return true;
}

/// The product of halves, scaled before it is rounded.
Value* scaled_matmul(Graph& g, Node* n, double factor) {
  Node* m = g.insert(n, "scaled_matmul", n->inputs, {n->outputs[0]->name}, {{"scale", float(factor)}}, "tc");
  m->name = n->name;
  m->origins = n->origins;
  infer_types(g, *m);
  return m->outputs[0];
}

/// MatMul(x * c, y) -> MatMul(x, y) * c for a scalar c: one factor after the product, where it costs no kernel.
bool scalar_before_matmul(Graph& g, Node* n) {
  if (!n->is("MatMul") || n->inputs[0]->constant || n->inputs[1]->constant) return false;
  double factor = 1;
  std::vector<Node*> gone;
  for (size_t k = 0; k < 2; ++k) {
    Value* v = n->inputs[k];
    const Node* step = only_user(v) ? v->producer : nullptr;
    const bool divides = step && step->is("Div");
    if (!step || (!divides && !step->is("Mul"))) continue;
    Value* x = other_operand(step, [](const Value* o) { return scalar_of(o).has_value(); });
    if (!x || x->type != v->type || (divides && step->inputs[0] != x)) continue;
    const double c = *scalar_of(step->inputs[0] == x ? step->inputs[1] : step->inputs[0]);
    if (!(std::abs(c) >= 0x1p-20 && std::abs(c) <= 0x1p20)) continue;
    factor *= divides ? 1 / c : c;
    gone.push_back(v->producer);
    g.set_input(n, k, x);
  }
  if (gone.empty()) return false;
  Value* y = n->outputs[0];
  const bool wide = is_wide(y->type.dtype);
  Value* product =
      wide ? add_op(g, n, "MatMul", n->inputs, derived(y->name, "_unscaled")) : scaled_matmul(g, n, factor);
  for (Node* m : gone) {
    add_origins(product->producer->origins, m->origins);
    erase_unused(g, m);
  }
  if (!wide) {
    replace_node(g, n, product);
    return true;
  }
  Value* c = g.add_constant(derived(y->name, "_scale"), scalar_constant(y->type.dtype, factor));
  Value* scaled = add_op(g, n, "Mul", {product, c}, y->name);
  scaled->producer->origins.clear();
  replace_node(g, n, scaled);
  return true;
}

/// The sums of w over all but the channels of the result, each element of which is multiplied by what is added to the
/// channel of the operand: what that adds to the result. In double precision: there may be many.
Value* sum_of_shifts(Graph& g, Node* n, Value* c, int64_t channels) {
  const Constants k{g, n, derived(n->inputs[1]->name, "_shift")};
  Value* terms = scale_weights(k, n, k.as_vector(c, channels, "_before"));
  std::vector<int64_t> axes(size_t(rank_of(terms)) - 1);
  std::iota(axes.begin(), axes.end(), n->is("MatMul") ? 0 : 1);
  Value* over = g.add_constant(derived(k.base, "_axes"), int64_constant(axes));
  Value* wide = k.op("Cast", {terms}, "_wide", {{"to", int64_t(DType::F64)}});
  Value* sum = k.op("ReduceSum", {wide, over}, "_sum_wide", {{"keepdims", int64_t(0)}});
  return k.op("Cast", {sum}, "_sum", {{"to", int64_t(n->outputs[0]->type.dtype)}});
}

/// Conv(x + t, w, b) -> Conv(x, w, b + the sums of w * t), without padding, which is not shifted; the same for MatMul, whose
/// bias is an Add.
bool shift_before(Graph& g, Node* n) {
  if (!contraction_of(n).fits || n->is("ConvTranspose") || (n->is("Conv") && is_padded(*n))) return false;
  const int axis = n->is("MatMul") ? rank_of(n->inputs[0]) - 1 : 1;
  Value* v = n->inputs[0];
  const ChannelStep step = only_user(v) ? channel_step(v->producer, "Add", axis) : ChannelStep();
  if (!step.v || !is_moderate(n->inputs[1]->constant, 32) || !may_add(nullptr, step.c, 0x1p8)) return false;
  Node *add = n->is("MatMul") ? only_user(n->outputs[0]) : nullptr, *holder = n->is("MatMul") ? add : n;
  size_t at = 2;
  if (n->is("MatMul")) {
    const ChannelStep bias = channel_step(add, "Add", rank_of(n->outputs[0]) - 1);
    if (!bias.v || dims_of(bias.c) != Dims{dims_of(n->inputs[1])[1]}) return false;
    at = add->inputs[0] == bias.c ? 0 : 1;
  }
  Value* bias = holder->inputs.size() > at ? holder->inputs[at] : nullptr;
  if (!may_add(bias, step.c)) return false;
  Value* sum = sum_of_shifts(g, n, step.c, dims_of(v)[size_t(axis)]);
  if (bias) sum = constant_op(g, n, "Add", {bias, sum}, derived(n->inputs[1]->name, "_bias_shifted"));
  if (holder->inputs.size() > at)
    g.set_input(holder, at, sum);
  else
    g.add_node_input(holder, sum);
  Node* gone = v->producer;
  add_origins(n->origins, gone->origins);
  g.set_input(n, 0, step.v);
  erase_unused(g, gone);
  return true;
}

}  // namespace

void fold_scale_axis(Graph& g, PassContext& cx) {
  if (cx.options.strict_fp) return;
  for (auto it = g.nodes().begin(); it != g.nodes().end();) {
    Node* n = (it++)->get();
    for (const auto& r : n->regions) fold_scale_axis(*r, cx);
    if (n->outputs.size() != 1 || !n->outputs[0] || !n->outputs[0]->type.is_static_tensor() ||
        !is_float(n->outputs[0]->type.dtype))
      continue;
    if (!is_wide(n->outputs[0]->type.dtype))
      (void)scalar_before_matmul(g, n);
    else if (n->is("Mul") || n->is("Div") || n->is("Add"))
      (void)((!n->is("Add") && around_bias(g, n)) || fold_backward(g, n));
    else if (fold_forward(g, n) || shift_before(g, n))
      while (fold_forward(g, n) || shift_before(g, n)) continue;
    else
      (void)scalar_before_matmul(g, n);
  }
}

}  // namespace tc
