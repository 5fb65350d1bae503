// Folds multiplications and additions by constants of one value per channel into the weights beside them.
//   backward:  y = Mul(Conv(x, w, b), s)      ->   y = Conv(x, w * s, b * s)
//              y = Add(Conv(x, w, b), t)      ->   y = Conv(x, w, b + t)
//              y = Mul(MatMul(x, w), s)       ->   y = MatMul(x, w * s)
//              y = Mul(Add(v, t), s)          ->   y = Add(Mul(v, s), t * s)      v of a MatMul, so that the line above
//              fits
//   forward:   y = Conv(Mul(x, s), w)         ->   y = Conv(x, w * s)             s per input channel
//              y = MatMul(Mul(x, s), w)       ->   y = MatMul(x, s * w)
//              y = MatMul(Mul(a, c), b)       ->   y = Mul(MatMul(a, b), c)      c a scalar, a and b computed
//                                                  y = tc.scaled_matmul(a, b)    of halves, which could not hold a * b
// w, b, s, t are constants and the value between the two nodes has no other use. Padding is zero, and zero scaled is
// zero, so forward holds for padded convolutions too. Not under strict_fp: the roundings move.
//
// Preconditions of all: f32 or f64 (a half could leave its range), but for the last line; the constants and what becomes of them are of a usual
// size (is_moderate); the result, and x, v and a, have the shape of what they replace: the constant only broadcasts; the
// value between the two nodes has no other user and is no output. And of
//   Conv     weights and bias are constants; s and t have one value in all, or one for each channel along axis 1 and
//            ones elsewhere; forward: one group
//   MatMul   w has two axes, y at least two; s has one value in all or one for each column (forward: row) of w, along
//            the last axis; t may have any shape that broadcasts; c: neither factor is constant
//
// Needs: simplify_inference has turned batch normalisations into Mul and Add. Leaves: products and sums of constants
// for fold_constant, and no per-channel Mul or Add beside a contraction whose weights are constant.
#include <algorithm>
#include <cmath>

#include "ir/ops/op.h"
#include "passes/graph/match.h"
#include "passes/graph/passes.h"

namespace tc {

namespace {

/// New values of constants, computed at once; where an operand is none after all, by operators before `n`.
struct Constants {
  Graph& g;
  Node* n;
  ModelText base;

  Value* op(const char* name, std::vector<Value*> in, std::string_view suffix) const {
    return constant_op(g, n, name, std::move(in), derived(base, suffix));
  }
  Value* reshape(Value* v, const Dims& dims, std::string_view suffix) const {
    if (dims_of(v) == dims) return v;
    return op("Reshape", {v, g.add_constant(derived(base, std::string(suffix) + "_shape"), int64_constant(dims))},
              suffix);
  }
};

/// Does `c`, broadcast against `rank` axes, have one value for each of the `channels` of `axis`, or one in all?
bool is_per_channel(const Value* c, int rank, int axis, int64_t channels) {
  const Dims d = dims_of(c);
  if (int(d.size()) > rank) return false;
  for (size_t i = 0; i < d.size(); ++i) {
    const int at = rank - int(d.size()) + int(i);
    if (d[i] != 1 && !(at == axis && d[i] == channels)) return false;
  }
  return true;
}

/// The constant as a vector of `channels` values.
Value* as_vector(const Constants& k, Value* c, int64_t channels, std::string_view suffix) {
  if (num_elements(dims_of(c)) == channels) return k.reshape(c, {channels}, suffix);
  Value* one = k.reshape(c, {1}, suffix);
  Value* shape = k.g.add_constant(derived(k.base, std::string(suffix) + "_size"), int64_constant({channels}));
  return k.op("Expand", {one, shape}, std::string(suffix) + "_all");
}

Dims along(int axis, int64_t size, int rank) {
  Dims d(size_t(rank), 1);
  d[size_t(axis)] = size;
  return d;
}

bool all_constant(const Node& conv) {
  return conv.inputs.size() >= 2 && conv.inputs[1] && conv.inputs[1]->constant &&
         (conv.inputs.size() < 3 || !conv.inputs[2] || conv.inputs[2]->constant);
}

/// May the weights take the scales in?
bool may_scale(const Value* w, const Value* s) { return is_moderate(w->constant) && is_moderate(s->constant); }

/// May the two be added ahead? Large numbers of opposite signs are there for the rounding between them.
bool may_add(const Value* bias, const Value* t) {
  auto largest = [](const Value* v) {
    double most = 0;
    for (int64_t i = 0; v && i < v->constant->size(); ++i) most = std::max(most, std::abs(v->constant->as_double(i)));
    return most;
  };
  return largest(bias) <= 0x1p20 && largest(t) <= 0x1p20;
}

/// The Conv that makes v for n alone.
Node* private_conv(const Value* v) {
  Node* conv = made_by(v, "Conv");
  return conv && only_user(v) && all_constant(*conv) ? conv : nullptr;
}

bool after_conv(Graph& g, Node* n) {
  const bool mul = n->is("Mul");
  Value* v = other_operand(n, [](const Value* o) { return o->constant != nullptr; });
  Node* conv = v ? private_conv(v) : nullptr;
  if (!conv || v->type != n->outputs[0]->type) return false;
  Value* c = n->inputs[0] == v ? n->inputs[1] : n->inputs[0];
  const int rank = rank_of(v);
  const int64_t channels = dims_of(conv->inputs[1])[0];
  if (!is_per_channel(c, rank, 1, channels) || conv->attr_string("data_layout", "NCHW") != "NCHW") return false;

  const Constants k{g, n, conv->inputs[1]->name};
  Value* w = conv->inputs[1];
  Value* bias = conv->inputs.size() > 2 ? conv->inputs[2] : nullptr;
  if (mul ? !may_scale(w, c) : !may_add(bias, c)) return false;
  Value* vector = as_vector(k, c, channels, mul ? "_scale" : "_shift");
  if (mul) {
    w = k.op("Mul", {w, k.reshape(vector, along(0, channels, rank), "_scales")}, "_scaled");
    if (bias) bias = k.op("Mul", {bias, vector}, "_bias_scaled");
  } else {
    bias = bias ? k.op("Add", {bias, vector}, "_bias_shifted") : vector;
  }
  std::vector<Value*> in = {conv->inputs[0], w};
  if (bias) in.push_back(bias);
  Value* y = add_op(g, n, "Conv", std::move(in), n->outputs[0]->name, conv->attrs);
  y->producer->origins = conv->origins;  // the convolution's name comes first; replace_node adds n's
  replace_node(g, n, y);
  return true;
}

/// The MatMul with a constant matrix on the right that makes v for one user.
Node* private_matmul(const Value* v) {
  Node* m = made_by(v, "MatMul");
  return m && only_user(v) && m->inputs[1]->constant && rank_of(m->inputs[1]) == 2 && rank_of(v) >= 2 ? m : nullptr;
}

bool after_matmul(Graph& g, Node* n) {
  if (!n->is("Mul")) return false;
  Value* v = other_operand(n, [](const Value* o) { return o->constant != nullptr; });
  if (!v || v->type != n->outputs[0]->type) return false;
  Value* s = n->inputs[0] == v ? n->inputs[1] : n->inputs[0];
  const int rank = rank_of(v);
  const int64_t columns = rank > 0 ? dims_of(v).back() : 0;
  if (rank < 2 || !is_per_channel(s, rank, rank - 1, columns)) return false;
  if (Node* m = private_matmul(v)) {
    if (!may_scale(m->inputs[1], s)) return false;
    const Constants k{g, n, m->inputs[1]->name};
    Value* row = as_vector(k, s, columns, "_scale");
    Value* w = k.op("Mul", {m->inputs[1], k.reshape(row, {1, columns}, "_scales")}, "_scaled");
    Value* y = add_op(g, n, "MatMul", {m->inputs[0], w}, n->outputs[0]->name);
    y->producer->origins = m->origins;
    replace_node(g, n, y);
    return true;
  }
  const Node* add = made_by(v, "Add");
  Value* inner = only_user(v) ? other_operand(add, [](const Value* o) { return o->constant != nullptr; }) : nullptr;
  Node* m = inner && inner->type == v->type ? private_matmul(inner) : nullptr;
  if (!m || !may_scale(m->inputs[1], s)) return false;
  Value* t = add->inputs[0] == inner ? add->inputs[1] : add->inputs[0];
  const Constants k{g, n, m->inputs[1]->name};
  Value* row = as_vector(k, s, columns, "_scale");
  Value* w = k.op("Mul", {m->inputs[1], k.reshape(row, {1, columns}, "_scales")}, "_scaled");
  Value* product = add_op(g, n, "MatMul", {m->inputs[0], w}, inner->name);
  product->producer->origins = m->origins;
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
    const Node* mul = only_user(v) ? made_by(v, "Mul") : nullptr;
    Value* x = other_operand(mul, [](const Value* o) { return scalar_of(o).has_value(); });
    if (!x || x->type != v->type) continue;
    const double c = std::abs(*scalar_of(mul->inputs[0] == x ? mul->inputs[1] : mul->inputs[0]));
    if (!(c >= 0x1p-20 && c <= 0x1p20)) continue;
    factor *= *scalar_of(mul->inputs[0] == x ? mul->inputs[1] : mul->inputs[0]);
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

bool before_contraction(Graph& g, Node* n) {
  const bool conv = n->is("Conv");
  if (!conv && !n->is("MatMul")) return false;
  Value* w = n->inputs[1];
  Value* v = n->inputs[0];
  if (!w->constant || !only_user(v) || (!conv && rank_of(w) != 2)) return false;
  if (conv && (n->attr_int("group", 1) != 1 || n->attr_string("data_layout", "NCHW") != "NCHW")) return false;
  const Node* mul = made_by(v, "Mul");
  Value* x = other_operand(mul, [](const Value* o) { return o->constant != nullptr; });
  if (!x || x->type != v->type || x->constant) return false;
  Value* s = mul->inputs[0] == x ? mul->inputs[1] : mul->inputs[0];
  const int rank = rank_of(x), axis = conv ? 1 : rank - 1;
  const int64_t channels = dims_of(x)[size_t(axis)];
  if (!is_per_channel(s, rank, axis, channels) || !may_scale(w, s)) return false;
  const Constants k{g, n, w->name};
  Value* vector = as_vector(k, s, channels, "_scale");
  Value* scales = k.reshape(vector, along(conv ? 1 : 0, channels, rank_of(w)), "_scales");
  g.set_input(n, 1, k.op("Mul", {w, scales}, "_scaled"));
  Node* gone = v->producer;
  add_origins(n->origins, gone->origins);
  g.set_input(n, 0, x);
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
    else if (n->is("Mul") || n->is("Add"))
      (void)(after_conv(g, n) || after_matmul(g, n));
    else
      (void)(before_contraction(g, n) || scalar_before_matmul(g, n));
  }
}

}  // namespace tc
