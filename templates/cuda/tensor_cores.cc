// Sums of products on tensor cores: as contraction.cc, but a warp has a part of the tile and multiplies pieces of 16 x
// 8 results, 32 bytes of the sum at a time: 8 elements of tf32, 16 of f16 and bf16. Sums are single precision.
//
//   for each 32 bytes of the step:
//     a[i] = 16 rows of p_tile, b[j] = 8 columns of q_tile         ldmatrix: a row of 16 bytes per lane
//     acc[i][j] += a[i] b[j]                                       mma
//
// Both tiles hold their rows along the sum, 16 bytes longer than needed, so that the rows that lanes read together fall
// into different banks.
#include "ir/loop/intrin.h"
#include "templates/cuda/block_gemm.h"

namespace tc {
namespace {

constexpr int64_t kPieceRows = 16, kPieceColumns = 8, kPieceBytes = 32;

class TensorCoreGemm final : public BlockGemm {
 public:
  TensorCoreGemm(const CudaContraction& m, const CudaPlan& plan)
      : BlockGemm(m, plan), bytes_(info(plan.type).bytes), down_(t_.tm / kPieceRows), across_(t_.tn / kPieceColumns) {
    acc_ = make_buffer("acc", DType::F32, {Dim(down_), Dim(across_), Dim(4)}, Scope::Register);
  }

 protected:
  void place_tile(TileCopy& c, const std::string& name) const override {
    c.type = plan_.type;
    c.k_inner = true;
    c.shared = make_buffer(name + "_tile", c.type, {Dim(plan_.members * plan_.stages), Dim(c.d_tile), Dim(t_.depth + 16 / bytes_)},
                           Scope::Shared);
  }

  Stmt with_places(Stmt code) const override {
    const Expr warp = floor_div(Expr(thread_), 32);
    const int64_t warps_down = t_.rows / t_.tm;
    return let(lane_, floor_mod(Expr(thread_), 32),
               let(warp_m_, floor_mod(warp, warps_down) * Expr(t_.tm),
                   let(warp_n_, floor_div(warp, warps_down) * Expr(t_.tn), code)));
  }

  Stmt clear() const override {
    const Var e = make_var("e");
    return over_pieces([&](const Expr& i, const Expr& j) {
      return loop(e, 4, store(acc_, {i, j, Expr(e)}, zero(DType::F32)), ForKind::Unroll);
    });
  }

  Stmt multiply(const Buffer& p, const Buffer& q, const Expr& stage) const override {
    const Buffer a = make_buffer(m_.p.name + "_k", DType::U32, {Dim(down_), Dim(4)}, Scope::Register),
                 b = make_buffer(m_.q.name + "_k", DType::U32, {Dim(across_), Dim(2)}, Scope::Register);
    const int64_t piece = kPieceBytes / bytes_, half = piece / 2;
    const Var k = make_var("k"), i = make_var("i"), j = make_var("j");
    const Expr from = Expr(k) * Expr(piece), lane(lane_);
    const Expr row = Expr(warp_m_) + Expr(i) * Expr(kPieceRows) + floor_mod(lane, 16);
    const Expr column = Expr(warp_n_) + Expr(j) * Expr(kPieceColumns) + floor_mod(lane, 8);
    const Stmt read_a = intrin("ldmatrix_x4", {{a, {i}}, {p, {stage, row, from + floor_div(lane, 16) * Expr(half)}}});
    const Stmt read_b =
        intrin("ldmatrix_x2", {{b, {j}}, {q, {stage, column, from + floor_mod(floor_div(lane, 8), 2) * Expr(half)}}});
    const std::string mma = plan_.type == DType::F16    ? "mma_f16_k16"
                            : plan_.type == DType::BF16 ? "mma_bf16_k16"
                                                        : "mma_tf32_k8";
    const Stmt products = over_pieces([&](const Expr& x, const Expr& y) {
      return intrin(mma, {{acc_, {x, y}}, {a, {x}}, {b, {y}}});
    });
    const bool rounds = plan_.type == DType::F32;  // to tf32; the others are rounded before they are stored
    const Stmt fill_a = rounds ? seq({read_a, intrin("round_tf32_x4", {{a, {i}}})}) : read_a;
    const Stmt fill_b = rounds ? seq({read_b, intrin("round_tf32_x2", {{b, {j}}})}) : read_b;
    const Stmt step =
        seq({loop(i, down_, fill_a, ForKind::Unroll), loop(j, across_, fill_b, ForKind::Unroll), products});
    return loop(k, t_.depth / piece, alloc(a, alloc(b, step)), ForKind::Unroll);
  }

  // A lane has rows g and g + 8 of a piece, g = lane / 4, and of these the columns 2 (lane % 4) and the next.
  Stmt over_runs(const RunBody& body) const override {
    const Var i = make_var("i"), h = make_var("h"), j = make_var("j");
    const Var lane_m = make_var("lane_m"), lane_n = make_var("lane_n");
    const Expr row_of_lane =
        Expr(block_m_) * Expr(t_.rows) + Expr(warp_m_) + Expr(i) * Expr(kPieceRows) + Expr(h) * Expr(8) + Expr(lane_m);
    const FlatPoint row(m_.m, row_of_lane, "row");
    const Expr column =
        Expr(block_n_) * Expr(t_.columns) + Expr(warp_n_) + Expr(j) * Expr(kPieceColumns) + Expr(lane_n);
    Stmt s = body({row, column, 2, [&](const Expr& e) { return load(acc_, {i, j, Expr(h) * Expr(2) + e}); }});
    s = loop(h, 2, if_row(row, loop(j, across_, s, ForKind::Unroll)), ForKind::Unroll);
    s = loop(i, down_, s, ForKind::Unroll);
    return let(lane_m, floor_div(Expr(lane_), 4), let(lane_n, floor_mod(Expr(lane_), 4) * Expr(2), s));
  }

 private:
  Stmt over_pieces(const std::function<Stmt(const Expr& i, const Expr& j)>& body) const {
    const Var i = make_var("i"), j = make_var("j");
    return loop(i, down_, loop(j, across_, body(i, j), ForKind::Unroll), ForKind::Unroll);
  }

  const int64_t bytes_, down_, across_;
  const Var lane_ = make_var("lane"), warp_m_ = make_var("warp_m"), warp_n_ = make_var("warp_n");
};

}  // namespace

std::unique_ptr<BlockGemm> tensor_core_gemm(const CudaContraction& m, const CudaPlan& plan) {
  return std::make_unique<TensorCoreGemm>(m, plan);
}

}  // namespace tc
