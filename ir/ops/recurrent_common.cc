#include <algorithm>
#include <cctype>

#include "ir/ops/numeric.h"
#include "ir/ops/recurrent.h"

namespace tc {
namespace {

struct ActivationRow {
  const char* name;
  int parameters;  // 0, 1 (alpha) or 2 (alpha, beta)
  float alpha, beta;
  Expr (*apply)(const Expr& x, const Expr& alpha, const Expr& beta);
};

Expr one_like(const Expr& x) { return make_const(x->dtype, 1); }
Expr zero_like(const Expr& x) { return zero(x->dtype); }

const ActivationRow kActivations[] = {
    {"relu", 0, 0, 0, [](const Expr& x, const Expr&, const Expr&) { return max(x, zero_like(x)); }},
    {"tanh", 0, 0, 0, [](const Expr& x, const Expr&, const Expr&) { return tanh(x); }},
    {"sigmoid", 0, 0, 0, [](const Expr& x, const Expr&, const Expr&) { return apply(Op::Sigmoid, {x}); }},
    {"affine", 2, 1, 0, [](const Expr& x, const Expr& a, const Expr& b) { return a * x + b; }},
    {"leakyrelu", 1, 0.01f, 0,
     [](const Expr& x, const Expr& a, const Expr&) { return select(x >= zero_like(x), x, a * x); }},
    {"thresholdedrelu", 1, 1, 0,
     [](const Expr& x, const Expr& a, const Expr&) { return select(x > a, x, zero_like(x)); }},
    {"scaledtanh", 2, 1, 1, [](const Expr& x, const Expr& a, const Expr& b) { return a * tanh(b * x); }},
    {"hardsigmoid", 2, 0.2f, 0.5f,
     [](const Expr& x, const Expr& a, const Expr& b) { return min(max(a * x + b, zero_like(x)), one_like(x)); }},
    {"elu", 1, 1, 0,
     [](const Expr& x, const Expr& a, const Expr&) { return select(x >= zero_like(x), x, a * apply(Op::Expm1, {x})); }},
    {"softsign", 0, 0, 0, [](const Expr& x, const Expr&, const Expr&) { return x / (one_like(x) + abs(x)); }},
    {"softplus", 0, 0, 0,
     [](const Expr& x, const Expr&, const Expr&) { return max(x, zero_like(x)) + apply(Op::Log1p, {exp(-abs(x))}); }},
};

std::vector<std::string> attr_names(const OpBuilder& op, const std::string& name) {
  const auto it = op.node().attrs.find(name);
  if (it == op.node().attrs.end()) return {};
  const auto* v = std::get_if<std::vector<std::string>>(&it->second);
  return v ? *v : std::vector<std::string>();
}

const ActivationRow& find_activation(const OpBuilder& op, const std::string& name) {
  std::string lower;
  for (char c : name) lower += char(std::tolower(static_cast<unsigned char>(c)));
  for (const ActivationRow& row : kActivations)
    if (lower == row.name) return row;
  op.reject("activation \"" + printable(name) + "\" is none of ONNX's");
}

void check_shape(OpBuilder& op, int input, const Dims& expected) {
  const Dims d = op.in(input).dims();
  if (d != expected)
    op.reject("the shape is " + to_text(to_shape(d)) + " but must be " + to_text(to_shape(expected)), input);
}

}  // namespace

Recurrence read_recurrence(OpBuilder& op, int64_t gates) {
  Recurrence r{op, op.in(0), op.in(1), op.in(2), compute_type(op.in(0).dtype())};
  if (r.x.rank() != 3) op.reject("the input must have three axes", 0);
  if (r.r.rank() != 3) op.reject("the recurrent weights must have three axes", 2);
  const std::string direction = op.attr_string("direction", "forward");
  if (direction != "forward" && direction != "reverse" && direction != "bidirectional")
    op.reject("direction must be forward, reverse or bidirectional");
  r.first_is_reverse = direction == "reverse";
  r.directions = direction == "bidirectional" ? 2 : 1;
  const int64_t layout = op.attr_int("layout", 0);
  if (layout != 0 && layout != 1) op.reject("layout must be 0 or 1");
  r.batch_first = layout == 1;
  r.steps = r.x.dim(r.batch_first ? 1 : 0);
  r.batch = r.x.dim(r.batch_first ? 0 : 1);
  r.inputs = r.x.dim(2);
  r.gates = gates;
  r.hidden = r.r.dim(2);
  if (op.has_attr("hidden_size") && op.attr_int("hidden_size") != r.hidden)
    op.reject("hidden_size differs from the shape of the recurrent weights", 2);
  if (r.steps < 1) op.unsupported("sequences without a step", 0);
  check_shape(op, 1, {r.directions, gates * r.hidden, r.inputs});
  check_shape(op, 2, {r.directions, gates * r.hidden, r.hidden});
  if (op.has(3)) check_shape(op, 3, {r.directions, 2 * gates * r.hidden});
  if (op.has(4)) check_shape(op, 4, {r.batch});
  const Dims state = r.batch_first ? Dims{r.batch, r.directions, r.hidden} : Dims{r.directions, r.batch, r.hidden};
  if (op.has(5)) check_shape(op, 5, state);
  if (op.has(6)) check_shape(op, 6, state);
  return r;
}

Expr Recurrence::length(const Expr& n) const {
  if (!has_lengths()) return steps;
  return min(cast(DType::I64, op.in(4)({n})), Expr(steps));
}

Expr Recurrence::time_of(int d, const Expr& t, const Expr& n) const {
  if (!reversed(d)) return t;
  if (!has_lengths()) return Expr(steps - 1) - t;
  return max(length(n) - 1 - t, Expr(0));
}

Expr Recurrence::bias_element(int d, int64_t set, const Expr& gate) const {
  return widen(op.in(3)({d, gate + set * gates * hidden}));
}

std::function<Expr(const Expr&)> Recurrence::full_bias(int d) const {
  if (!op.has(3)) return nullptr;
  return [this, d](const Expr& gate) { return bias_element(d, 0, gate) + bias_element(d, 1, gate); };
}

Tensor Recurrence::projection(int d, const std::function<Expr(const Expr&)>& bias) const {
  const Dims shape = {steps, batch, gates * hidden};
  const Tensor product = op.reduce("input_projection", Op::Add, t, shape, {inputs},
                                   [&](const Exprs& i, const Exprs& k) {
                                     const Expr v = batch_first ? x({i[1], i[0], k[0]}) : x({i[0], i[1], k[0]});
                                     return widen(v) * widen(w({d, i[2], k[0]}));
                                   },
                                   {"t", "n", "g", "k"});
  if (!bias) return product;
  return op.compute("biased", t, shape, [&](const Exprs& i) { return product(i) + bias(i[2]); }, {"t", "n", "g"});
}

Expr Recurrence::previous(const Tensor& state, int initial, int d, const Exprs& i) const {
  Expr start = zero(t);
  if (op.has(initial)) {
    const Tensor s = op.in(initial);
    start = widen(batch_first ? s({i[1], d, i[2]}) : s({d, i[1], i[2]}));
  }
  return select(i[0] > 0, state({i[0] - 1, i[1], i[2]}), start);
}

Expr Recurrence::held(const Expr& next, const Expr& old, const Exprs& i) const {
  return has_lengths() ? select(i[0] < length(i[1]), next, old) : next;
}

Tensor Recurrence::recurrent_product(int d, int64_t first_gate, int64_t count,
                                     const std::function<Expr(const Exprs& i, const Expr& k)>& at,
                                     const std::string& name) const {
  return op.reduce(name, Op::Add, t, {steps, batch, count * hidden}, {hidden},
                   [&](const Exprs& i, const Exprs& k) {
                     return at(i, k[0]) * widen(r({d, i[2] + first_gate * hidden, k[0]}));
                   },
                   {"t", "n", "g", "k"});
}

void Recurrence::output_sequence(int k, const std::vector<Tensor>& states) const {
  if (!op.wants(k)) return;
  const DType to = x.dtype();
  const Dims shape = batch_first ? Dims{batch, steps, directions, hidden} : Dims{steps, directions, batch, hidden};
  op.output(k, op.compute("y", to, shape, [&](const Exprs& i) {
    const Expr &time = batch_first ? i[1] : i[0], &n = batch_first ? i[0] : i[2], &dir = batch_first ? i[2] : i[1];
    auto at = [&](int d) { return states[size_t(d)]({time_of(d, time, n), n, i[3]}); };
    Expr v = directions == 1 ? at(0) : select(eq(dir, 0), at(0), at(1));
    if (has_lengths()) v = select(time < length(n), v, zero(t));
    return cast(to, v);
  }));
}

void Recurrence::output_last(int k, const std::vector<Tensor>& states) const {
  if (!op.wants(k)) return;
  const DType to = x.dtype();
  const Dims shape = batch_first ? Dims{batch, directions, hidden} : Dims{directions, batch, hidden};
  op.output(k, op.compute("last", to, shape, [&](const Exprs& i) {
    const Expr &n = batch_first ? i[0] : i[1], &dir = batch_first ? i[1] : i[0];
    auto at = [&](int d) { return states[size_t(d)]({steps - 1, n, i[2]}); };
    return cast(to, directions == 1 ? at(0) : select(eq(dir, 0), at(0), at(1)));
  }));
}

std::vector<Activation> read_activations(const Recurrence& r, const std::vector<std::string>& defaults, int d) {
  std::vector<std::string> names = attr_names(r.op, "activations");
  if (names.empty())
    for (int64_t k = 0; k < r.directions; k++) names.insert(names.end(), defaults.begin(), defaults.end());
  const size_t per_direction = defaults.size();
  // Some exporters give both directions' activations for one direction; more than enough is no error.
  if (names.size() < per_direction * size_t(r.directions))
    r.op.reject("activations must name " + to_text(int64_t(per_direction) * r.directions) + " functions");
  const std::vector<float> alphas = r.op.attr_floats("activation_alpha"), betas = r.op.attr_floats("activation_beta");
  size_t next_alpha = 0, next_beta = 0;
  std::vector<Activation> all;
  for (const std::string& name : names) {
    const ActivationRow& row = find_activation(r.op, name);
    const float alpha = row.parameters >= 1 && next_alpha < alphas.size() ? alphas[next_alpha++] : row.alpha;
    const float beta = row.parameters >= 2 && next_beta < betas.size() ? betas[next_beta++] : row.beta;
    const Expr a = parameter(r.t, alpha), b = parameter(r.t, beta);
    // Clipped is what gates sum up. A cell state is not, though the standard's words allow it: ONNX Runtime does not.
    const bool clips = r.op.has_attr("clip") && all.size() % per_direction < 2;
    const float limit = r.op.attr_float("clip", 0);
    if (clips && !(limit >= 0)) r.op.reject("clip must not be negative");
    const Expr low = parameter(r.t, -limit), high = parameter(r.t, limit);
    all.push_back(
        [f = row.apply, a, b, clips, low, high](const Expr& x) { return f(clips ? min(max(x, low), high) : x, a, b); });
  }
  const auto begin = all.begin() + std::ptrdiff_t(per_direction * size_t(d));
  return std::vector<Activation>(begin, begin + std::ptrdiff_t(per_direction));
}

}  // namespace tc
