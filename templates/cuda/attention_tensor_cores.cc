// Attention on tensor cores: as attention.cc, but a warp has 16 rows, and multiplies pieces of 16 x 8 scores and
// results, 32 bytes of a row at a time: 8 elements of tf32, 16 of f16 and bf16. Sums, maxima and exponentials are
// single precision.
//
//   s[j] += q_tile[16 rows][32 bytes] k_tile[8 keys][32 bytes]          ldmatrix, mma
//   softmax of s, where four lanes share a row
//   acc[n] += s, rounded, times v_tile[keys][8 columns]                 the scores of a lane are where mma wants
//   factors
//
// A lane has rows g and g + 8 of its warp's, g = lane / 4, and of each piece the columns 2 t and 2 t + 1, t = lane % 4.
// As a factor, f16 wants just these as one word. tf32 wants elements t and t + 4: keys 2 t and 2 t + 1 take their
// places, in the scores as in v.
#include "ir/loop/intrin.h"
#include "templates/cuda/attention_loops.h"

namespace tc {
namespace {

constexpr int64_t kPieceRows = 16, kPieceColumns = 8, kPieceBytes = 32;

class TensorCoreAttention final : public AttentionLoops {
 public:
  TensorCoreAttention(const CudaAttention& m, const CudaAttentionPlan& p)
      : AttentionLoops(m, p),
        bytes_(info(p.type).bytes),
        piece_(kPieceBytes / bytes_),
        down_(p.keys / kPieceColumns),
        across_(p.width / kPieceColumns) {
    acc_ = registers("acc", {across_, 4});
    s_ = registers("s", {down_, 4});
    mma_ = p.type == DType::F16 ? "mma_f16_k16" : p.type == DType::BF16 ? "mma_bf16_k16" : "mma_tf32_k8";
  }

 protected:
  // 16 bytes more than needed: rows that lanes read together fall into different banks.
  void place_tiles(TileCopy& q, TileCopy& k, TileCopy& v) const override {
    auto shared = [&](const std::string& name, int64_t rows, int64_t columns) {
      return make_buffer(name, p_.type, {Dim(1), Dim(rows), Dim(columns + 16 / bytes_)}, Scope::Shared);
    };
    q.shared = shared("q_tile", p_.rows, p_.depth);
    k.shared = shared("k_tile", p_.keys, p_.depth);
    v.shared = shared("v_tile", p_.keys, p_.width);
  }

  Stmt with_places(Stmt code) const override {
    return let(lane_, floor_mod(Expr(thread_), 32),
               let(warp_row_, floor_div(Expr(thread_), 32) * Expr(kPieceRows), code));
  }
  Expr is_first() const override { return eq(floor_mod(Expr(lane_), 4), 0); }
  Expr row_in_tile(const Expr& i) const override { return Expr(warp_row_) + i * Expr(8) + floor_div(Expr(lane_), 4); }
  Expr pair() const { return floor_mod(Expr(lane_), 4) * Expr(2); }

  Stmt over_scores(const Expr& i, const ScoreBody& body) const override {
    const Var j = make_var("j"), e = make_var("e");
    const Expr key = Expr(j) * Expr(kPieceColumns) + pair() + Expr(e);
    return each(j, down_, each(e, 2, body({j, i * Expr(2) + Expr(e)}, key)));
  }
  Stmt over_runs(const Expr& i, const RunBody& body) const override {
    const Var n = make_var("n");
    const auto at = [&](const Expr& e) { return Exprs{n, i * Expr(2) + e}; };
    return each(n, across_, body({Expr(n) * Expr(kPieceColumns) + pair(), 2, at}));
  }
  Stmt keep_weight(const Expr&, const Exprs&, const Expr&) const override { return {}; }

  Stmt dot_products() const override {
    const Buffer a = registers("q_d", {4}, DType::U32), b = registers("k_d", {down_, 2}, DType::U32);
    const Var d = make_var("d"), j = make_var("j"), x = make_var("x");
    const Expr from = Expr(d) * Expr(piece_), half = piece_ / 2, lane(lane_);
    const Expr row = Expr(warp_row_) + floor_mod(lane, 16), key = Expr(j) * Expr(kPieceColumns) + floor_mod(lane, 8);
    const Stmt read_q = intrin("ldmatrix_x4", {{a, {}}, {q_.shared, {0, row, from + floor_div(lane, 16) * half}}});
    const Stmt read_k =
        intrin("ldmatrix_x2", {{b, {j}}, {k_.shared, {0, key, from + floor_mod(floor_div(lane, 8), 2) * half}}});
    const Stmt step = seq({rounded(read_q, a, {}, 4), each(j, down_, rounded(read_k, b, {j}, 2)),
                           each(j, down_, intrin(mma_, {{s_, {j}}, {a, {}}, {b, {j}}}))});
    return seq({each(j, down_, each(x, 4, store(s_, {j, x}, zero(DType::F32)))),
                each(d, p_.depth / piece_, alloc(a, alloc(b, step)))});
  }

  Stmt add_values() const override {
    const Buffer a = registers("p_k", {4}, DType::U32), b = registers("v_k", {2}, DType::U32);
    const Var k = make_var("k"), n = make_var("n");
    const Expr first = Expr(k) * Expr(piece_), column = Expr(n) * Expr(kPieceColumns);
    const bool words = bytes_ == 4;
    const Stmt multiply = seq({words ? read_pair(b, first, column) : read_transposed(b, first, column),
                               intrin(mma_, {{acc_, {n}}, {a, {}}, {b, {}}})});
    const Stmt step =
        seq({words ? weights_as_words(a, k) : weights_as_pairs(a, k), each(n, across_, alloc(b, multiply))});
    return each(k, p_.keys / piece_, alloc(a, step));
  }

 private:
  // The tensor core would cut tf32 off; the narrow types are rounded before they are stored.
  Stmt rounded(const Stmt& read, const Buffer& b, const Exprs& at, int64_t n) const {
    if (p_.type != DType::F32) return read;
    return seq({read, intrin(n == 4 ? "round_tf32_x4" : "round_tf32_x2", {{b, at}})});
  }

  // Word w of a factor: row g or g + 8, of the first or the second piece of scores.
  Stmt weights_as_pairs(const Buffer& a, const Expr& k) const {
    Stmts list;
    for (int64_t w = 0; w < 4; w++) {
      auto bits = [&](int64_t e) {
        const Expr score = load(s_, {k * Expr(2) + Expr(w / 2), Expr(w % 2 * 2 + e)});
        return cast(DType::U32, bitcast(DType::U16, cast(p_.type, score)));
      };
      const Expr high = apply(Op::Shl, {bits(1), make_int(DType::U32, 16)});
      list.push_back(store(a, {Expr(w)}, apply(Op::BitOr, {bits(0), high})));
    }
    return seq(std::move(list));
  }
  Stmt read_transposed(const Buffer& b, const Expr& first, const Expr& column) const {
    return intrin("ldmatrix_x2_trans", {{b, {}}, {v_.shared, {0, first + floor_mod(Expr(lane_), 16), column}}});
  }

  Stmt weights_as_words(const Buffer& a, const Expr& k) const {
    Stmts list;
    for (int64_t w = 0; w < 4; w++)  // row g + 8 (w % 2), key 2 t + w / 2
      list.push_back(store(a, {Expr(w)}, bitcast(DType::U32, load(s_, {k, Expr(w % 2 * 2 + w / 2)}))));
    list.push_back(intrin("round_tf32_x4", {{a, {}}}));
    return seq(std::move(list));
  }
  Stmt read_pair(const Buffer& b, const Expr& first, const Expr& column) const {
    Stmts list;
    for (int64_t w = 0; w < 2; w++) {
      const Exprs at{0, first + pair() + Expr(w), column + floor_div(Expr(lane_), 4)};
      list.push_back(store(b, {Expr(w)}, bitcast(DType::U32, load(v_.shared, at))));
    }
    list.push_back(intrin("round_tf32_x2", {{b, {}}}));
    return seq(std::move(list));
  }

  const int64_t bytes_, piece_, down_, across_;  // pieces of a tile's keys, and of the columns
  std::string mma_;
  const Var lane_ = make_var("lane"), warp_row_ = make_var("warp_row");
};

}  // namespace

std::unique_ptr<AttentionLoops> tensor_core_attention(const CudaAttention& m, const CudaAttentionPlan& plan) {
  return std::make_unique<TensorCoreAttention>(m, plan);
}

}  // namespace tc
