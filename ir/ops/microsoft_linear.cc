// Layers that keep a state of a fixed size in place of a cache (com.microsoft, the first two of ai.onnx, too): attention as a recurrence,
// causal convolution, and what stands around them.
//   y, present = LinearAttention(q, k, v, past, decay, beta)      S = past; for each token:
//       S = exp(decay) S     S = S + k (beta (v - S^T k))^T       y = scale S^T q          (which parts, says update_rule)
//   y, present = CausalConvWithState(x, w, b, past)   ->   y = tc.causal_conv(x, w, b, past)   present = tc.last_steps(past, x, n)
// Weights that both have state_window: the states behind each of the last tokens. It is refused.
#include <algorithm>

#include "ir/ops/expansion.h"
#include "ir/ops/microsoft_counts.h"
#include "ir/ops/numeric.h"
#include "ir/ops/parts.h"

namespace tc {
namespace {

void refuse_windows(const Expansion& e) {
  if (e.attr_int("state_window") != 0) e.unsupported("state_window; export the model with state_window = 0");
}

bool expand_linear_attention(Graph& g, Node* n) {
  const Expansion e(g, n);
  refuse_windows(e);
  Attrs attrs = e.attrs_named({"q_num_heads", "kv_num_heads", "update_rule", "scale"});
  Node* y =
      e.node_of("linear_attention",
                {e.in(0), e.in(1), e.in(2), e.optional(3), e.optional(4), e.optional(5), e.optional(kCountOperand)}, 2,
                "", attrs, "tc");
  for (size_t k = 0; k < 2; k++)
    if (e.wants(k)) e.finish(k, y->outputs[k]);
  return true;
}

/// A sequence along its last axis, or along axis 1 where channels come last. One of a batch may stand for all.
struct Steps {
  Tensor x;
  bool last;
  Expr operator()(const Exprs& bc, const Expr& t) const {
    const Expr b = x.dim(0) == 1 ? Expr(0) : bc[0];
    return last ? x({b, t, bc[1]}) : x({b, bc[1], t});
  }
};

/// The sequence that goes on from `past`, at `t` steps behind its beginning.
Expr going_on(const Steps& past, const Steps& x, const Exprs& bc, const Expr& t, int64_t before, int64_t length) {
  if (length == 0) return past(bc, t);
  if (before == 0) return x(bc, t);
  return select(t < Expr(before), past(bc, min(t, Expr(before - 1))),
                x(bc, min(max(t - Expr(before), Expr(0)), Expr(length - 1))));
}

/// y[b, c, t] = f(bias[c] + sum(k) w[c, 0, k] * z[b, c, t + k * dilation]) with z the steps of the past, then x.
void define_causal_conv(OpBuilder& op) {
  const bool last = op.attr_int("channels_last") != 0;
  const Steps x{op.in(0), last}, past{op.in(3), last};
  const Dims d = x.x.dims(), w = op.in(1).dims();
  if (d.size() != 3 || w.size() != 3 || w[1] != 1)
    op.reject("input and weights must have three axes, and the weights [channels, 1, taps]");
  const int64_t channels = d[last ? 2 : 1], length = d[last ? 1 : 2], dilation = op.attr_int("dilation"),
                before = (w[2] - 1) * dilation;
  if (w[0] != channels || dilation < 1 || w[2] < 1) op.reject("the weights do not fit the input", 1);
  const auto fits = [&](int64_t batch) {
    return past.x.dims() == (last ? Dims{batch, before, channels} : Dims{batch, channels, before});
  };
  if (!fits(d[0]) && !fits(1))  // an absent one is the same for all
    op.reject("the state must have (taps - 1) * dilation steps: " + to_text(before), 3);
  if (op.has(2) && op.in(2).dims() != Dims{channels}) op.reject("the bias does not fit the input", 2);
  const std::string activation = op.attr_string("activation");
  const bool gated = activation == "silu" || activation == "swish";
  if (!gated && activation != "none" && !activation.empty()) op.reject("activation must be silu, swish or none");
  const auto point = [&](const Exprs& i) { return Exprs{i[0], i[last ? 2 : 1]}; };
  const std::vector<std::string> names =
      last ? std::vector<std::string>{"b", "t", "c", "k"} : std::vector<std::string>{"b", "c", "t", "k"};
  const Tensor sum = op.reduce(
      "conv", Op::Add, DType::F32, d, {w[2]},
      [&](const Exprs& i, const Exprs& r) {
        const Expr t = i[last ? 1 : 2] + r[0] * dilation;
        return widen(op.in(1)({point(i)[1], Expr(0), r[0]})) * widen(going_on(past, x, point(i), t, before, length));
      },
      names);
  op.output(0, op.compute(
                   "causal_conv", x.x.dtype(), d,
                   [&](const Exprs& i) {
                     const Expr y = op.has(2) ? sum(i) + widen(op.in(2)({point(i)[1]})) : sum(i);
                     return cast(x.x.dtype(), gated ? y / (make_const(DType::F32, 1) + exp(-y)) : y);
                   },
                   names));
}

/// The last steps of the past and of the first `count` of x, as many as the past has.
void define_last_steps(OpBuilder& op) {
  const bool last = op.attr_int("channels_last") != 0;
  const Steps past{op.in(0), last}, x{op.in(1), last};
  const int along = last ? 1 : 2;
  const int64_t before = past.x.dim(along), length = x.x.dim(along);
  Dims made = past.x.dims();
  made[0] = x.x.dim(0);
  op.output(0, op.compute("last_steps", past.x.dtype(), made, [&](const Exprs& i) {
    const Expr count = op.has(2) ? min(max(op.in(2)({}), Expr(0)), Expr(length)) : Expr(length);
    return going_on(past, x, {i[0], i[last ? 2 : 1]}, i[size_t(along)] + count, before, length);
  }));
}

bool expand_causal_conv(Graph& g, Node* n) {
  const Expansion e(g, n);
  refuse_windows(e);
  if (e.has("ndim") && e.attr_int("ndim") != 1) e.unsupported("ndim " + to_text(e.attr_int("ndim")));
  Value *x = e.in(0), *w = e.in(1), *past = e.optional(3);
  const bool last = e.attr_int("channels_last") != 0;
  const Dims d = dims_of_type(x), taps = dims_of_type(w);
  if (d.size() != 3 || taps.size() != 3)
    e.unsupported("an input of " + to_text(int64_t(d.size())) + " axes; reshape it to three");
  const int64_t before = (taps[2] - 1) * (e.has("dilation") ? e.attr_int("dilation") : 1);
  if (before < 0) e.reject("the weights do not fit the input");
  const auto state = [&](int64_t batch) { return last ? Dims{batch, before, d[2]} : Dims{batch, d[1], before}; };
  if (past && dims_of_type(past) != state(d[0]))
    e.reject("the state must have (taps - 1) * dilation steps: " + to_text(before));
  if (!past) past = e.zeros(x->type.dtype, state(1), "_none");
  const Attrs attrs = e.attrs_named({"dilation", "channels_last", "activation"});
  Value* y = e.op("causal_conv", {x, w, e.optional(2), past}, "", attrs, "tc");
  if (e.wants(1))
    e.finish(1, e.op("last_steps", {past, x, e.optional(kCountOperand)}, "_state",
                     {{"channels_last", e.attr_int("channels_last")}}, "tc"));
  if (e.wants(0)) e.finish(0, y);
  return true;
}

/// decay = decay_scale * softplus(a + dt_bias), beta = sigmoid(b), in single precision.
bool expand_gate(Graph& g, Node* n) {
  const Expansion e(g, n);
  Value *a = e.in(0), *b = e.optional(3);
  const auto single = [&](Value* x, const char* name) { return e.cast(DType::F32, x, name); };
  if (e.wants(1) && !b) e.reject("beta is computed from the operand b");
  Value* sum = e.op("Add", {single(a, "_a"), single(e.in(1), "_bias")}, "_sum");
  Value* decay = e.op("Mul", {e.op("Softplus", {sum}, "_softplus"), single(e.in(2), "_scale")}, "_decay");
  if (e.wants(0)) e.finish(0, e.cast(a->type.dtype, decay, ""));
  if (e.wants(1)) e.finish(1, e.cast(b->type.dtype, e.op("Sigmoid", {single(b, "_b")}, "_sigmoid"), "_beta"));
  return true;
}

/// Groups of the last axis are normalized by their root mean squares, and multiplied with a gate, in single precision.
bool expand_gated_norm(Graph& g, Node* n) {
  const Expansion e(g, n);
  Value *x = e.in(0), *scale = e.in(1), *gate = e.in(2);
  const Dims d = dims_of_type(x), width = dims_of_type(scale);
  if (width.size() != 1 || width[0] < 1 || d.empty() || d.back() % width[0] != 0 || dims_of_type(gate) != d)
    e.reject("scale and gate do not fit the input");
  Dims groups = d;
  groups.back() = d.back() / width[0];
  groups.push_back(width[0]);
  Value* y = e.reshape(e.cast(DType::F32, x, "_single"), groups, "_groups");
  y = e.op("RMSNormalization", {y, e.cast(DType::F32, scale, "_scale")}, "_norm",
           {{"axis", int64_t(-1)}, {"epsilon", e.attr_float("epsilon")}});
  Value* z = e.cast(DType::F32, gate, "_gate");
  const std::string activation = e.attr_string("activation");
  if (activation != "silu" && activation != "swish" && activation != "sigmoid")
    e.reject("activation must be silu, swish or sigmoid");
  z = e.op(activation == "sigmoid" ? "Sigmoid" : "Swish", {z}, "_activated");
  y = e.op("Mul", {e.reshape(y, d, "_flat"), z}, "_gated");
  e.finish(0, e.cast(x->type.dtype, y, ""));
  return true;
}

bool expand_gated_add(Graph& g, Node* n) {
  const Expansion e(g, n);
  e.finish(0, e.op("Add", {e.in(0), e.op("Mul", {e.in(1), e.in(2)}, "_scaled")}, ""));
  return true;
}

/// y[b, s, k] = cache[positions[stream of k, b, s], k]: a cache of cosines or sines for positions that have several parts.
void define_rotary_sections(OpBuilder& op) {
  const Tensor cache = op.in(0), positions = op.in(1);
  const auto sections = op.attr_ints("sections");
  const bool in_turns = op.attr_int("interleaved") != 0;
  if (cache.rank() != 2 || positions.rank() != 3 || positions.dim(0) != 3 || sections.size() != 3)
    op.reject("the cache must have two axes, and position_ids the shape [3, batch, sequence]");
  if (sections[0] + sections[1] + sections[2] != cache.dim(1) ||
      *std::min_element(sections.begin(), sections.end()) < 0)
    op.reject("mrope_section must divide the width of the caches, " + to_text(cache.dim(1)));
  op.output(0,
            op.compute("sections", cache.dtype(), {positions.dim(1), positions.dim(2), cache.dim(1)},
                       [&](const Exprs& i) {
                         const auto at = [&](int64_t part) {
                           return cast(DType::I64, positions({Expr(part), i[0], i[1]}));
                         };
                         const auto of_part = [&](int64_t part) {
                           if (!in_turns) return i[2] < Expr(part == 1 ? sections[0] + sections[1] : sections[0]);
                           return eq(floor_mod(i[2], Expr(3)), Expr(part)) && i[2] < Expr(3 * sections[size_t(part)]);
                         };
                         const Expr position = in_turns ? select(of_part(1), at(1), select(of_part(2), at(2), at(0)))
                                                        : select(of_part(0), at(0), select(of_part(1), at(1), at(2)));
                         return cache({checked_index(position, cache.dim(0)), i[2]});
                       },
                       {"b", "s", "k"}));
}

bool expand_sectioned_rotary(Graph& g, Node* n) {
  const Expansion e(g, n);
  Value* x = e.in(0);
  if (e.attr_int("is_packed_batching") != 0) e.unsupported("attribute is_packed_batching");
  if (e.attr_float("scale") != 1) e.unsupported("attribute scale");
  const Attrs sections = {{"sections", e.attr_ints("mrope_section")}, {"interleaved", e.attr_int("mrope_layout")}};
  const auto cache = [&](size_t k, const char* name) {
    return e.op("rotary_sections", {e.in(k), e.in(1)}, name, sections, "tc");
  };
  Attrs attrs = {{"interleaved", e.attr_int("interleaved")},
                 {"rotary_embedding_dim", e.attr_int("rotary_embedding_dim")}};
  const Dims d = dims_of_type(x), width = dims_of_type(e.in(2));
  if (d.size() == 3) {
    int64_t heads = e.attr_int("num_heads");
    if (heads == 0 && (width.size() != 2 || width[1] < 1 || d[2] % (2 * width[1]) != 0))
      e.reject("attribute num_heads must be given where the caches do not have the size of a head");
    attrs["num_heads"] = heads == 0 ? d[2] / (2 * width[1]) : heads;
  }
  e.finish(0, e.op("RotaryEmbedding", {x, cache(2, "_cosines"), cache(3, "_sines")}, "", attrs));
  return true;
}

}  // namespace

OpFamily microsoft_linear_ops() {
  const std::string_view ms = "com.microsoft";
  const std::vector<AttrSpec> rule = {optional_attr("q_num_heads"), optional_attr("kv_num_heads"),
                                      string_attr("update_rule", "gated_delta"), float_attr("scale", 0)};
  std::vector<AttrSpec> attention = rule;
  attention.push_back(int_attr("chunk_size", 64));
  const std::vector<AttrSpec> standard = attention;
  attention.push_back(int_attr("state_window", 0));
  const std::vector<AttrSpec> conv = {int_attr("dilation", 1), int_attr("channels_last", 0),
                                      string_attr("activation", "none")};
  std::vector<AttrSpec> with_window = conv;
  with_window.push_back(int_attr("ndim", 1));
  with_window.push_back(int_attr("state_window", 0));
  return {
      expanding_row("", "LinearAttention", 27, standard, expand_linear_attention),
      expanding_row("", "CausalConvWithState", 27, {string_attr("activation", "none")}, expand_causal_conv),
      expanding_row(ms, "LinearAttention", 1, std::move(attention), expand_linear_attention),
      expanding_row(ms, "CausalConvWithState", 1, std::move(with_window), expand_causal_conv),
      expanding_row(ms, "LinearAttentionGate", 1, {}, expand_gate),
      expanding_row(ms, "GatedRMSNorm", 1, {string_attr("activation", "silu"), float_attr("epsilon", 1e-5f)},
                    expand_gated_norm),
      expanding_row(ms, "GatedAdd", 1, {}, expand_gated_add),
      expanding_row(ms, "MRotaryEmbedding", 1,
                    {optional_attr("mrope_section"), int_attr("num_heads", 0), int_attr("rotary_embedding_dim", 0),
                     int_attr("interleaved", 0), int_attr("mrope_layout", 0), int_attr("is_packed_batching", 0),
                     float_attr("scale", 1)},
                    expand_sectioned_rotary),
      {"linear_attention", 1, rule, define_linear_attention, "q k v past decay beta count", "linear_attention", "tc"},
      {"causal_conv", 1, conv, define_causal_conv, "x w b past", "causal_conv", "tc"},
      {"last_steps", 1, {int_attr("channels_last", 0)}, define_last_steps, "past x count", "last_steps", "tc"},
      {"rotary_sections",
       1,
       {ints_attr("sections", {}), int_attr("interleaved", 0)},
       define_rotary_sections,
       "cache positions",
       "sections",
       "tc"},
  };
}

}  // namespace tc
