// Sums of products on tensor cores: as contraction.cc, but a warp has a part of the tile and multiplies pieces of 16 x 8
// results, 32 bytes of the sum at a time: 8 elements of tf32, 16 of f16 and bf16, 32 of integers of 8 bits. Sums are
// single precision, or of 32 bits.
//
//   for each 32 bytes of the step:
//     a[i] = 16 rows of p_tile, b[j] = 8 columns of q_tile
//     acc[i][j] += a[i] b[j]                                       mma
//   for each element of acc: y[row][column] = epilogue(acc)
//
// Where the plan says so (contraction_plan.cc), a factor in single precision is taken as the sum of two numbers of
// tf32, and three products make up one: acc += a_rest b + a b_rest + a b, which is single precision but for 2^-21 of a
// term.
//
// Pieces are whole here; infer_fragment finds which lane has which of their elements. Tiles hold their rows along the
// sum, and elements of two bytes also along rows or columns where only so 16 bytes can be copied at once. Their rows
// are 16 bytes longer than needed, so that those that lanes read together fall into different banks.
#include "ir/loop/instruction.h"
#include "ir/loop/intrin.h"
#include "support/error.h"
#include "templates/cuda/block_gemm.h"

namespace tc {
namespace {

constexpr int64_t kPieceElements = kTileRows * kTileColumns;

class TensorCoreGemm final : public BlockGemm {
 public:
  TensorCoreGemm(const CudaContraction& m, const CudaPlan& plan)
      : BlockGemm(m, plan), down_(t_.tm / kTileRows), across_(t_.tn / kTileColumns) {
    const MatrixInstruction* mma = matrix_instruction(plan.p_type, plan.q_type);
    check(mma != nullptr, "a matrix instruction for the types of the tiles");
    mma_ = *mma;
    acc_ = make_buffer("acc", mma_.sum, {Dim(down_), Dim(across_), Dim(kTileRows), Dim(kTileColumns)}, Scope::Fragment);
  }

 protected:
  void lay_out_tile(TileCopy& c, const std::string& name) const override {
    const int64_t bytes = info(c.type).bytes, stages = plan_.k_groups * plan_.stages, pad = 16 / bytes;
    auto lies = [&](bool along_k) {
      c.k_inner = along_k;
      c.shared = make_buffer(
          name + "_tile", c.type,
          {Dim(stages), Dim(along_k ? c.d_tile : t_.depth), Dim((along_k ? t_.depth : c.d_tile) + pad)}, Scope::Shared);
    };
    lies(true);
    if (bytes != 2 || c.is_packed || copy_width(c) > 1) return;
    lies(false);
    if (copy_width(c) == 1) lies(true);
  }

  Stmt with_thread_indices(Stmt code) const override {
    const int64_t warps_down = t_.rows / t_.tm;
    const Expr warp = floor_div(Expr(thread_), kWarp);
    return let(warp_m_, floor_mod(warp, warps_down) * Expr(t_.tm),
               let(warp_n_, floor_div(warp, warps_down) * Expr(t_.tn), code));
  }

  Stmt clear() const override {
    return over_pieces([&](const Expr& i, const Expr& j) {
      return intrin("fill_fragment", {{acc_, {i, j}}}, {zero(mma_.sum)});
    });
  }

  Stmt multiply(const TileCopy& p, const TileCopy& q, const Expr& stage) const override {
    const Buffer a = make_buffer(m_.p.name + "_k", mma_.left, {Dim(down_), Dim(kTileRows), Dim(mma_.depth)},
                                 Scope::Fragment),
                 b = make_buffer(m_.q.name + "_k", mma_.right, {Dim(across_), Dim(mma_.depth), Dim(kTileColumns)},
                                 Scope::Fragment);
    const Buffer a_rest = make_buffer(m_.p.name + "_rest", mma_.left, a->shape, Scope::Fragment),
                 b_rest = make_buffer(m_.q.name + "_rest", mma_.right, b->shape, Scope::Fragment);
    const bool parts = plan_.products > 1;
    const Var k = make_var("k"), i = make_var("i"), j = make_var("j");
    const Expr depth = Expr(k) * Expr(mma_.depth);
    auto read = [&](const Buffer& to, const Buffer& rest, const Expr& piece, const TileCopy& from, const Expr& position,
                    bool is_left) {
      const Exprs at = from.k_inner ? Exprs{stage, position, depth} : Exprs{stage, depth, position};
      const std::string name = from.k_inner == is_left ? "load_fragment" : "load_fragment_trans";
      Stmts list = {intrin(name, {{to, {piece}}, {from.shared, at}})};
      if (parts)
        list.push_back(intrin("split_fragment_tf32", {{rest, {piece}}, {to, {piece}}}));
      else if (to->dtype == DType::F32)
        list.push_back(intrin("round_fragment_tf32", {{to, {piece}}}));
      return seq(std::move(list));
    };
    const Stmt fill_a = read(a, a_rest, i, p, Expr(warp_m_) + Expr(i) * Expr(kTileRows), true);
    const Stmt fill_b = read(b, b_rest, j, q, Expr(warp_n_) + Expr(j) * Expr(kTileColumns), false);
    const Stmt products = over_pieces([&](const Expr& x, const Expr& y) {
      auto product = [&](const Buffer& left, const Buffer& right) {
        return intrin(std::string(mma_.name), {{acc_, {x, y}}, {left, {x}}, {right, {y}}});
      };
      return parts ? seq({product(a_rest, b), product(a, b_rest), product(a, b)}) : product(a, b);
    });
    const Stmt step =
        seq({loop(i, down_, fill_a, ForKind::Unroll), loop(j, across_, fill_b, ForKind::Unroll), products});
    const Stmt own = parts ? alloc(a_rest, alloc(b_rest, step)) : step;
    return loop(k, t_.depth / mma_.depth, alloc(a, alloc(b, own)), ForKind::Unroll);
  }

  // Two neighbouring results at a time.
  Stmt over_runs(const RunBody& body) const override {
    const Var i = make_var("i"), j = make_var("j"), r = make_var("r"), pair = make_var("pair");
    const FlatPoint row(m_.m, Expr(block_m_) * Expr(t_.rows) + Expr(warp_m_) + Expr(i) * Expr(kTileRows) + Expr(r),
                        "row");
    const Expr first = Expr(pair) * Expr(2);
    const Expr column = Expr(block_n_) * Expr(t_.columns) + Expr(warp_n_) + Expr(j) * Expr(kTileColumns) + first;
    Stmt s = body({row, column, 2, [&](const Expr& e) { return load(acc_, {i, j, r, first + e}); }});
    s = loop(j, across_, loop(pair, kTileColumns / 2, s, ForKind::Fragment), ForKind::Unroll);
    return loop(i, down_, loop(r, kTileRows, if_row(row, s), ForKind::Fragment), ForKind::Unroll);
  }

  Stmt over_sums(const SumBody& body) const override {
    const Var i = make_var("i"), j = make_var("j"), r = make_var("r"), pair = make_var("pair"), e = make_var("e");
    const Expr warp = floor_div(Expr(thread_), kWarp), column = Expr(pair) * Expr(2) + Expr(e);
    const Expr piece = (warp * Expr(down_) + Expr(i)) * Expr(across_) + Expr(j);
    const Expr position = piece * Expr(kPieceElements) + Expr(r) * Expr(kTileColumns) + column;
    Stmt s = loop(e, 2, body({i, j, r, column}, {position}), ForKind::Unroll);
    s = loop(j, across_, loop(pair, kTileColumns / 2, s, ForKind::Fragment), ForKind::Unroll);
    return loop(i, down_, loop(r, kTileRows, s, ForKind::Fragment), ForKind::Unroll);
  }

 private:
  Stmt over_pieces(const std::function<Stmt(const Expr& i, const Expr& j)>& body) const {
    const Var i = make_var("i"), j = make_var("j");
    return loop(i, down_, loop(j, across_, body(i, j), ForKind::Unroll), ForKind::Unroll);
  }

  const int64_t down_, across_;
  MatrixInstruction mma_{};
  const Var warp_m_ = make_var("warp_m"), warp_n_ = make_var("warp_n");
};

}  // namespace

std::unique_ptr<BlockGemm> tensor_core_gemm(const CudaContraction& m, const CudaPlan& plan) {
  return std::make_unique<TensorCoreGemm>(m, plan);
}

}  // namespace tc
