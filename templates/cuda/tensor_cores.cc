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
// On machines with wgmma four warps multiply together, straight from shared memory: a group has 64 rows, or 128, and all
// columns of the block's tile, 16 rows of every 64 in each warp.
//
//   for each 32 bytes of the step:
//     acc[i] += 64 rows of p_tile * all columns of q_tile          wgmma
//   the copies of a later step are issued; then the products of the step before are waited for
//
// There the rows of tiles are 128 bytes along the sum, and swizzled.
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

class TensorCoreGemm : public BlockGemm {
 public:
  TensorCoreGemm(const CudaContraction& m, const CudaPlan& plan)
      : BlockGemm(m, plan),
        warps_(t_.together / kWarp),
        down_(t_.tm / (kTileRows * warps_)),
        across_(t_.tn / kTileColumns) {
    const MatrixInstruction* mma = matrix_instruction(plan.p_type, plan.q_type);
    check(mma != nullptr, "a matrix instruction for the types of the tiles");
    mma_ = *mma;
    acc_ = make_buffer("acc", mma_.sum, {Dim(down_), Dim(across_), Dim(kTileRows), Dim(kTileColumns)}, Scope::Fragment);
  }

 protected:
  void lay_out_tile(TileCopy& c, const std::string& name) const override {
    const int64_t bytes = info(c.type).bytes, stages = plan_.k_groups * plan_.stages, pad = 16 / bytes;
    c.k_inner = lies_along_k(c);
    c.shared =
        make_buffer(name + "_tile", c.type,
                    {Dim(stages), Dim(c.k_inner ? c.d_tile : t_.depth), Dim((c.k_inner ? t_.depth : c.d_tile) + pad)},
                    Scope::Shared);
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
    const FlatPoint row(
        m_.m, Expr(block_m_) * Expr(t_.rows) + Expr(warp_m_) + Expr(i) * Expr(kTileRows * warps_) + Expr(r), "row");
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

 protected:
  const int64_t warps_, down_, across_;  // of a part; its pieces
  MatrixInstruction mma_{};
  const Var warp_m_ = make_var("warp_m"), warp_n_ = make_var("warp_n");
};

class WarpGroupGemm final : public TensorCoreGemm {
 public:
  using TensorCoreGemm::TensorCoreGemm;

 protected:
  void lay_out_tile(TileCopy& c, const std::string& name) const override {
    check(t_.depth * info(c.type).bytes == kSwizzledRow && c.d_tile % 8 == 0, "rows as products of groups read them");
    c.k_inner = c.swizzled = true;
    c.shared = make_buffer(name + "_tile", c.type, {Dim(plan_.stages), Dim(c.d_tile), Dim(t_.depth)}, Scope::Shared);
  }

  Stmt with_thread_indices(Stmt code) const override {
    const Expr warp = floor_div(Expr(thread_), kWarp), group = floor_div(Expr(thread_), t_.together);
    const Expr row = group * Expr(t_.tm) + floor_mod(warp, kGroupWarps) * Expr(kTileRows);
    return let(warp_m_, row, substitute(code, {{warp_n_.get(), Expr(0)}}));
  }

  Stmt multiply(const TileCopy& p, const TileCopy& q, const Expr& stage) const override {
    const std::string name = group_matrix_instruction(p.type, q.type, t_.tn);
    const Var k = make_var("k"), i = make_var("i");
    const Expr depth = Expr(k) * Expr(kGroupDepthBytes / info(p.type).bytes);
    const Expr row = Expr(warp_m_) + Expr(i) * Expr(kGroupRows);
    const Stmt product = intrin(name, {{acc_, {i, 0}}, {p.shared, {stage, row, depth}}, {q.shared, {stage, 0, depth}}});
    const Stmt all =
        loop(k, kSwizzledRow / kGroupDepthBytes, loop(i, down_, product, ForKind::Unroll), ForKind::Unroll);
    return seq({intrin("wgmma_begin", {}), all, intrin("wgmma_commit", {})});
  }
  bool begins_products() const override { return true; }
  Stmt wait_for_products() const override { return intrin("wgmma_wait", {}, {1}); }
  Stmt end_products() const override { return intrin("wgmma_end", {{acc_, {0, 0}}}, {Expr(down_ * across_)}); }
};

}  // namespace

std::unique_ptr<BlockGemm> tensor_core_gemm(const CudaContraction& m, const CudaPlan& plan) {
  if (plan.tile.in_groups()) return std::make_unique<WarpGroupGemm>(m, plan);
  return std::make_unique<TensorCoreGemm>(m, plan);
}

}  // namespace tc
