// Attention as a recurrence: the loops of LinearAttention.
//   S = past; for each token:   S = exp(decay) S   S = S + k (beta (v - S^T k))^T   y = scale S^T q   (which parts, says update_rule)
#include <algorithm>
#include <cmath>

#include "ir/ops/numeric.h"
#include "ir/ops/parts.h"

namespace tc {
namespace {

/// Sizes of LinearAttention: heads of queries, of keys, of values and states; sizes of these heads.
struct Recurrent {
  int64_t batch = 0, tokens = 0, q_heads = 0, k_heads = 0, heads = 0, size = 0, width = 0;
  bool decays = false, corrects = false, by_row = false, one_rate = false;
  int64_t out_heads() const { return std::max(q_heads, heads); }
};

Recurrent read_recurrent(OpBuilder& op) {
  const Dims q = op.in(0).dims(), k = op.in(1).dims(), v = op.in(2).dims();
  if (q.size() != 3 || k.size() != 3 || v.size() != 3) op.reject("query, key and value must have three axes");
  const auto computes = [](DType t) { return is_float(t) && t != DType::F64; };
  for (const int i : {0, 1, 2, 3, 4, 5}) {
    if (!op.has(i)) continue;
    const DType t = op.in(i).dtype();
    if (!computes(t))
      op.unsupported("an operand is " + std::string(info(t).name) + ", and floats of 16 and 32 bits are supported", i);
    if (i != 3 && t != op.in(0).dtype()) op.reject("this operand must have the type of the query", i);
  }
  Recurrent r;
  r.batch = q[0], r.tokens = q[1];
  r.q_heads = op.attr_int("q_num_heads"), r.heads = op.attr_int("kv_num_heads");
  if (r.q_heads < 1 || r.heads < 1 || q[2] % r.q_heads != 0 || v[2] % r.heads != 0)
    op.reject("the numbers of heads do not divide the hidden sizes");
  r.size = q[2] / r.q_heads, r.width = v[2] / r.heads;
  if (r.size < 1 || k[2] % r.size != 0 || k[2] == 0) op.reject("the key does not fit the query", 1);
  r.k_heads = k[2] / r.size;
  if (r.heads % r.k_heads != 0 || (r.q_heads % r.heads != 0 && r.heads % r.q_heads != 0))
    op.reject("the numbers of heads are no multiples of each other");
  for (const Dims& d : {k, v})
    if (d[0] != r.batch || d[1] != r.tokens) op.reject("query, key and value differ in batch or length");
  const std::string rule = op.attr_string("update_rule");
  if (rule != "linear" && rule != "gated" && rule != "delta" && rule != "gated_delta")
    op.reject("update_rule must be linear, gated, delta or gated_delta");
  r.decays = rule.starts_with("gated"), r.corrects = rule.ends_with("delta");
  if (op.has(3) && op.in(3).dims() != Dims{r.batch, r.heads, r.size, r.width})
    op.reject("the state must have the shape [batch, heads, key size, value size]", 3);
  if (r.decays) {
    const Dims each = {r.batch, r.tokens, r.heads}, rows = {r.batch, r.tokens, r.heads * r.size};
    if (!op.has(4) || (op.in(4).dims() != each && op.in(4).dims() != rows)) op.reject("decay does not fit", 4);
    r.by_row = op.in(4).dims() != each;
  }
  if (r.corrects) {
    const Dims each = {r.batch, r.tokens, r.heads}, one = {r.batch, r.tokens, 1};
    if (!op.has(5) || (op.in(5).dims() != each && op.in(5).dims() != one)) op.reject("beta does not fit", 5);
    r.one_rate = op.in(5).dims() != each;
  }
  return r;
}

/// The loops: of a head of a batch, token by token. Its rows are `size`, its columns `width`. The state is walked as seldom as
/// the rule allows: once a token, twice where what it says is corrected first.
class RecurrentLoops {
 public:
  RecurrentLoops(OpBuilder& op, const Recurrent& r, const std::vector<Buffer>& out)
      : op_(op), r_(r), y_(out[0]), state_(out[1]) {}

  Stmt build() {
    const Var part = make_var("head"), t = make_var("t");
    batch_ = r_.batch == 1 ? Expr(0) : floor_div(Expr(part), Expr(r_.heads));
    head_ = r_.batch == 1 ? Expr(part) : floor_mod(Expr(part), Expr(r_.heads));
    t_ = Expr(t);
    const Expr count = op_.has(6) ? min(max(op_.in(6)({}), Expr(0)), Expr(r_.tokens)) : Expr(r_.tokens);
    const bool shares = r_.decays && !r_.by_row;
    const Var decay = make_var("decay", DType::F32);
    const Expr given = shares ? kept(Expr(0)) : Expr();
    if (shares) decay_ = Expr(decay);
    Stmt step = alloc(change_, alloc(sum_, seq({change(), update(), results()})));
    if (shares) step = let(decay, given, step);
    const Stmt tokens = loop(t, count, step);
    if (state_->dtype == DType::F32) return seq({from_past(), loop(part, r_.batch * r_.heads, tokens)});
    // Rounded once, behind the last token.
    const auto past = [&](const Expr& i, const Expr& j) {
      return set_state(i, j, op_.has(3) ? widen(op_.in(3)({batch_, head_, i, j})) : zero(DType::F32));
    };
    const auto result = [&](const Expr& i, const Expr& j) {
      return store(state_, {batch_, head_, i, j}, cast(state_->dtype, state(i, j)));
    };
    return loop(part, r_.batch * r_.heads, alloc(wide_, seq({matrix(past), tokens, matrix(result)})));
  }

 private:
  Stmt from_past() const {
    return for_each_index(static_dims(state_->shape), [&](const Exprs& at) {
      return store(state_, at, op_.has(3) ? cast(state_->dtype, op_.in(3)(at)) : zero(state_->dtype));
    });
  }
  static Stmt each(int64_t n, const char* name, const std::function<Stmt(const Expr& i)>& body) {
    const Var v = make_var(name);
    return loop(v, n, body(Expr(v)));
  }
  Stmt matrix(const std::function<Stmt(const Expr& i, const Expr& j)>& body) const {
    return each(r_.size, "i",
                [&](const Expr& i) { return each(r_.width, "j", [&](const Expr& j) { return body(i, j); }); });
  }
  Expr state(const Expr& i, const Expr& j) const {
    return state_->dtype == DType::F32 ? load(state_, {batch_, head_, i, j}) : load(wide_, {i, j});
  }
  Stmt set_state(const Expr& i, const Expr& j, const Expr& v) const {
    return state_->dtype == DType::F32 ? store(state_, {batch_, head_, i, j}, v) : store(wide_, {i, j}, v);
  }
  Expr key(const Expr& i) const {
    const Expr head = r_.k_heads == r_.heads ? head_ : floor_div(head_, Expr(r_.heads / r_.k_heads));
    return widen(op_.in(1)({batch_, t_, head * r_.size + i}));
  }
  Expr kept(const Expr& i) const {
    if (decay_) return decay_;
    return exp(widen(op_.in(4)({batch_, t_, r_.by_row ? head_ * r_.size + i : head_})));
  }

  Expr decayed(const Expr& i, const Expr& j) const { return r_.decays ? state(i, j) * kept(i) : state(i, j); }

  // change[j] = v[j], or beta (v[j] - sum(i) S[i, j] k[i]), of the S that has decayed
  Stmt change() const {
    const auto at = [&](const Expr& j) { return load(change_, {j}); };
    const auto value = [&](const Expr& j) { return widen(op_.in(2)({batch_, t_, head_ * r_.width + j})); };
    if (!r_.corrects) return each(r_.width, "j", [&](const Expr& j) { return store(change_, {j}, value(j)); });
    const Expr rate = widen(op_.in(5)({batch_, t_, r_.one_rate ? Expr(0) : head_}));
    const auto said = [&](const Expr& j) { return decays_late() ? at(j) * kept(Expr(0)) : at(j); };
    return seq({cleared(change_), matrix([&](const Expr& i, const Expr& j) {
                  return seq({r_.decays && !decays_late() ? set_state(i, j, decayed(i, j)) : Stmt(),
                              store(change_, {j}, state(i, j) * key(i), Op::Add)});
                }),
                each(r_.width, "j", [&](const Expr& j) { return store(change_, {j}, rate * (value(j) - said(j))); })});
  }
  /// One number of a token and a head decays the sum of what it decays, and S when it is written.
  bool decays_late() const { return r_.decays && !r_.by_row; }
  // S += k[i] change[j], and what the only reader sums up
  Stmt update() const {
    const Stmt walk = matrix([&](const Expr& i, const Expr& j) {
      const Expr before = r_.corrects && !decays_late() ? state(i, j) : decayed(i, j);
      return seq({set_state(i, j, before + key(i) * load(change_, {j})),
                  readers() == 1 ? store(sum_, {j}, query(head_, i) * state(i, j), Op::Add) : Stmt()});
    });
    return readers() == 1 ? seq({cleared(sum_), walk}) : walk;
  }
  Stmt cleared(const Buffer& b) const {
    return each(r_.width, "j", [&](const Expr& j) { return store(b, {j}, zero(DType::F32)); });
  }
  int64_t readers() const { return r_.out_heads() / r_.heads; }
  Expr query(const Expr& out, const Expr& i) const {
    const Expr from = r_.q_heads >= r_.heads ? out : floor_div(head_, Expr(r_.heads / r_.q_heads));
    return widen(op_.in(0)({batch_, t_, from * r_.size + i}));
  }
  // y[j] = scale sum(i) q[i] S[i, j], for each head of queries that reads this state
  Stmt results() const {
    const float given = op_.attr_float("scale");
    const Expr scale = make_const(DType::F32, given != 0 ? double(given) : 1 / std::sqrt(double(r_.size)));
    return each(readers(), "reader", [&](const Expr& reader) {
      const Expr out = head_ * readers() + reader;
      const Stmt walk = seq({cleared(sum_), matrix([&](const Expr& i, const Expr& j) {
                               return store(sum_, {j}, query(out, i) * state(i, j), Op::Add);
                             })});
      return seq({readers() == 1 ? Stmt() : walk, each(r_.width, "j", [&](const Expr& j) {
                    return store(y_, {batch_, t_, out * r_.width + j}, cast(y_->dtype, scale * load(sum_, {j})));
                  })});
    });
  }

  OpBuilder& op_;
  const Recurrent& r_;
  Buffer y_, state_;
  Buffer wide_ = make_buffer("wide", DType::F32, {Dim(r_.size), Dim(r_.width)}, Scope::Workspace);
  Buffer change_ = make_buffer("change", DType::F32, {Dim(r_.width)}, Scope::Workspace),
         sum_ = make_buffer("sum", DType::F32, {Dim(r_.width)}, Scope::Workspace);
  Expr batch_, head_, t_;
  Expr decay_;  // what all rows keep of the state
};

}  // namespace

void define_linear_attention(OpBuilder& op) {
  const Recurrent r = read_recurrent(op);
  const DType held = op.has(3) ? op.in(3).dtype() : op.in(0).dtype();
  const auto y = op.nest("linear_attention",
                         {ValueType::tensor(op.in(0).dtype(), to_shape({r.batch, r.tokens, r.out_heads() * r.width})),
                          ValueType::tensor(held, to_shape({r.batch, r.heads, r.size, r.width}))},
                         [&](const std::vector<Buffer>& out) { return RecurrentLoops(op, r, out).build(); });
  op.output(0, y[0]);
  op.output(1, y[1]);
}

}  // namespace tc
