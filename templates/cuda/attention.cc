// Attention in one pass over the keys (FlashAttention-2, arXiv 2307.08691, with the running softmax of Milakov and
// Gimelshein, arXiv 1805.02867): the matrix of scores never exists.
//
//   q_tile = the block's rows of q                       in shared memory
//   for tiles of keys:                                   v_tile arrives during the scores, the next k_tile during the
//   sums
//     s[i][j] = f(q_tile[row i] . k_tile[key j])
//     top = max(row_max[i], s[i][..])                    over the threads of the row, by shuffles
//     rescale = exp(row_max[i] - top)                    of what was summed under the old maximum
//     p_tile[row i][key j] = exp(s[i][j] - top)
//     row_sum[i] = row_sum[i] * rescale + sum(p_tile[row i])
//     acc[i][e] = acc[i][e] * rescale + p_tile[row i] . v_tile[..][e]
//   y[row i][e] = g(acc[i][e] / row_sum[i])
//
// Where rows are few, blocks share the keys: each stores its sums and its maximum, and a second launch joins them.
#include "templates/cuda/attention.h"

#include <algorithm>

#include "ir/loop/intrin.h"
#include "passes/loop/lower_thread_allreduce.h"
#include "support/text.h"

namespace tc {
namespace {

constexpr int64_t kVector = 4;  // floats of 16 bytes

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

// What exponentials subtract. In a row that has met no key but forbidden ones, -inf - -inf would be no number.
Expr shift_of(const Expr& top) { return select(eq(top, lowest(DType::F32)), zero(DType::F32), top); }

Expr with_sum(const Expr& e, const Buffer& acc, const Expr& sum) {
  return rewrite(e, [&](const Expr& x) -> Expr {
    const Load* l = as<Load>(x);
    return l && l->buffer == acc ? sum : Expr();
  });
}

Buffer registers(const std::string& name, const Dims& dims) {
  return make_buffer(name, DType::F32, to_shape(dims), Scope::Register);
}
Stmt each(const Var& v, int64_t n, const Stmt& body) { return loop(v, n, body, ForKind::Unroll); }

// TileCopy counts stages; these tiles have one: b[0][row][column] becomes b[row][column].
Stmt without_stages(const Stmt& s, const Buffer& b) {
  const Buffer flat = make_buffer(b->name, b->dtype, {b->shape[1], b->shape[2]}, b->scope);
  auto rest = [](const Exprs& index) { return Exprs(index.begin() + 1, index.end()); };
  const auto in_expr = [&](const Expr& e) -> Expr {
    const Load* l = as<Load>(e);
    return l && l->buffer == b ? load(flat, rest(l->index)) : Expr();
  };
  return rewrite(s, in_expr, [&](const Stmt& x) -> Stmt {
    if (const Alloc* k = as<Alloc>(x)) return k->buffer == b ? alloc(flat, k->body) : Stmt();
    if (const Store* k = as<Store>(x)) return k->buffer == b ? store(flat, rest(k->index), k->value) : Stmt();
    const Intrin* k = as<Intrin>(x);
    if (!k || std::find(k->buffers.begin(), k->buffers.end(), b) == k->buffers.end()) return {};
    IntrinCall call = parse(*k);
    for (IntrinOperand& o : call.operands)
      if (o.buffer == b) o = {flat, rest(o.index)};
    return intrin(k->name, call.operands, call.scalars);
  });
}

class FlashAttention {
 public:
  FlashAttention(const CudaAttention& m, const CudaAttentionPlan& p)
      : m_(m), p_(p), tn_(p.keys / p.tx), across_(p.width / (p.tx * kVector)), z_(m.batch, Expr(group_), "group") {
    acc_ = registers("acc", {p.tm, across_, kVector});
    row_max_ = registers("row_max", {p.tm});
    row_sum_ = registers("row_sum", {p.tm});
    s_ = registers("s", {p.tm, tn_});
    p_tile_ = make_buffer("p_tile", DType::F32, {Dim(p.rows), Dim(p.keys + kVector)}, Scope::Shared);
    q_ = depth_tile("q", m.q, m.rows, "row", Expr(block_) * Expr(p.rows), p.rows);
    k_ = depth_tile("k", m.k, {m.keys}, "n", 0, p.keys);
    v_ = value_tile();
    if (p.splits == 1) return;
    const int64_t rows = p.splits * points(m.batch) * points(m.rows);
    auto scratch = [](const std::string& name, int64_t n) {
      return make_buffer(name, DType::F32, {Dim(n)}, Scope::Workspace);
    };
    partial_ = scratch("partial", rows * points(m.values));
    partial_max_ = scratch("partial_max", rows);
    partial_sum_ = scratch("partial_sum", rows);
  }

  Stmt build() const {
    Stmt code = alloc(row_max_, alloc(row_sum_, alloc(acc_, seq({clear(), walk_keys(), results()}))));
    code = let(tx_, floor_mod(Expr(thread_), p_.tx), let(ty_, floor_div(Expr(thread_), p_.tx), z_.wrap(code)));
    Stmt launch = loop(thread_, p_.threads(), code, ForKind::ThreadX);
    for (const Buffer& b : {p_tile_, v_.shared, k_.shared, q_.shared}) launch = alloc(b, launch);
    launch = loop(block_, ceil_div(points(m_.rows), p_.rows), launch, ForKind::BlockX);
    launch = loop(group_, points(m_.batch), launch, ForKind::BlockY);
    if (p_.splits > 1) launch = loop(part_, p_.splits, launch, ForKind::BlockZ);
    for (const Buffer& b : {q_.shared, k_.shared, v_.shared}) launch = without_stages(launch, b);
    if (p_.splits == 1) return launch;
    const Stmt both = seq({comment("each of " + to_text(p_.splits) + " parts of the keys", launch),
                           comment("the parts joined, in order", join_parts())});
    return alloc(partial_, alloc(partial_max_, alloc(partial_sum_, both)));
  }

 private:
  // Rows along the sum: of q and of k. A row takes an odd number of 16 bytes, so that the rows that neighbouring
  // threads read begin in different banks.
  TileCopy depth_tile(const std::string& name, const Expr& value, const std::vector<Axis>& d, const std::string& d_name,
                      const Expr& begin, int64_t size) const {
    TileCopy c;
    c.value = value;
    c.d = d;
    c.d_name = d_name;
    c.d_begin = begin;
    c.d_tile = size;
    c.k = m_.depth;
    c.k_tile = p_.depth;
    c.k_inner = true;
    return placed(c, name, size, p_.depth / kVector % 2 == 0 ? p_.depth + kVector : p_.depth);
  }
  TileCopy value_tile() const {
    TileCopy c;
    c.value = m_.v;
    c.d = m_.values;
    c.d_name = "column";
    c.d_begin = 0;
    c.d_tile = p_.width;
    c.k = {m_.keys};
    c.k_tile = p_.keys;
    c.k_steps = p_.steps * p_.splits;
    return placed(c, "v", p_.keys, p_.width);
  }
  TileCopy placed(TileCopy c, const std::string& name, int64_t rows, int64_t columns) const {
    c.batch = z_.at;
    c.thread = thread_;
    c.threads = p_.threads();
    c.k_steps = std::max<int64_t>(c.k_steps, 1);
    c.shared = make_buffer(name + "_tile", DType::F32, {Dim(1), Dim(rows), Dim(columns)}, Scope::Shared);
    if (through_registers(c)) c.registers = registers_of(c, name + "_next");
    return c;
  }

  // The tile of the keys that the block takes in turn `step`.
  Expr key_tile(const Expr& step) const { return p_.splits > 1 ? Expr(part_) * Expr(p_.steps) + step : step; }
  TileCopy keys_of(const Expr& step) const {
    TileCopy c = k_;
    c.d_begin = key_tile(step) * Expr(p_.keys);
    return c;
  }

  Stmt clear() const {
    const Var i = make_var("i"), h = make_var("h"), j = make_var("j");
    const Stmt zeros = each(h, across_, each(j, kVector, store(acc_, {i, h, j}, zero(DType::F32))));
    return each(i, p_.tm,
                seq({store(row_max_, {i}, lowest(DType::F32)), store(row_sum_, {i}, zero(DType::F32)), zeros}));
  }

  // Two barriers a turn: a copy takes the place of a tile that every thread has left.
  Stmt walk_keys() const {
    const Var step = make_var("step");
    const bool single = p_.steps == 1;
    const Expr at = single ? Expr(0) : Expr(step);
    const TileCopy next = keys_of(at + Expr(1));
    auto arrived = [] { return seq({intrin("cp_async_wait", {}, {Expr(0)}), barrier(Scope::Shared)}); };
    const Stmt commit = intrin("cp_async_commit", {});
    auto if_next = [&](const Stmt& s) { return single || !s ? Stmt() : if_then(at + Expr(1) < Expr(p_.steps), s); };
    const Stmt scores =
        alloc(s_, seq({comment("scores", dot_products()), comment("their softmax so far", softmax(at))}));
    Stmt turn = seq({arrived(), copy_tile(v_, 0, key_tile(at)), commit, scores, put_tile(v_, 0), arrived(),
                     if_next(seq({copy_tile(next, 0, 0), commit})), comment("times the values", add_values()),
                     if_next(put_tile(next, 0))});
    for (const TileCopy* t : {&k_, &v_})
      if (t->registers) turn = alloc(t->registers, turn);
    auto whole = [&](const TileCopy& t) {
      const Stmt s = seq({copy_tile(t, 0, 0), put_tile(t, 0)});
      return t.registers ? alloc(t.registers, s) : s;
    };
    const Stmt first = seq({whole(q_), whole(keys_of(0)), commit});
    return seq({comment("the rows of q, and the first keys", first), single ? turn : loop(step, p_.steps, turn)});
  }

  Expr row_in_tile(const Expr& i) const { return i * Expr(p_.ty()) + Expr(ty_); }
  Expr key_in_tile(const Expr& j) const { return j * Expr(p_.tx) + Expr(tx_); }
  FlatPoint row_of(const Expr& i) const {
    return FlatPoint(m_.rows, Expr(block_) * Expr(p_.rows) + row_in_tile(i), "row");
  }

  // s[i][j] = q_tile[row i] . k_tile[key j]
  Stmt dot_products() const {
    const Buffer a = registers("q_d", {p_.tm, kVector}), b = registers("k_d", {tn_, kVector});
    const Var d = make_var("d"), i = make_var("i"), j = make_var("j"), e = make_var("e");
    const Expr at = Expr(d) * Expr(kVector);
    auto over = [&](const Stmt& s) { return each(i, p_.tm, each(j, tn_, s)); };
    const Stmt read = seq({each(i, p_.tm, intrin("load4", {{a, {i}}, {q_.shared, {0, row_in_tile(i), at}}})),
                           each(j, tn_, intrin("load4", {{b, {j}}, {k_.shared, {0, key_in_tile(j), at}}}))});
    const Stmt products = over(each(e, kVector, store(s_, {i, j}, load(a, {i, e}) * load(b, {j, e}), Op::Add)));
    return seq({over(store(s_, {i, j}, zero(DType::F32))),
                loop(d, p_.depth / kVector, alloc(a, alloc(b, seq({read, products}))))});
  }

  // The score of element (i, j) in s: what the function makes of the sum, or -inf where there is no key.
  Stmt finish_score(const Var& i, const Var& j, const FlatPoint& row, const Expr& step) const {
    const FlatPoint key({m_.keys}, key_tile(step) * Expr(p_.keys) + key_in_tile(j), "key");
    VarMap at = z_.at;
    at.insert(row.at.begin(), row.at.end());
    at.insert(key.at.begin(), key.at.end());
    const Expr sum = load(s_, {i, j});
    Expr value = with_sum(substitute(m_.score, at), m_.score_acc, sum), valid;
    const int64_t keys = m_.keys.extent.value;
    if (p_.splits * p_.steps * p_.keys != keys) valid = key.flat < Expr(keys);
    const bool by_row =
        std::any_of(m_.rows.begin(), m_.rows.end(), [&](const Axis& a) { return uses_var(m_.score, a.var); });
    if (by_row && points(m_.rows) % p_.rows != 0) {
      const Expr inside = row.flat < Expr(points(m_.rows));
      valid = valid ? inside && valid : inside;
    }
    if (valid) value = select(valid, value, lowest(DType::F32));
    return value.same_as(sum) ? Stmt() : key.wrap(store(s_, {i, j}, value));
  }

  Stmt softmax(const Expr& step) const {
    const Var i = make_var("i"), j = make_var("j"), h = make_var("h"), e = make_var("e");
    const Var shift = make_var("shift", DType::F32), rescale = make_var("rescale", DType::F32);
    const FlatPoint row = row_of(i);
    const Buffer top = registers("top", {});
    const Stmt compared = seq({finish_score(i, j, row, step), store(top, {}, load(s_, {i, j}), Op::Max)});
    const Stmt weights =
        seq({store(s_, {i, j}, exp(load(s_, {i, j}) - Expr(shift))), store(row_sum_, {i}, load(s_, {i, j}), Op::Add),
             store(p_tile_, {row_in_tile(i), key_in_tile(j)}, load(s_, {i, j}))});
    const Stmt rescaled = seq({store(row_max_, {i}, load(top, {})), store(row_sum_, {i}, Expr(rescale), Op::Mul),
                               each(h, across_, each(e, kVector, store(acc_, {i, h, e}, Expr(rescale), Op::Mul)))});
    const Stmt shifted =
        let(shift, shift_of(load(top, {})),
            let(rescale, exp(load(row_max_, {i}) - Expr(shift)), seq({rescaled, each(j, tn_, weights)})));
    const Stmt body =
        seq({store(top, {}, load(row_max_, {i})), each(j, tn_, compared), allreduce(top, Op::Max, p_.tx), shifted});
    return each(i, p_.tm, row.wrap(alloc(top, body)));
  }

  // acc[i][e] += p_tile[row i] . v_tile[..][e]
  Stmt add_values() const {
    const Buffer a = registers("p_k", {p_.tm, kVector}), b = registers("v_k", {across_, kVector});
    const Var k = make_var("k"), n = make_var("n"), i = make_var("i"), h = make_var("h"), e = make_var("e");
    const Expr first = Expr(k) * Expr(kVector);
    const Stmt read_p = each(i, p_.tm, intrin("load4", {{a, {i}}, {p_tile_, {row_in_tile(i), first}}}));
    const Stmt read_v = each(h, across_, intrin("load4", {{b, {h}}, {v_.shared, {0, first + Expr(n), column(h)}}}));
    const Stmt products =
        each(i, p_.tm,
             each(h, across_, each(e, kVector, store(acc_, {i, h, e}, load(a, {i, n}) * load(b, {h, e}), Op::Add))));
    const Stmt terms = each(n, kVector, alloc(b, seq({read_v, products})));
    return loop(k, p_.keys / kVector, alloc(a, seq({read_p, terms})));
  }
  Expr column(const Expr& h) const { return h * Expr(p_.tx * kVector) + Expr(tx_) * Expr(kVector); }

  Expr inverse(const Expr& sum) const {
    const Expr one = make_float(DType::F32, 1);
    return one / (m_.zero_if_none ? select(eq(sum, zero(DType::F32)), one, sum) : sum);
  }

  // What a thread has of its rows, once their sums are joined over the threads of each.
  Stmt results() const {
    const Var i = make_var("i"), scale = make_var("scale", DType::F32);
    const FlatPoint row = row_of(i);
    const Buffer total = registers("total", {});
    auto if_row = [&](const Stmt& s) {
      return points(m_.rows) % p_.rows != 0 ? if_then(row.flat < Expr(points(m_.rows)), s) : s;
    };
    const Stmt stored = p_.splits > 1 ? store_partial(i, row, total)
                                      : let(scale, inverse(load(total, {})), store_result(i, row, Expr(scale)));
    const Stmt body = seq({store(total, {}, load(row_sum_, {i})), allreduce(total, Op::Add, p_.tx), if_row(stored)});
    return comment("the results of this thread", each(i, p_.tm, row.wrap(alloc(total, body))));
  }

  // `one` for every column of the thread: four neighbours at a time where `vector`.
  Stmt over_columns(bool vector,
                    const std::function<Stmt(const FlatPoint& n, const Expr& h, const Expr& e)>& one) const {
    const Var h = make_var("h"), e = make_var("e");
    const FlatPoint n(m_.values, vector ? column(h) : column(h) + Expr(e), "column");
    Stmt s = one(n, h, e);
    if (vector) s = loop(e, kVector, s, ForKind::Vector);
    if (points(m_.values) % p_.width != 0) s = if_then(n.flat < Expr(points(m_.values)), s);
    s = n.wrap(s);
    return each(h, across_, vector ? s : each(e, kVector, s));
  }

  Stmt store_result(const Expr& i, const FlatPoint& row, const Expr& scale) const {
    const bool vector = m_.values.back().extent.value % kVector == 0;
    return over_columns(vector, [&](const FlatPoint& n, const Expr& h, const Expr& e) {
      VarMap at = z_.at;
      at.insert(row.at.begin(), row.at.end());
      at.insert(n.at.begin(), n.at.end());
      if (vector) at[m_.values.back().var.get()] = at[m_.values.back().var.get()] + e;
      const Expr sum = load(acc_, {i, h, e}) * scale;
      return store(m_.c.out, {substitute(m_.out_index, at)}, with_sum(substitute(m_.result, at), m_.result_acc, sum));
    });
  }

  // partial[part][group][row], and there [column]
  Expr partial_row(const Expr& part, const Expr& group, const Expr& row) const {
    return (part * Expr(points(m_.batch)) + group) * Expr(points(m_.rows)) + row;
  }

  Stmt store_partial(const Expr& i, const FlatPoint& row, const Buffer& total) const {
    const Expr at = partial_row(Expr(part_), z_.flat, row.flat);
    const int64_t columns = points(m_.values);
    const bool vector = columns % kVector == 0;
    const Stmt sums = over_columns(vector, [&](const FlatPoint& n, const Expr& h, const Expr& e) {
      return store(partial_, {at * Expr(columns) + (vector ? n.flat + e : n.flat)}, load(acc_, {i, h, e}));
    });
    const Stmt scalars =
        seq({store(partial_max_, {at}, load(row_max_, {i})), store(partial_sum_, {at}, load(total, {}))});
    return seq({if_then(eq(Expr(tx_), 0), scalars), sums});
  }

  // A thread per result: the sums of the parts under the largest of their maxima.
  Stmt join_parts() const {
    auto flat = [](const std::vector<Axis>& axes) {
      Expr e = 0;
      for (const Axis& a : axes) e = e * Expr(a.extent) + Expr(a.var);
      return e;
    };
    const Buffer top = registers("top", {}), total = registers("total", {}), sum = registers("sum", {});
    const Var part = make_var("part"), shift = make_var("shift", DType::F32), rescale = make_var("rescale", DType::F32);
    const Expr at = partial_row(part, flat(m_.batch), flat(m_.rows));
    const Expr element = load(partial_, {at * Expr(points(m_.values)) + flat(m_.values)});
    const Stmt compare = store(top, {}, load(partial_max_, {at}), Op::Max);
    const Stmt add = let(rescale, exp(load(partial_max_, {at}) - Expr(shift)),
                         seq({store(total, {}, load(partial_sum_, {at}) * Expr(rescale), Op::Add),
                              store(sum, {}, element * Expr(rescale), Op::Add)}));
    const Stmt result =
        store(m_.c.out, {m_.out_index}, with_sum(m_.result, m_.result_acc, load(sum, {}) * inverse(load(total, {}))));
    const Stmt joined = let(shift, shift_of(load(top, {})), seq({loop(part, p_.splits, add, ForKind::Unroll), result}));
    const Stmt body = seq({store(top, {}, lowest(DType::F32)), store(total, {}, zero(DType::F32)),
                           store(sum, {}, zero(DType::F32)), loop(part, p_.splits, compare, ForKind::Unroll), joined});
    std::vector<Axis> axes = m_.batch;
    for (const auto* list : {&m_.rows, &m_.values}) axes.insert(axes.end(), list->begin(), list->end());
    return thread_per_point(axes, alloc(top, alloc(total, alloc(sum, body))));
  }

  const CudaAttention& m_;
  const CudaAttentionPlan p_;
  const int64_t tn_, across_;  // keys of a thread; its vectors of columns
  const Var block_ = make_var("block"), group_ = make_var("group"), part_ = make_var("part"),
            thread_ = make_var("thread"), tx_ = make_var("tx"), ty_ = make_var("ty");
  const FlatPoint z_;
  TileCopy q_, k_, v_;
  Buffer acc_, row_max_, row_sum_, s_, p_tile_, partial_, partial_max_, partial_sum_;
};

std::string describe(const CudaAttentionPlan& p) {
  std::string s = to_text(p.rows) + (p.rows == 1 ? " row" : " rows") + " a block, " + to_text(p.keys) +
                  " keys at a time: their scores stay in registers, under a running maximum and sum; " + to_text(p.tm) +
                  " x " + to_text(p.keys / p.tx) + " scores and " + to_text(p.tm) + " x " + to_text(p.width / p.tx) +
                  " results a thread";
  if (p.splits > 1) s += "; " + to_text(p.splits) + " blocks share the keys";
  return s;
}

}  // namespace

bool cuda_attention_pays(const CudaArgs& a) {
  const auto m = match_cuda_attention(a);
  return m && plan_cuda_attention(*m, a.gpu);
}

std::optional<Scheduled> cuda_attention(const CudaArgs& a) {
  const auto m = match_cuda_attention(a);
  const auto plan = m ? plan_cuda_attention(*m, a.gpu) : std::nullopt;
  if (!plan) return {};
  Scheduled s;
  s.body = FlashAttention(*m, *plan).build();
  bind_operands(s, m->c);
  s.family = "attention";
  s.words = describe(*plan);
  return s;
}

}  // namespace tc
