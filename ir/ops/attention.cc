// Attention: softmax(Q K^T * scale + bias) V, written as the two matrix products and a softmax in between, and
// RotaryEmbedding. Heads are an axis of their own even where the model packs them into the hidden axis.
#include <cmath>

#include "ir/ops/families.h"
#include "ir/ops/numeric.h"

namespace tc {
namespace {

/// Q, K or V as [batch, heads, sequence, size], whether it comes so or as [batch, sequence, heads * size].
struct Heads {
  Tensor x;
  int64_t batch = 0, heads = 0, sequence = 0, size = 0;
  Expr at(const Expr& b, const Expr& h, const Expr& s, const Expr& d) const {
    return x.rank() == 4 ? x({b, h, s, d}) : x({b, s, h * size + d});
  }
};

Heads read_heads(OpBuilder& op, int input, const std::string& attr) {
  Heads h;
  h.x = op.in(input);
  const Dims d = h.x.dims();
  if (d.size() == 4) return {h.x, d[0], d[1], d[2], d[3]};
  if (d.size() != 3) op.reject("this input must have three or four axes", input);
  h.batch = d[0];
  h.sequence = d[1];
  h.heads = op.attr_int(attr, 0);
  if (h.heads < 1) op.reject("attribute " + attr + " must be given for inputs of three axes");
  if (d[2] % h.heads != 0) op.reject(attr + " does not divide the hidden size " + to_text(d[2]), input);
  h.size = d[2] / h.heads;
  return h;
}

struct Attention {
  OpBuilder& op;
  Heads q, k, v;
  DType t;                      // of products and sums
  int64_t past = 0, total = 0;  // keys that were cached, all keys
  Tensor keys{}, values{};      // the caches with the new part appended, where there is a past
  bool causal = false;
  int64_t left = -1, right = -1;

  Dims scores() const { return {q.batch, q.heads, q.sequence, total}; }
  Expr kv_head(const Expr& h) const { return q.heads == k.heads ? h : floor_div(h, Expr(q.heads / k.heads)); }
  Expr key(const Expr& b, const Expr& h, const Expr& j, const Expr& d) const {
    return widen(keys ? keys({b, kv_head(h), j, d}) : k.at(b, kv_head(h), j, d));
  }
  Expr value(const Expr& b, const Expr& h, const Expr& j, const Expr& d) const {
    return cast(t, values ? values({b, kv_head(h), j, d}) : v.at(b, kv_head(h), j, d));
  }

  /// May query i of batch b see key j? Constant true where nothing restricts it.
  Expr allowed(const Exprs& i) const {
    Expr ok = make_int(DType::Bool, 1);
    if (op.has(9)) ok = i[3] < op.in(9)({});
    if (op.has(6)) ok = op.has(9) ? ok && i[3] < op.in(6)({i[0]}) : i[3] < op.in(6)({i[0]});
    if (!causal && left < 0 && right < 0) return ok;
    Expr offset = past;
    if (op.has(7))
      offset = op.in(7)({op.in(7).dims()[0] == 1 ? Expr(0) : i[0]});
    else if (past == 0 && op.has(6))
      offset = op.in(6)({i[0]}) - q.sequence;
    const Expr position = i[2] + offset;
    if (causal) ok = ok && i[3] <= position;
    if (left >= 0) ok = ok && position - i[3] <= left;
    if (right >= 0) ok = ok && i[3] - position <= right;
    return ok;
  }
};

/// present = past, then the new keys (or values); without a past just the new ones, as four axes.
Tensor appended(OpBuilder& op, const Heads& fresh, int past_input, const std::string& name) {
  const int64_t past = op.has(past_input) ? op.in(past_input).dim(2) : 0;
  return op.compute(name, fresh.x.dtype(), {fresh.batch, fresh.heads, past + fresh.sequence, fresh.size},
                    [&](const Exprs& i) {
                      if (past == 0) return fresh.at(i[0], i[1], i[2], i[3]);
                      return select(i[2] < past, op.in(past_input)(i), fresh.at(i[0], i[1], i[2] - past, i[3]));
                    },
                    {"b", "h", "s", "d"});
}

void check_shapes(const Attention& a) {
  OpBuilder& op = a.op;
  if (a.k.batch != a.q.batch || a.k.size != a.q.size) op.reject("K does not fit Q", 1);
  if (a.v.batch != a.q.batch || a.v.heads != a.k.heads || a.v.sequence != a.k.sequence)
    op.reject("V does not fit K", 2);
  if (a.k.heads < 1 || a.q.heads % a.k.heads != 0)
    op.reject("the number of query heads must be a multiple of the number of key heads", 1);
  if (op.has(4) != op.has(5)) op.reject("past_key and past_value must be given together", op.has(4) ? 4 : 5);
  if (op.has(4) && op.in(4).dims() != Dims{a.q.batch, a.k.heads, a.past, a.k.size})
    op.reject("past_key does not fit K", 4);
  if (op.has(5) && op.in(5).dims() != Dims{a.q.batch, a.k.heads, a.past, a.v.size})
    op.reject("past_value does not fit V", 5);
  if (op.has(6) && op.has(4)) op.reject("nonpad_kv_seqlen cannot be combined with a past", 6);
  if (op.has(7) && op.in(7).dims() != Dims{a.q.batch} && op.in(7).dims() != Dims{1})
    op.reject("a first position must be given for each batch, or one for all", 7);
  if (op.has(6) && op.in(6).dims() != Dims{a.q.batch}) op.reject("nonpad_kv_seqlen must have one value per batch", 6);
  if (op.has(9) && op.in(9).rank() != 0) op.reject("the number of keys must be a scalar", 9);
  if (op.has(8) && op.in(8).dims() != Dims{a.q.heads}) op.reject("a sink must be given for each head", 8);
  if (!op.has(3)) return;
  const Dims mask = op.in(3).dims(), full = a.scores();
  for (size_t k = 0; k < mask.size(); k++) {
    const int64_t own = mask[mask.size() - 1 - k], other = k < 4 ? full[3 - k] : 0;
    if (k == 0 ? own > other : own != 1 && own != other) op.reject("attn_mask does not broadcast to the scores", 3);
  }
}

Attention read_attention(OpBuilder& op) {
  Attention a{op, read_heads(op, 0, "q_num_heads"), read_heads(op, 1, "kv_num_heads"),
              read_heads(op, 2, "kv_num_heads"), compute_type(op.in(0).dtype())};
  if (op.has(4) && op.in(4).rank() != 4) op.reject("past_key must have four axes", 4);
  a.past = op.has(4) ? op.in(4).dim(2) : 0;
  a.total = a.past + a.k.sequence;
  a.causal = op.attr_int("is_causal", 0) != 0;
  a.left = op.attr_int("left_window_size", -1);
  a.right = op.attr_int("right_window_size", -1);
  if (a.left < -1 || a.right < -1) op.reject("window sizes must be -1 or more");
  check_shapes(a);
  if (op.has(4) || op.wants(1)) a.keys = appended(op, a.k, 4, "present_key");
  if (op.has(4) || op.wants(2)) a.values = appended(op, a.v, 5, "present_value");
  if (a.keys) op.output(1, a.keys);
  if (a.values) op.output(2, a.values);
  return a;
}

/// The score with the mask's contribution; -inf where the mask, the causal rule or a window forbids the key. A mask
/// that is shorter than the keys forbids the rest.
Expr masked(const Attention& a, const Exprs& i, Expr score) {
  Expr ok = a.allowed(i);
  if (a.op.has(3)) {
    const Tensor mask = a.op.in(3);
    const Dims d = mask.dims();
    const int64_t covered = d.empty() ? a.total : d.back();
    Exprs at;
    for (size_t k = 0; k < d.size(); k++) {
      const Expr& axis = i[4 - d.size() + k];
      at.push_back(k + 1 < d.size() && d[k] == 1 ? Expr(0) : axis);
    }
    const Expr inside = covered < a.total ? i[3] < covered : make_int(DType::Bool, 1);
    const Expr m = mask(at);
    ok = ok && inside;
    if (m->dtype == DType::Bool)
      ok = ok && m;
    else
      score = score + select(inside, cast(a.t, m), zero(a.t));
  }
  return select(ok, score, lowest(a.t));
}

/// Rows without any key become zero. A sink is the score of one more key, whose value is zero, for each head.
Tensor softmax_rows(OpBuilder& op, const Tensor& x, DType precision, const Tensor& sink) {
  const Dims d = x.dims(), rows(d.begin(), d.end() - 1);
  const DType t = compute_type(precision);
  auto at = [&](const Exprs& i) { return widen(cast(precision, x(i))); };
  auto row = [](const Exprs& i) { return Exprs(i.begin(), i.end() - 1); };
  auto element = [&](const Exprs& i, const Exprs& r) { return insert_axis(i, 3, r[0]); };
  const std::vector<std::string> names = {"b", "h", "i", "j"}, row_names = {"b", "h", "i"};
  std::vector<std::string> reduced = row_names;
  reduced.push_back("j");
  const Tensor top = op.reduce(
      "row_max", Op::Max, t, rows, {d.back()}, [&](const Exprs& i, const Exprs& r) { return at(element(i, r)); },
      reduced);
  auto sink_of = [&](const Exprs& i) { return cast(t, sink({i[1]})); };
  auto shift = [&](const Exprs& i) {
    const Expr m = sink ? max(top(row(i)), sink_of(i)) : top(row(i));
    return select(eq(m, lowest(t)), zero(t), m);
  };
  const Tensor e = op.compute(
      "exp", t, d, [&](const Exprs& i) { return exp(at(i) - shift(i)); }, names);
  const Tensor sum = op.reduce(
      "row_sum", Op::Add, t, rows, {d.back()}, [&](const Exprs& i, const Exprs& r) { return e(element(i, r)); },
      reduced);
  return op.compute(
      "softmax", t, d,
      [&](const Exprs& i) {
        const Expr s = sink ? sum(row(i)) + exp(sink_of(i) - shift(i)) : sum(row(i));
        return e(i) / select(eq(s, zero(t)), make_const(t, 1), s);
      },
      names);
}

void define_attention(OpBuilder& op) {
  const Attention a = read_attention(op);
  const DType t = a.t, to = a.q.x.dtype();
  const std::vector<std::string> names = {"b", "h", "i", "j"};
  const double scale = op.has_attr("scale") ? double(op.attr_float("scale")) : 1 / std::sqrt(double(a.q.size));
  const int64_t mode = op.attr_int("qk_matmul_output_mode", 0);
  if (mode < 0 || mode > 3) op.reject("qk_matmul_output_mode must be 0, 1, 2 or 3");
  auto qk_output = [&](int64_t m, const Tensor& x) {
    if (m == mode && op.wants(3)) op.output(3, convert(op, x, to, "qk"));
  };
  const Tensor products = op.reduce("qk", Op::Add, t, a.scores(), {a.q.size},
                                    [&](const Exprs& i, const Exprs& r) {
                                      return widen(a.q.at(i[0], i[1], i[2], r[0])) * a.key(i[0], i[1], i[3], r[0]);
                                    },
                                    {"b", "h", "i", "j", "d"});
  Tensor scores = op.compute(
      "scaled", t, a.scores(), [&](const Exprs& i) { return products(i) * make_const(t, scale); }, names);
  qk_output(0, scores);
  if (const float cap = op.attr_float("softcap", 0); cap > 0) {
    const Expr c = parameter(t, cap);
    scores = op.compute(
        "softcap", t, a.scores(), [&, scores](const Exprs& i) { return tanh(scores(i) / c) * c; }, names);
  }
  qk_output(1, scores);
  scores = op.compute(
      "masked", t, a.scores(), [&, scores](const Exprs& i) { return masked(a, i, scores(i)); }, names);
  qk_output(2, scores);
  const DType precision = DType(op.attr_int("softmax_precision", int64_t(t)));
  if (!is_float(precision)) op.reject("softmax_precision must be a type of floats");
  const Tensor weights =
      convert(op, softmax_rows(op, scores, precision, op.has(8) ? op.in(8) : Tensor()), t, "weights");
  qk_output(3, weights);
  const Tensor y = op.reduce("attention", Op::Add, t, {a.q.batch, a.q.heads, a.q.sequence, a.v.size}, {a.total},
                             [&](const Exprs& i, const Exprs& r) {
                               const Expr term = weights({i[0], i[1], i[2], r[0]}) * a.value(i[0], i[1], r[0], i[3]);
                               return op.has(9) ? select(r[0] < op.in(9)({}), term, zero(t)) : term;
                             },
                             {"b", "h", "i", "d", "j"});
  if (a.q.x.rank() == 4) return op.output(0, convert(op, y, to, "cast"));
  op.output(0, op.compute("merge_heads", to, {a.q.batch, a.q.sequence, a.q.heads * a.v.size},
                          [&](const Exprs& i) {
                            const Expr size = a.v.size;
                            return cast(to, y({i[0], floor_div(i[2], size), i[1], floor_mod(i[2], size)}));
                          },
                          {"b", "i", "hd"}));
}

void define_rotary_embedding(OpBuilder& op) {
  const Heads x = read_heads(op, 0, "num_heads");
  const Tensor cosines = op.in(1), sines = op.in(2);
  const int64_t rotated = op.attr_int("rotary_embedding_dim", 0) > 0 ? op.attr_int("rotary_embedding_dim", 0) : x.size;
  if (rotated > x.size || rotated % 2 != 0)
    op.reject("rotary_embedding_dim must be even and at most the head size " + to_text(x.size));
  const int64_t half = rotated / 2;
  const bool interleaved = op.attr_int("interleaved", 0) != 0, by_position = op.has(3);
  for (int k = 1; k <= 2; k++) {
    const Dims d = op.in(k).dims();
    if (by_position ? d.size() != 2 || d[1] != half : d != Dims{x.batch, x.sequence, half})
      op.reject("the cache must have " +
                    std::string(by_position ? "the shape [positions, " : "the shape [batch, sequence, ") +
                    to_text(half) + "]",
                k);
  }
  if (by_position && op.in(3).dims() != Dims{x.batch, x.sequence})
    op.reject("position_ids must have the shape [batch, sequence]", 3);
  const DType to = x.x.dtype();
  auto rotate = [&](const Expr& b, const Expr& h, const Expr& s, const Expr& d) {
    auto cache = [&](const Tensor& c, const Expr& k) {
      if (!by_position) return widen(c({b, s, k}));
      return widen(c({checked_index(op.in(3)({b, s}), c.dim(0)), k}));
    };
    auto at = [&](const Expr& k) { return widen(x.at(b, h, s, k)); };
    auto real = [&](const Expr& k, const Expr& other) {
      return at(d) * cache(cosines, k) - at(other) * cache(sines, k);
    };
    auto imaginary = [&](const Expr& k, const Expr& other) {
      return at(other) * cache(sines, k) + at(d) * cache(cosines, k);
    };
    Expr y;
    if (interleaved) {
      const Expr k = floor_div(d, Expr(2));
      y = select(eq(floor_mod(d, Expr(2)), 0), real(k, d + 1), imaginary(k, d - 1));
    } else {
      y = select(d < half, real(d, d + half), imaginary(d - half, d - half));
    }
    return cast(to, rotated == x.size ? y : select(d < rotated, y, at(d)));
  };
  op.output(0, op.compute("rotary_embedding", to, x.x.dims(), [&](const Exprs& i) {
    if (x.x.rank() == 4) return rotate(i[0], i[1], i[2], i[3]);
    return rotate(i[0], floor_div(i[2], Expr(x.size)), i[1], floor_mod(i[2], Expr(x.size)));
  }));
}

}  // namespace

OpFamily attention_ops() {
  return {
      {"Attention",
       25,
       {int_attr("is_causal", 0), optional_attr("scale"), optional_attr("q_num_heads"), optional_attr("kv_num_heads"),
        optional_attr("softmax_precision"), float_attr("softcap", 0), int_attr("qk_matmul_output_mode", 0),
        int_attr("left_window_size", -1), int_attr("right_window_size", -1)},
       define_attention,
       "q k v mask past_key past_value lengths"},
      // The same with the position of the first query of each batch: how many queries there are is known at run time. And
      // with a sink for each head, and a number of keys behind which there is anything.
      {"attention",
       1,
       {int_attr("is_causal", 0), optional_attr("scale"), optional_attr("q_num_heads"), optional_attr("kv_num_heads"),
        optional_attr("softmax_precision"), float_attr("softcap", 0), int_attr("qk_matmul_output_mode", 0),
        int_attr("left_window_size", -1), int_attr("right_window_size", -1)},
       define_attention,
       "q k v mask past_key past_value lengths first sink keys",
       "",
       "tc"},
      {"RotaryEmbedding",
       23,
       {int_attr("interleaved", 0), int_attr("rotary_embedding_dim", 0), optional_attr("num_heads")},
       define_rotary_embedding,
       "x cos sin positions"},
  };
}

}  // namespace tc
