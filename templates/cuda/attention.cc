// Attention in one pass over the keys (FlashAttention-2, arXiv 2307.08691, with the running softmax of Milakov and
// Gimelshein, arXiv 1805.02867): the matrix of scores never exists.
//
//   q_tile = the block's rows of q                       in shared memory
//   for tiles of keys:                                   v_tile arrives during the scores, the next k_tile during sums
//     s[i][j] = f(q_tile[row i] . k_tile[key j])
//     top = max(row_max[i], s[i][..])                    over the threads of the row, by shuffles
//     rescale = exp(row_max[i] - top)                    of what was summed under the old maximum
//     p_tile[row i][key j] = exp(s[i][j] - top)
//     row_sum[i] = row_sum[i] * rescale + sum(p_tile[row i])
//     acc[i][e] = acc[i][e] * rescale + p_tile[row i] . v_tile[..][e]
//   y[row i][e] = g(acc[i][e] / row_sum[i])
//
// Where rows are few, blocks share the keys: each stores its sums and its maximum, and a second launch joins them.
#include "ir/loop/intrin.h"
#include "support/text.h"
#include "templates/cuda/attention_loops.h"
#include "templates/cuda/schedule_cuda.h"
#include "templates/join_stages.h"
#include "templates/result_tile.h"

namespace tc {
namespace {

constexpr int64_t kVector = 4;  // floats of 16 bytes

class SimtAttention final : public AttentionLoops {
 public:
  SimtAttention(const CudaAttention& m, const CudaAttentionPlan& p)
      : AttentionLoops(m, p), tn_(p.keys / p.tx), across_(p.width / (p.tx * kVector)) {
    acc_ = registers("acc", {p.tm, across_, kVector});
    s_ = registers("s", {p.tm, tn_});
    row_max_ = registers("row_max", {p.tm});
    row_sum_ = registers("row_sum", {p.tm});
    p_tile_ = make_buffer("p_tile", DType::F32, {Dim(p.rows), Dim(p.keys + kVector)}, Scope::Shared);
    exchange_ = {p_tile_};
  }

 protected:
  // Rows along the sum take an odd number of 16 bytes, so that the rows that neighbouring threads read begin in
  // different banks.
  void lay_out_tiles(TileCopy& q, TileCopy& k, TileCopy& v) const override {
    const int64_t line = p_.depth / kVector % 2 == 0 ? p_.depth + kVector : p_.depth;
    auto shared = [](const std::string& name, int64_t rows, int64_t columns) {
      return make_buffer(name, DType::F32, {Dim(1), Dim(rows), Dim(columns)}, Scope::Shared);
    };
    q.shared = shared("q_tile", p_.rows, line);
    k.shared = shared("k_tile", p_.keys, line);
    v.shared = shared("v_tile", p_.keys, p_.width);
  }

  Stmt with_thread_indices(Stmt code) const override {
    return let(tx_, floor_mod(Expr(thread_), p_.tx), let(ty_, floor_div(Expr(thread_), p_.tx), code));
  }
  Stmt by_one(const Stmt& s) const override { return if_then(eq(Expr(tx_), 0), s); }
  Stmt zeros(const Buffer& b) const override {
    const Dims dims = static_dims(b->shape);
    std::vector<Var> at;
    for (size_t d = 0; d < dims.size(); d++) at.push_back(make_var(std::string(1, char('i' + d))));
    Stmt s = store(b, Exprs(at.begin(), at.end()), zero(DType::F32));
    for (size_t d = dims.size(); d-- > 0;) s = each(at[d], dims[d], s);
    return s;
  }
  Stmt over_rows(const RowBody& body) const override {
    const Var i = make_var("i");
    return each(i, p_.tm, body(i));
  }
  Exprs row_at(const Expr& i) const override { return {i}; }
  Expr row_in_tile(const Expr& i) const override { return i * Expr(p_.rows / p_.tm) + Expr(ty_); }

  Stmt over_scores(const Expr& i, const ScoreBody& body) const override {
    const Var j = make_var("j");
    return each(j, tn_, body({i, j}, key_in_tile(j)));
  }
  Stmt over_runs(const Expr& i, const RunBody& body) const override {
    const Var h = make_var("h");
    return each(h, across_, body({column(h), kVector, [&](const Expr& e) { return Exprs{i, h, e}; }}));
  }
  Stmt keep_weight(const Expr& i, const Exprs& at, const Expr& key) const override {
    return store(p_tile_, {row_in_tile(i), key}, load(s_, at));
  }

  // s[i][j] += q_tile[row i] . k_tile[key j]
  Stmt dot_products() const override {
    const Buffer a = registers("q_d", {p_.tm, kVector}), b = registers("k_d", {tn_, kVector});
    const Var d = make_var("d"), i = make_var("i"), j = make_var("j"), e = make_var("e");
    const Expr at = Expr(d) * Expr(kVector);
    const Stmt read = seq({each(i, p_.tm, intrin("load4", {{a, {i}}, {q_.shared, {0, row_in_tile(i), at}}})),
                           each(j, tn_, intrin("load4", {{b, {j}}, {k_.shared, {0, key_in_tile(j), at}}}))});
    const Stmt product = each(e, kVector, store(s_, {i, j}, load(a, {i, e}) * load(b, {j, e}), Op::Add));
    const Stmt products = each(i, p_.tm, each(j, tn_, product));
    return loop(d, p_.depth / kVector, alloc(a, alloc(b, seq({read, products}))));
  }

  // acc[i][e] += p_tile[row i] . v_tile[..][e]
  Stmt add_values() const override {
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

 private:
  Expr column(const Expr& h) const { return h * Expr(p_.tx * kVector) + Expr(tx_) * Expr(kVector); }
  Expr key_in_tile(const Expr& j) const { return j * Expr(p_.tx) + Expr(tx_); }

  const int64_t tn_, across_;  // keys of a thread; its vectors of columns
  const Var tx_ = make_var("tx"), ty_ = make_var("ty");
  Buffer p_tile_;
};

std::string describe(const CudaAttentionPlan& p, bool skips_keys) {
  auto part = [&](int64_t n) { return p.warp ? "16 x " + to_text(n) : to_text(p.tm) + " x " + to_text(n / p.tx); };
  std::string s =
      to_text(p.rows) + (p.rows == 1 ? " row" : " rows") + " a block; one pass over the keys, " + to_text(p.keys) +
      " at a time, under the largest score so far: where that grows, earlier sums are rescaled; " + part(p.keys) +
      " scores and " + part(p.width) + " results in registers of a " + (p.warp ? "warp, on tensor cores" : "thread");
  if (skips_keys) s += "; tiles of keys that the mask forbids to all rows of the block are skipped";
  if (p.splits > 1) s += "; " + to_text(p.splits) + " blocks share the keys";
  return s;
}

// The operator Attention with a cache: what becomes the new cache is stored first, and read from there.
std::optional<Scheduled> behind_caches(const CudaArgs& a) {
  size_t first = 0;
  while (first < a.fn.stages.size() && a.fn.stages[first].kind == Stage::Kind::Compute && a.fn.stages[first].scan < 0)
    first++;
  const TensorFn tail = stages_of(a.fn, first, a.fn.stages.size());
  if (first == 0 || tail.stages.empty()) return {};
  const std::vector<bool> unknown(tail.inputs.size(), false);
  for (const Buffer& b : a.fn.outputs)
    if (b != tail.outputs[0] && producer(tail, b)) return {};
  if (!cuda_attention_pays({tail, nullptr, unknown, a.gpu, a.options})) return {};
  auto part = [&](const TensorFn& fn, const std::vector<bool>& constant) {
    return schedule_cuda(fn, constant, a.gpu, a.options);
  };
  return join_stages(a.fn, a.constant_input, part, false, first);
}

}  // namespace

std::unique_ptr<AttentionLoops> simt_attention(const CudaAttention& m, const CudaAttentionPlan& plan) {
  return std::make_unique<SimtAttention>(m, plan);
}

bool cuda_attention_pays(const CudaArgs& a) {
  const auto m = match_cuda_attention(a);
  return m && plan_cuda_attention(*m, a.gpu, a.options, {});
}

std::optional<Scheduled> cuda_attention(const CudaArgs& a) {
  if (a.fn.outputs.size() > 1) return behind_caches(a);
  const auto m = match_cuda_attention(a);
  const auto plan = m ? plan_cuda_attention(*m, a.gpu, a.options, a.plan) : std::nullopt;
  if (!plan) return {};
  Scheduled s;
  const auto loops = plan->warp ? tensor_core_attention(*m, *plan) : simt_attention(*m, *plan);
  s.body = loops->build();
  bind_operands(s, m->c);
  s.family = "attention";
  s.description = describe(*plan, loops->skips_keys());
  return s;
}

}  // namespace tc
