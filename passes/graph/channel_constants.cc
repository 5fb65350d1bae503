#include "passes/graph/channel_constants.h"

#include <algorithm>
#include <cmath>

#include "passes/graph/match.h"

namespace tc {

Value* Constants::reshape(Value* v, const Dims& dims, std::string_view suffix) const {
  if (dims_of(v) == dims) return v;
  return op("Reshape", {v, g.add_constant(derived(base, std::string(suffix) + "_shape"), int64_constant(dims))},
            suffix);
}

Value* Constants::as_vector(Value* c, int64_t channels, std::string_view suffix) const {
  if (num_elements(dims_of(c)) == channels) return reshape(c, {channels}, suffix);
  Value* one = reshape(c, {1}, suffix);
  Value* shape = g.add_constant(derived(base, std::string(suffix) + "_size"), int64_constant({channels}));
  return op("Expand", {one, shape}, std::string(suffix) + "_all");
}

bool is_per_channel(const Value* c, int rank, int axis, int64_t channels) {
  const Dims d = dims_of(c);
  if (int(d.size()) > rank) return false;
  for (size_t i = 0; i < d.size(); ++i) {
    const int at = rank - int(d.size()) + int(i);
    if (d[i] != 1 && !(at == axis && d[i] == channels)) return false;
  }
  return true;
}

Dims along(int axis, int64_t size, int rank) {
  Dims d(size_t(rank), 1);
  d[size_t(axis)] = size;
  return d;
}

bool may_scale(const Value* w, const Value* s) { return is_moderate(w->constant) && is_moderate(s->constant); }

bool may_add(const Value* bias, const Value* t, double limit) {
  auto largest = [](const Value* v) {
    double most = 0;
    for (int64_t i = 0; v && i < v->constant->size(); ++i) most = std::max(most, std::abs(v->constant->as_double(i)));
    return most;
  };
  return largest(bias) <= limit && largest(t) <= limit;
}

namespace {

/// No number is zero or of an unusual size: its reciprocal is a factor like any other.
bool may_divide(const Constant& c) {
  if (!is_moderate(c)) return false;
  for (int64_t i = 0; i < c->size(); ++i)
    if (!(std::abs(c->as_double(i)) >= 0x1p-60)) return false;
  return true;
}

bool is_positive(const Value* c) {
  for (int64_t i = 0; i < c->constant->size(); ++i)
    if (!(c->constant->as_double(i) > 0)) return false;
  return true;
}

bool is_constant(const Value* v) { return v->constant != nullptr; }

}  // namespace

ChannelStep channel_step(const Node* n, std::string_view op, int axis) {
  const bool divides = n && op == "Mul" && n->is("Div");
  if (!n || (!n->is(op) && !divides)) return {};
  Value* v = other_operand(n, is_constant);
  if (!v || v->constant || v->type != n->outputs[0]->type || (divides && n->inputs[0] != v)) return {};
  Value* c = n->inputs[0] == v ? n->inputs[1] : n->inputs[0];
  const int rank = rank_of(v);
  if (axis < 0 || axis >= rank || !is_per_channel(c, rank, axis, dims_of(v)[size_t(axis)])) return {};
  if (divides && !may_divide(c->constant)) return {};
  return {v, c, divides};
}

Value* factor_of(Graph& g, Node* before, const ChannelStep& s) {
  return s.divides ? constant_op(g, before, "Reciprocal", {s.c}, derived(s.c->name, "_reciprocal")) : s.c;
}

Contraction contraction_of(const Node* n) {
  if (!n) return {};
  const bool conv = n->is("Conv") || n->is("ConvTranspose");
  if ((!conv && !n->is("MatMul")) || !n->inputs[1]->constant) return {};
  const Value *w = n->inputs[1], *bias = n->inputs.size() > 2 ? n->inputs[2] : nullptr;
  if (!conv) return {rank_of(w) == 2 && rank_of(n->inputs[0]) >= 2, rank_of(n->outputs[0]) - 1};
  return {(!bias || bias->constant) && n->attr_string("data_layout", "NCHW") == "NCHW", 1};
}

namespace {

/// w * s for weights of [all of one side, those of a group of the other side, ...], where s has a value for each
/// channel of the other side.
Value* scaled_groups(const Constants& k, Value* w, Value* vector, int64_t groups) {
  Dims parts = dims_of(w), scales(parts.size() + 1, 1);
  parts[0] /= groups;
  parts.insert(parts.begin(), groups);
  scales[0] = groups;
  scales[2] = parts[2];
  Value* y = k.op("Mul", {k.reshape(w, parts, "_groups"), k.reshape(vector, scales, "_scales")}, "_groups_scaled");
  return k.reshape(y, dims_of(w), "_scaled");
}

}  // namespace

Value* scale_weights(const Constants& k, const Node* contraction, Value* vector) {
  Value* w = contraction->inputs[1];
  const int64_t channels = num_elements(dims_of(vector)), groups = contraction->attr_int("group", 1);
  // Weights of a Conv are [results, operand's channels of a group, ...], of a ConvTranspose the other way round.
  if (contraction->is("Conv") && groups > 1) return scaled_groups(k, w, vector, groups);
  return k.op("Mul", {w, k.reshape(vector, along(contraction->is("Conv") ? 1 : 0, channels, rank_of(w)), "_scales")},
              "_scaled");
}

Value* scale_result(const Constants& k, const Node* contraction, Value* s, ModelText name) {
  Value* w = contraction->inputs[1];
  const int64_t channels = dims_of(contraction->outputs[0])[size_t(contraction_of(contraction).axis)];
  const int64_t groups = contraction->attr_int("group", 1);
  Value* vector = k.as_vector(s, channels, "_scale");
  if (contraction->is("ConvTranspose") && groups > 1)
    w = scaled_groups(k, w, vector, groups);
  else
    w = k.op("Mul", {w, k.reshape(vector, along(contraction->is("Conv") ? 0 : 1, channels, rank_of(w)), "_scales")},
             "_scaled");
  std::vector<Value*> in = {contraction->inputs[0], w};
  if (contraction->inputs.size() > 2 && contraction->inputs[2])
    in.push_back(k.op("Mul", {contraction->inputs[2], vector}, "_bias_scaled"));
  Value* y = add_op(k.g, k.n, contraction->op, std::move(in), std::move(name), contraction->attrs);
  y->producer->origins = contraction->origins;
  return y;
}

bool is_padded(const Node& n) {
  const std::string pad = n.attr_string("auto_pad", "NOTSET");
  const std::vector<int64_t> pads = n.attr_ints("pads");
  return (pad != "NOTSET" && pad != "VALID") || std::any_of(pads.begin(), pads.end(), [](int64_t p) { return p != 0; });
}

namespace {

constexpr int kFarthest = 8;  // operators between a constant and a contraction

/// Is f(v * s) = f(v) * s, for s of one value per channel of `axis`, or f(v + s) = f(v) + s?
enum class Commutes { Never, Positive, Always };

/// Does a reduction that keeps its axes reduce others than the channels?
bool reduces_beside(const Node& n, int axis) {
  const auto axes = n.inputs.size() > 1 && n.inputs[1] ? ints_of(n.inputs[1]) : std::nullopt;
  if (!axes || axes->empty() || n.attr_int("keepdims", 1) != 1) return false;
  return std::none_of(axes->begin(), axes->end(),
                      [&](int64_t a) { return (a < 0 ? a + rank_of(n.inputs[0]) : a) == axis; });
}

Commutes commutes(const Node& n, int axis, bool adds) {
  if (n.outputs.size() != 1) return Commutes::Never;
  if (n.is("Relu") || n.is("LeakyRelu") || n.is("PRelu")) return adds ? Commutes::Never : Commutes::Positive;
  const bool pool = axis == 1 && n.attr_int("ceil_mode", 0) == 0 && n.attr_string("data_layout", "NCHW") == "NCHW";
  if (n.is("MaxPool")) return !pool ? Commutes::Never : adds ? Commutes::Always : Commutes::Positive;
  if (n.is("AveragePool")) return pool && !(adds && is_padded(n)) ? Commutes::Always : Commutes::Never;
  if (n.is("ReduceMax"))
    return !reduces_beside(n, axis) ? Commutes::Never : adds ? Commutes::Always : Commutes::Positive;
  return n.is("ReduceMean") && reduces_beside(n, axis) ? Commutes::Always : Commutes::Never;
}

int64_t axis_of(const Node& concat) {
  const int64_t a = concat.attr_int("axis", 0);
  return a < 0 ? a + rank_of(concat.outputs[0]) : a;
}

/// A constant on its way to contractions before it.
class Backward {
 public:
  Backward(Graph& g, Node* n, int axis, bool adds, bool positive)
      : g_(g), n_(n), axis_(axis), adds_(adds), positive_(positive) {}

  bool takes(const Value* v, const Value* c, int depth = 0) const {
    const Node* p = v->producer;
    if (!p || !only_user(v) || depth > kFarthest) return false;
    if (const Contraction k = contraction_of(p); k.fits && k.axis == axis_) return contraction_takes(*p, c);
    const Commutes how = commutes(*p, axis_, adds_);
    if (how == Commutes::Always || (how == Commutes::Positive && positive_)) return takes(p->inputs[0], c, depth + 1);
    auto operand = [&](const Value* o) {
      if (o->constant) return !adds_ && is_moderate(o->constant) && !grows_together(o, c);
      return o->type == v->type && takes(o, c, depth + 1);
    };
    if (p->is("Add"))
      return adds_ ? operand(p->inputs[0]) || operand(p->inputs[1]) : operand(p->inputs[0]) && operand(p->inputs[1]);
    return p->is("Concat") &&
           std::all_of(p->inputs.begin(), p->inputs.end(), [&](const Value* o) { return takes(o, c, depth + 1); });
  }

  Value* take(Value* v, Value* c, ModelText name) const {
    Value* y = taken(v->producer, v, c, std::move(name));
    y->producer->name = v->producer->name;
    return y;
  }

 private:
  Value* taken(Node* p, Value* v, Value* c, ModelText name) const {
    if (contraction_of(p).fits)
      return adds_ ? shift_result(p, c, name) : scale_result({g_, n_, p->inputs[1]->name}, p, c, name);
    std::vector<Value*> in = p->inputs;
    if (p->is("Concat") && axis_of(*p) == axis_ && num_elements(dims_of(c)) > 1) {
      int64_t begin = 0;
      for (size_t k = 0; k < in.size(); ++k) {
        const int64_t size = dims_of(in[k])[size_t(axis_)];
        in[k] = take(in[k], part_of(c, rank_of(v), begin, size, k), in[k]->name);
        begin += size;
      }
    } else if (p->is("Add") && adds_) {
      const size_t k = p->inputs[0]->type == v->type && takes(p->inputs[0], c) ? 0 : 1;
      in[k] = take(in[k], c, in[k]->name);
    } else {
      const size_t operands = p->is("Add") || p->is("Concat") ? in.size() : 1;
      for (size_t k = 0; k < operands; ++k)
        in[k] = in[k]->constant ? constant_op(g_, n_, "Mul", {in[k], c}, derived(in[k]->name, "_scaled"))
                                : take(in[k], c, in[k]->name);
    }
    Value* y = add_op(g_, n_, p->op, std::move(in), std::move(name), p->attrs);
    y->producer->origins = p->origins;
    return y;
  }

  bool contraction_takes(const Node& p, const Value* c) const {
    if (!adds_) return may_scale(p.inputs[1], c);
    return !p.is("MatMul") && may_add(p.inputs.size() > 2 ? p.inputs[2] : nullptr, c);
  }

  Value* shift_result(const Node* p, Value* c, ModelText name) const {
    const Constants k{g_, n_, p->inputs[1]->name};
    Value* bias = p->inputs.size() > 2 ? p->inputs[2] : nullptr;
    Value* vector = k.as_vector(c, dims_of(p->outputs[0])[1], "_shift");
    Value* sum = bias ? k.op("Add", {bias, vector}, "_bias_shifted") : vector;
    Value* y = add_op(g_, n_, p->op, {p->inputs[0], p->inputs[1], sum}, std::move(name), p->attrs);
    y->producer->origins = p->origins;
    return y;
  }

  /// What of c belongs to `size` channels from `begin` on.
  Value* part_of(Value* c, int rank, int64_t begin, int64_t size, size_t number) const {
    const std::string part = "_part" + to_text(int64_t(number));
    auto ints = [&](std::string_view suffix, int64_t v) {
      return g_.add_constant(derived(c->name, part + std::string(suffix)), int64_constant({v}));
    };
    const int64_t axis = axis_ - (rank - rank_of(c));
    return constant_op(g_, n_, "Slice", {c, ints("_from", begin), ints("_to", begin + size), ints("_axis", axis)},
                       derived(c->name, part));
  }

  Graph& g_;
  Node* n_;
  int axis_;
  bool adds_, positive_;
};

/// Constants on their way to a contraction behind them: along the channels, whose is which, and the nodes that apply them.
struct Ahead {
  struct Part {
    Value* c;  // null: ones
    int64_t channels;
    bool divides;
    bool operator==(const Part&) const = default;
  };
  bool fits = false;
  std::vector<Part> parts;
  std::vector<Node*> steps;
};

Ahead ahead(const Value* v, const Value* w, int axis, bool positive, int depth) {
  Node* p = v->producer;
  if (!p || !only_user(v) || depth > kFarthest) return {};
  const int64_t channels = dims_of(v)[size_t(axis)];
  if (const ChannelStep s = channel_step(p, "Mul", axis); s.v)
    return {may_scale(w, s.c) && (!positive || is_positive(s.c)), {{s.c, channels, s.divides}}, {p}};
  if (p->is("Add") && p->inputs[0]->type == v->type && p->inputs[1]->type == v->type) {
    Ahead a = ahead(p->inputs[0], w, axis, positive, depth + 1);
    const Ahead b = a.fits ? ahead(p->inputs[1], w, axis, positive, depth + 1) : Ahead();
    a.fits = a.fits && b.fits && a.parts == b.parts;
    a.steps.insert(a.steps.end(), b.steps.begin(), b.steps.end());
    return a;
  }
  if (p->is("Concat") && axis_of(*p) == axis) {
    Ahead all;
    for (const Value* o : p->inputs) {
      Ahead one = o->constant ? Ahead() : ahead(o, w, axis, positive, depth + 1);
      if (!one.fits) one.parts = {{nullptr, dims_of(o)[size_t(axis)], false}}, one.steps.clear();
      all.fits = all.fits || one.fits;
      all.parts.insert(all.parts.end(), one.parts.begin(), one.parts.end());
      all.steps.insert(all.steps.end(), one.steps.begin(), one.steps.end());
    }
    return all;
  }
  const Commutes how = commutes(*p, axis, false);
  if (how == Commutes::Never) return {};
  return ahead(p->inputs[0], w, axis, positive || how == Commutes::Positive, depth + 1);
}

/// The factors of all channels as one vector.
Value* vector_of(const Constants& k, const std::vector<Ahead::Part>& parts, DType t) {
  std::vector<Value*> vectors;
  for (const Ahead::Part& p : parts) {
    const std::string suffix = parts.size() == 1 ? "_scale" : "_scale" + to_text(int64_t(vectors.size()));
    Value* c = p.c ? p.c : k.g.add_constant(derived(k.base, suffix + "_one"), scalar_constant(t, 1));
    if (p.divides) c = k.op("Reciprocal", {c}, suffix + "_reciprocal");
    vectors.push_back(k.as_vector(c, p.channels, suffix));
  }
  return vectors.size() == 1 ? vectors[0] : k.op("Concat", std::move(vectors), "_scale", {{"axis", int64_t(0)}});
}

}  // namespace

bool fold_backward(Graph& g, Node* n) {
  const bool adds = n->is("Add");
  for (const int axis : {1, rank_of(n->outputs[0]) - 1}) {
    const ChannelStep s = axis < 1 ? ChannelStep() : channel_step(n, adds ? "Add" : "Mul", axis);
    if (!s.v) continue;
    const Backward way(g, n, axis, adds, !adds && is_positive(s.c));
    if (!way.takes(s.v, s.c)) continue;
    replace_node(g, n, way.take(s.v, factor_of(g, n, s), n->outputs[0]->name));
    return true;
  }
  return false;
}

bool fold_forward(Graph& g, Node* n) {
  const Contraction k = contraction_of(n);
  if (!k.fits) return false;
  const int axis = n->is("MatMul") ? rank_of(n->inputs[0]) - 1 : 1;
  const Ahead found = ahead(n->inputs[0], n->inputs[1], axis, false, 0);
  if (!found.fits) return false;
  const Constants constants{g, n, n->inputs[1]->name};
  Value* vector = vector_of(constants, found.parts, n->outputs[0]->type.dtype);
  g.set_input(n, 1, scale_weights(constants, n, vector));
  for (Node* step : found.steps) {
    Node* user = only_user(step->outputs[0]);
    add_origins(n->origins, step->origins);
    Value* x = channel_step(step, "Mul", axis).v;
    for (size_t i = 0; i < user->inputs.size(); ++i)
      if (user->inputs[i] == step->outputs[0]) g.set_input(user, i, x);
    erase_unused(g, step);
  }
  return true;
}

}  // namespace tc
