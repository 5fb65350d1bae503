// Attention on tensor cores: as attention.cc, but a warp has 16 rows, and multiplies tiles of 16 x 8 scores and results.
// Sums, maxima and exponentials are single precision.
//
//   s[j] += q_tile[16 rows][depth] k_tile[8 keys][depth]      for all pieces of the depth
//   softmax of s, where the lanes that share a row of tiles join what they have of it
//   acc[n] += s, rounded, times v_tile[keys][8 columns]       for all pieces of the keys: scores are sums that become
//                                                             a factor, without leaving their lanes
// Tiles are written whole; infer_fragment finds which lane has what.
#include "ir/loop/instruction.h"
#include "ir/loop/intrin.h"
#include "templates/cuda/attention_loops.h"

namespace tc {
namespace {

class TensorCoreAttention final : public AttentionLoops {
 public:
  TensorCoreAttention(const CudaAttention& m, const CudaAttentionPlan& p)
      : AttentionLoops(m, p), down_(p.keys / kTileColumns), across_(p.width / kTileColumns) {
    const MatrixInstruction* mma = matrix_instruction(p.type, p.type);
    check(mma != nullptr, "a matrix instruction for the type of the tiles");
    mma_ = *mma;
    acc_ = tiles("acc", {across_, kTileRows, kTileColumns}, DType::F32);
    s_ = tiles("s", {down_, kTileRows, kTileColumns}, DType::F32);
    row_max_ = tiles("row_max", {kTileRows, 1}, DType::F32);
    row_sum_ = tiles("row_sum", {kTileRows, 1}, DType::F32);
  }

 protected:
  // 16 bytes more than needed: rows that lanes read together fall into different banks.
  void lay_out_tiles(TileCopy& q, TileCopy& k, TileCopy& v) const override {
    auto shared = [&](const std::string& name, int64_t rows, int64_t columns) {
      const int64_t line = columns + 16 / info(p_.type).bytes;
      return make_buffer(name, p_.type, {Dim(1), Dim(rows), Dim(line)}, Scope::Shared);
    };
    q.shared = shared("q_tile", p_.rows, p_.depth);
    k.shared = shared("k_tile", p_.keys, p_.depth);
    v.shared = shared("v_tile", p_.keys, p_.width);
  }

  Stmt with_thread_indices(Stmt code) const override {
    return let(warp_row_, floor_div(Expr(thread_), kWarp) * Expr(kTileRows), code);
  }
  Stmt zeros(const Buffer& b) const override {
    const Var n = make_var("n");
    return each(n, b->shape[0].value, intrin("fill_fragment", {{b, {n}}}, {zero(DType::F32)}));
  }

  Stmt over_rows(const RowBody& body) const override {
    const Var r = make_var("r");
    return loop(r, kTileRows, body(r), ForKind::Fragment);
  }
  Exprs row_at(const Expr& r) const override { return {r, 0}; }
  Expr row_in_tile(const Expr& r) const override { return Expr(warp_row_) + r; }
  Stmt by_one(const Stmt& s) const override {
    return over_pairs([&](const Expr& first) { return if_then(eq(first, 0), s); });
  }
  Stmt over_scores(const Expr& r, const ScoreBody& body) const override {
    const Var j = make_var("j"), e = make_var("e");
    return each(j, down_, over_pairs([&](const Expr& first) {
                  const Expr column = first + Expr(e);
                  return each(e, 2, body({j, r, column}, Expr(j) * Expr(kTileColumns) + column));
                }));
  }
  Stmt over_runs(const Expr& r, const RunBody& body) const override {
    const Var n = make_var("n");
    return each(n, across_, over_pairs([&](const Expr& first) {
                  const auto at = [&](const Expr& e) { return Exprs{n, r, first + e}; };
                  return body({Expr(n) * Expr(kTileColumns) + first, 2, at});
                }));
  }
  Stmt keep_weight(const Expr&, const Exprs&, const Expr&) const override { return {}; }

  Stmt dot_products() const override {
    const Buffer a = tiles("q_d", {kTileRows, mma_.depth}, p_.type),
                 b = tiles("k_d", {down_, mma_.depth, kTileColumns}, p_.type);
    const Var d = make_var("d"), j = make_var("j");
    const Expr from = Expr(d) * Expr(mma_.depth), key = Expr(j) * Expr(kTileColumns);
    const Stmt read_q = intrin("load_fragment", {{a, {}}, {q_.shared, {0, Expr(warp_row_), from}}});
    const Stmt read_k = intrin("load_fragment_trans", {{b, {j}}, {k_.shared, {0, key, from}}});
    const Stmt step = seq({read_q, rounded(a, {}), each(j, down_, seq({read_k, rounded(b, {j})})),
                           each(j, down_, intrin(std::string(mma_.name), {{s_, {j}}, {a, {}}, {b, {j}}}))});
    return each(d, p_.depth / mma_.depth, alloc(a, alloc(b, step)));
  }

  Stmt add_values() const override {
    const Buffer a = tiles("p_k", {kTileRows, mma_.depth}, p_.type),
                 b = tiles("v_k", {mma_.depth, kTileColumns}, p_.type);
    const Var k = make_var("k"), n = make_var("n");
    std::vector<IntrinOperand> factor = {{a, {}}};  // and the scores that it is made of
    const int64_t pieces = mma_.depth / kTileColumns;
    for (int64_t i = 0; i < pieces; i++) factor.push_back({s_, {Expr(k) * Expr(pieces) + Expr(i)}});
    const Exprs at{0, Expr(k) * Expr(mma_.depth), Expr(n) * Expr(kTileColumns)};
    const Stmt multiply = seq({intrin("load_fragment", {{b, {}}, {v_.shared, at}}), rounded(b, {}),
                               intrin(std::string(mma_.name), {{acc_, {n}}, {a, {}}, {b, {}}})});
    const Stmt step = seq({intrin("join_fragments", factor), rounded(a, {}), each(n, across_, alloc(b, multiply))});
    return each(k, p_.keys / mma_.depth, alloc(a, step));
  }

 private:
  static Buffer tiles(const std::string& name, const Dims& dims, DType t) {
    return make_buffer(name, t, to_shape(dims), Scope::Fragment);
  }
  // The first of each two neighbouring columns.
  static Stmt over_pairs(const std::function<Stmt(const Expr& first)>& body) {
    const Var pair = make_var("pair");
    return loop(pair, kTileColumns / 2, body(Expr(pair) * Expr(2)), ForKind::Fragment);
  }
  // The tensor core would cut tf32 off; the narrow types are rounded before they are stored.
  Stmt rounded(const Buffer& b, const Exprs& at) const {
    return p_.type == DType::F32 ? intrin("round_fragment_tf32", {{b, at}}) : Stmt();
  }

  const int64_t down_, across_;  // tiles of a tile's keys, and of the columns
  MatrixInstruction mma_{};
  const Var warp_row_ = make_var("warp_row");
};

}  // namespace

std::unique_ptr<AttentionLoops> tensor_core_attention(const CudaAttention& m, const CudaAttentionPlan& plan) {
  return std::make_unique<TensorCoreAttention>(m, plan);
}

}  // namespace tc
