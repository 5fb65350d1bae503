// Finds operators that exporters spell out in smaller ones. The kernel gets the name that a reader expects, and the
// definition that its schedule knows.
//   x * 0.5 * (1 + erf(x / sqrt(2)))                               ->   Gelu(x)
//   x * 0.5 * (1 + tanh(0.79788 * (x + 0.044715 * x * x * x)))     ->   Gelu(x) {approximate = "tanh"}
//   x * sigmoid(x)                                                 ->   Swish(x)
//   x * clip(x + 3, 0, 6) / 6,   x * HardSigmoid(x)                ->   HardSwish(x)
//   d = x - mean(x),  d / sqrt(mean(d * d) + e) * scale + b        ->   LayerNormalization(x, scale, b)
//   Reshape(InstanceNormalization(Reshape(x, [0, g, -1]))) * scale + b  ->  GroupNormalization(x, scale, b)
//   p = Softmax(x),  Where(IsNaN(p), 0, p)                         ->   tc.softmax_or_zero(x)
// The last is how exporters write attention whose mask may forbid a query every key; zeros behind a counted axis stay there.
// Nothing is recognised under strict_fp: the order of the products would change.
//
// Preconditions of all: floats; the result has the type and shape of x (a constant of shape [1,1,1] may raise its
// rank); x is one value wherever it stands; every constant is the formula's own, rounded to the type of x (0, 1, 3 and 6
// are exact). The operators on the right compute halves in single precision. And of
//   LayerNormalization   both means are over the same axes, the last ones, which are kept with size 1; d and d * d have
//                        the type of x; scale and b have the shape of those axes; e is a number of single precision
//   GroupNormalization   x has three axes at least; the inner scale is 1 everywhere and the inner bias 0; what is normalised
//                        is [N, g, the rest]; scale and b are constants [C, 1, ...], one number for each channel
//   Softmax              IsNaN and Where look at p itself; the number instead of NaN is 0
//
// Needs: types, and CSE, so that equal operands are one value. Leaves: the operators on the right.
#include <algorithm>

#include "ir/ops/op.h"
#include "passes/graph/match.h"
#include "passes/graph/passes.h"

namespace tc {

namespace {

void replace_by(Graph& g, Node* n, const char* op, std::vector<Value*> in, Attrs attrs = {}) {
  replace_node(g, n, add_op(g, n, op, std::move(in), n->outputs[0]->name, std::move(attrs)));
}

bool masked_softmax(Graph& g, Node* n) {
  if (!n->is("Where") || !is_scalar(n->inputs[1], 0)) return false;
  Value* p = n->inputs[2];
  const Node *test = made_by(n->inputs[0], "IsNaN"), *behind = p->producer;
  if (behind && !fills_behind(*behind, "zero")) behind = nullptr;
  const Node* softmax = made_by(behind ? behind->inputs[0] : p, "Softmax");
  if (!test || !softmax || test->inputs[0] != p || n->outputs[0]->type != p->type) return false;
  const ModelText name = behind ? derived(n->outputs[0]->name, "_whole") : n->outputs[0]->name;
  Node* y =
      g.insert(n, "softmax_or_zero", {softmax->inputs[0]}, {name}, {{"axis", softmax->attr_int("axis", -1)}}, "tc");
  y->name = n->name;
  y->origins = n->origins;
  infer_types(g, *y);
  if (behind) {
    y = g.insert(n, "fill_behind", {y->outputs[0], behind->inputs[1]}, {n->outputs[0]->name}, behind->attrs, "tc");
    infer_types(g, *y);
  }
  replace_node(g, n, y->outputs[0]);
  return true;
}

/// v = x * c: returns c.
std::optional<double> multiple_of(Value* v, const Value* x) {
  const Product p = product_of(v);
  if (p.factors.size() != 1 || p.factors[0] != x) return std::nullopt;
  return p.scale;
}

/// v = 1 + f(u): returns u.
Value* one_plus(const Value* v, const char* function) {
  const Node* add = made_by(v, "Add");
  const Node* f = made_by(other_operand(add, [](const Value* o) { return is_scalar(o, 1); }), function);
  return f ? f->inputs[0] : nullptr;
}

bool is_constant_of(double c, double number, const Value* x) { return is_rounded(c, number, x->type.dtype); }

/// v = 0.79788 * (x + 0.044715 * x^3)
bool is_tanh_argument(Value* v, const Value* x) {
  const Product p = product_of(v);
  if (p.factors.size() != 1 || !is_constant_of(p.scale, 0.79788456080286536, x)) return false;
  const Node* add = made_by(p.factors[0], "Add");
  Value* cubic = other_operand(add, [&](const Value* o) { return o == x; });
  if (!cubic) return false;
  const Product q = product_of(cubic);
  return q.factors.size() == 3 && is_constant_of(q.scale, 0.044715, x) &&
         std::all_of(q.factors.begin(), q.factors.end(), [&](const Value* f) { return f == x; });
}

bool gelu(Graph& g, Node* n) {
  if (!n->is("Mul")) return false;
  const Product p = product_of(n->outputs[0]);
  if (p.factors.size() != 2 || p.scale != 0.5) return false;
  for (int k = 0; k < 2; ++k) {
    Value *x = p.factors[size_t(k)], *bell = p.factors[size_t(1 - k)];
    if (x->type != n->outputs[0]->type) continue;
    if (Value* u = one_plus(bell, "Erf")) {
      const auto c = multiple_of(u, x);
      if (!c || !is_constant_of(*c, 0.70710678118654752, x)) continue;
      replace_by(g, n, "Gelu", {x});
      return true;
    }
    if (Value* u = one_plus(bell, "Tanh"); u && is_tanh_argument(u, x)) {
      replace_by(g, n, "Gelu", {x}, {{"approximate", std::string("tanh")}});
      return true;
    }
  }
  return false;
}

bool swish(Graph& g, Node* n) {
  if (!n->is("Mul")) return false;
  for (int k = 0; k < 2; ++k) {
    Value* x = n->inputs[size_t(k)];
    const Value* gate = n->inputs[size_t(1 - k)];
    if (const Node* s = made_by(gate, "Sigmoid"); s && s->inputs[0] == x) {
      replace_by(g, n, "Swish", {x});
      return true;
    }
    const Node* h = made_by(gate, "HardSigmoid");
    if (h && h->inputs[0] == x && h->attr_float("alpha", 0.2f) == float(1.0 / 6) &&
        h->attr_float("beta", 0.5f) == 0.5f) {
      replace_by(g, n, "HardSwish", {x});
      return true;
    }
  }
  return false;
}

bool is_clip_0_6(const Node* clip) {
  return clip && clip->inputs.size() == 3 && is_scalar(clip->inputs[1], 0) && is_scalar(clip->inputs[2], 6);
}

bool hard_swish(Graph& g, Node* n) {
  if (!n->is("Mul") && !n->is("Div")) return false;
  const Product p = product_of(n->outputs[0]);
  if (p.factors.size() != 2) return false;
  for (int k = 0; k < 2; ++k) {
    Value* x = p.factors[size_t(k)];
    if (x->type != n->outputs[0]->type || !is_constant_of(p.scale, 1.0 / 6, x)) continue;
    const Node* clip = made_by(p.factors[size_t(1 - k)], "Clip");
    if (!is_clip_0_6(clip)) continue;
    if (other_operand(made_by(clip->inputs[0], "Add"), [](const Value* o) { return is_scalar(o, 3); }) != x) continue;
    replace_by(g, n, "HardSwish", {x});
    return true;
  }
  return false;
}

/// The axes of a ReduceMean that keeps its dimensions, if they are the last ones; returns the first.
std::optional<int64_t> trailing_mean(const Node* mean) {
  if (!mean || mean->attr_int("keepdims", 1) == 0 || mean->inputs.size() < 2) return std::nullopt;
  auto axes = ints_of(mean->inputs[1]);
  if (!axes || axes->empty()) return std::nullopt;
  const int64_t rank = rank_of(mean->inputs[0]);
  for (int64_t& a : *axes) a += a < 0 ? rank : 0;
  std::sort(axes->begin(), axes->end());
  for (size_t i = 0; i < axes->size(); ++i)
    if ((*axes)[i] != rank - int64_t(axes->size()) + int64_t(i)) return std::nullopt;
  return axes->front();
}

/// Sqrt(x), or Pow(x, 0.5); null: another operator.
const Node* square_root(const Value* v) {
  const Node* pow = made_by(v, "Pow");
  return pow && pow->outputs[0]->type == pow->inputs[0]->type && scalar_of(pow->inputs[1]) == 0.5 ? pow
                                                                                                  : made_by(v, "Sqrt");
}

/// quotient = (x - mean(x)) / sqrt(mean((x - mean(x))^2) + epsilon)
struct Normalized {
  Value* x;
  int64_t axis;
  double epsilon;
};
std::optional<Normalized> normalized(const Value* quotient) {
  const Node* div = made_by(quotient, "Div");
  if (!div) return std::nullopt;
  Value* d = div->inputs[0];
  const Node* sub = made_by(d, "Sub");
  const Node* mean = sub ? made_by(sub->inputs[1], "ReduceMean") : nullptr;
  const auto axis = trailing_mean(mean);
  if (!axis || mean->inputs[0] != sub->inputs[0] || d->type != sub->inputs[0]->type) return std::nullopt;
  const Node* root = square_root(div->inputs[1]);
  const Node* add = root ? made_by(root->inputs[0], "Add") : nullptr;
  const Value* epsilon = nullptr;
  Value* variance = other_operand(add, [&](const Value* o) { return scalar_of(o) ? (epsilon = o) != nullptr : false; });
  const Node* squares = variance ? made_by(variance, "ReduceMean") : nullptr;
  if (!squares || trailing_mean(squares) != axis || squares->inputs[0]->type != d->type) return std::nullopt;
  const Product p = product_of(squares->inputs[0]);
  if (p.scale != 1 || p.factors.size() != 2 || p.factors[0] != d || p.factors[1] != d) return std::nullopt;
  return Normalized{sub->inputs[0], *axis, *scalar_of(epsilon)};
}

bool layer_norm(Graph& g, Node* n) {
  if (!n->is("Add")) return false;
  for (int k = 0; k < 2; ++k) {
    Value* b = n->inputs[size_t(k)];
    const Node* mul = made_by(n->inputs[size_t(1 - k)], "Mul");
    if (!mul || !only_user(mul->outputs[0])) continue;
    for (int j = 0; j < 2; ++j) {
      Value* scale = mul->inputs[size_t(j)];
      const auto norm = normalized(mul->inputs[size_t(1 - j)]);
      if (!norm || norm->x->type != n->outputs[0]->type) continue;
      if (norm->x->type.dtype == DType::F64 && double(float(norm->epsilon)) != norm->epsilon) continue;
      const Shape tail(norm->x->type.shape.begin() + norm->axis, norm->x->type.shape.end());
      if (scale->type.shape != tail || b->type.shape != tail) continue;
      replace_by(g, n, "LayerNormalization", {norm->x, scale, b},
                 {{"axis", norm->axis}, {"epsilon", float(norm->epsilon)}});
      return true;
    }
  }
  return false;
}

bool is_filled(const Value* v, double number) {
  if (!v->constant || !is_float(v->type.dtype)) return false;
  for (int64_t i = 0; i < v->constant->size(); ++i)
    if (v->constant->as_double(i) != number) return false;
  return true;
}

/// Is it a constant with a number for each channel of a tensor of these dims: [C, 1, 1] of [N, C, H, W]?
bool is_per_channel(const Value* v, const Dims& x) {
  if (!v->constant || rank_of(v) + 1 < int(x.size()) || rank_of(v) > int(x.size())) return false;
  Dims d(x.size(), 1);
  d[1] = x[1];
  return dims_of(v) == Dims(d.end() - rank_of(v), d.end());
}

bool group_norm(Graph& g, Node* n) {
  if (!n->is("Add") || !n->outputs[0]->type.is_static_tensor()) return false;
  const Dims dims = dims_of(n->outputs[0]);
  if (dims.size() < 3 || has_no_elements(dims)) return false;
  const auto channels = [&](const Value* v) { return is_per_channel(v, dims); };
  Value* product = other_operand(n, channels);
  const Node* mul = product ? made_by(product, "Mul") : nullptr;
  Value* whole = mul ? other_operand(mul, channels) : nullptr;
  const Node* back = whole ? made_by(whole, "Reshape") : nullptr;
  const Node* norm = back ? made_by(back->inputs[0], "InstanceNormalization") : nullptr;
  const Node* apart = norm ? made_by(norm->inputs[0], "Reshape") : nullptr;
  if (!apart || whole->type != n->outputs[0]->type || !is_filled(norm->inputs[1], 1) || !is_filled(norm->inputs[2], 0))
    return false;
  Value* x = apart->inputs[0];
  const Dims rows = dims_of(apart->outputs[0]);
  if (x->type != n->outputs[0]->type || rows[0] != dims[0] || dims[1] % rows[1] != 0) return false;
  Value* size = g.add_constant(derived(n->outputs[0]->name, "_channels"), int64_constant({dims[1]}));
  const auto flat = [&](Value* v) { return constant_op(g, n, "Reshape", {v, size}, derived(v->name, "_channels")); };
  Value* scale = mul->inputs[0] == whole ? mul->inputs[1] : mul->inputs[0];
  Value* bias = n->inputs[0] == product ? n->inputs[1] : n->inputs[0];
  replace_by(g, n, "GroupNormalization", {x, flat(scale), flat(bias)},
             {{"num_groups", rows[1]}, {"epsilon", norm->attr_float("epsilon", 1e-5f)}});
  return true;
}

}  // namespace

void recognize_idioms(Graph& g, PassContext& cx) {
  if (cx.options.strict_fp) return;
  for (auto it = g.nodes().begin(); it != g.nodes().end();) {
    Node* n = (it++)->get();
    for (const auto& r : n->regions) recognize_idioms(*r, cx);
    if (n->outputs.size() != 1 || !n->outputs[0] || !is_float(n->outputs[0]->type.dtype)) continue;
    (void)(gelu(g, n) || swish(g, n) || hard_swish(g, n) || layer_norm(g, n) || group_norm(g, n) ||
           masked_softmax(g, n));
  }
}

}  // namespace tc
