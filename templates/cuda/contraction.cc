// Sums of products on CUDA cores: a block per tile of the result, its sum in steps through shared memory.
//
//   for each step of the sum:            copies of step s are on their way while step s - 1 is multiplied
//     wait, barrier, copy the next tiles
//     for k in the step:
//       acc[i][j] += p_tile[k][row] * q_tile[k][column]     four neighbours a read
//   y[row][column] = epilogue(acc)
//
// Where the tiles of the result are too few for the multiprocessors, the threads of a block form groups that share a
// sum, each with tiles of its own; the first adds up what all of them have. Beyond that, blocks share a sum: each
// stores what it has to scratch memory, and a second launch adds it up, in order, and applies the epilogue.
#include "ir/loop/intrin.h"
#include "support/text.h"
#include "templates/cuda/block_gemm.h"
#include "templates/cuda/zero_points.h"

namespace tc {
namespace {

constexpr int64_t kVector = 4;  // numbers of 16 bytes

class SimtGemm final : public BlockGemm {
 public:
  SimtGemm(const CudaContraction& m, const CudaPlan& plan) : BlockGemm(m, plan) {
    acc_ = make_buffer("acc", m.sum, {Dim(t_.tm), Dim(t_.tn)}, Scope::Register);
  }

 protected:
  // Rows that a copy transposes are padded, so that its words fall into different banks.
  void lay_out_tile(TileCopy& c, const std::string& name) const override {
    const int64_t pad = copy_width(c) > 1 ? 0 : kVector;
    c.shared = make_buffer(name + "_tile", c.type,
                           {Dim(plan_.k_groups * plan_.stages), Dim(t_.depth), Dim(c.d_tile + pad)}, Scope::Shared);
  }

  Stmt with_thread_indices(Stmt code) const override {
    const int64_t across = t_.columns / t_.tn;
    return let(tx_, floor_mod(Expr(thread_), across), let(ty_, floor_div(Expr(thread_), across), code));
  }

  Stmt clear() const override {
    return over_acc([&](const Expr& i, const Expr& j) { return store(acc_, {i, j}, zero(m_.sum)); });
  }

  // Reads four neighbours at a time; a thread's groups of four lie side by side with those of its neighbours.
  Stmt multiply(const TileCopy& p, const TileCopy& q, const Expr& stage) const override {
    const Buffer a = make_buffer(m_.p.name + "_k", p.type, neighbours(t_.tm), Scope::Register),
                 b = make_buffer(m_.q.name + "_k", q.type, neighbours(t_.tn), Scope::Register);
    const Var k = make_var("k"), h = make_var("h");
    auto read = [&](const Buffer& to, const Buffer& from, int64_t part, int64_t whole, const Expr& t) {
      if (part == kVector) return intrin("load4", {{to, {}}, {from, {stage, k, t * Expr(kVector)}}});
      const Expr position = Expr(h) * Expr(whole / (part / kVector)) + t * Expr(kVector);
      return loop(h, part / kVector, intrin("load4", {{to, {h}}, {from, {stage, k, position}}}), ForKind::Unroll);
    };
    auto element = [](const Buffer& f, const Expr& i) {
      return f->shape.size() == 1 ? load(f, {i}) : load(f, {floor_div(i, kVector), floor_mod(i, kVector)});
    };
    const Stmt products = over_acc([&](const Expr& i, const Expr& j) {
      return store(acc_, {i, j}, element(a, i) * element(b, j), Op::Add);
    });
    const Stmt step =
        seq({read(a, p.shared, t_.tm, t_.rows, ty_), read(b, q.shared, t_.tn, t_.columns, tx_), products});
    return loop(k, t_.depth, alloc(a, alloc(b, step)), ForKind::Unroll);
  }

  Stmt over_sums(const SumBody& body) const override {
    return over_acc([&](const Expr& i, const Expr& j) { return body({i, j}, {i * Expr(t_.tn) + j, Expr(thread_)}); });
  }
  Shape sums_shape() const override { return {Dim(t_.tm * t_.tn), Dim(t_.threads())}; }

  Stmt over_runs(const RunBody& body) const override {
    const Var i = make_var("i"), h = make_var("h");
    const FlatPoint row(m_.m, Expr(block_m_) * Expr(t_.rows) + position(i, t_.tm, t_.rows, ty_), "row");
    const Expr column =
        Expr(block_n_) * Expr(t_.columns) + Expr(h) * Expr(t_.columns / (t_.tn / kVector)) + Expr(tx_) * Expr(kVector);
    const Stmt s = body({row, column, kVector, [&](const Expr& j) {
                           return load(acc_, {i, Expr(h) * Expr(kVector) + j});
                         }});
    return loop(i, t_.tm, if_row(row, loop(h, t_.tn / kVector, s, ForKind::Unroll)), ForKind::Unroll);
  }

 private:
  Stmt over_acc(const std::function<Stmt(const Expr& i, const Expr& j)>& body) const {
    const Var i = make_var("i"), j = make_var("j");
    return loop(i, t_.tm, loop(j, t_.tn, body(i, j), ForKind::Unroll), ForKind::Unroll);
  }
  static Shape neighbours(int64_t n) { return n == kVector ? Shape{Dim(n)} : Shape{Dim(n / kVector), Dim(kVector)}; }

  // The position of element i of a thread in the tile.
  static Expr position(const Expr& i, int64_t part, int64_t whole, const Expr& t) {
    if (part == kVector) return t * Expr(kVector) + i;
    return floor_div(i, kVector) * Expr(whole / (part / kVector)) + t * Expr(kVector) + floor_mod(i, kVector);
  }

  const Var tx_ = make_var("tx"), ty_ = make_var("ty");
};

std::string describe(const CudaContraction& m, const CudaPlan& p) {
  const CudaTile& t = p.tile;
  std::string s = to_text(t.rows) + " x " + to_text(t.columns) + " results a block, " + to_text(t.tm) + " x " +
                  to_text(t.tn) +
                  (t.in_groups()         ? " a group of four warps, on tensor cores"
                   : t.on_tensor_cores() ? " a warp, on tensor cores"
                                         : " a thread") +
                  (p.products > 1 ? ", three products of tf32 for one" : "") + "; the sum in steps of " +
                  to_text(t.depth) + " through shared memory, " + to_text(p.stages) + " at a time";
  if (p.k_groups > 1) s += "; " + to_text(p.k_groups) + " groups of threads share a sum";
  if (p.splits > 1) s += "; " + to_text(p.splits) + " blocks share a sum";
  if (m.p.packed || m.q.packed) s += "; weights in tiles";
  return s;
}

}  // namespace

std::optional<Scheduled> cuda_contraction(const CudaArgs& a) {
  auto m = match_cuda_contraction(a);
  if (!m) return {};
  if (const auto bytes = factors_of_bytes(*m)) m = bytes;
  const CudaPlan plan = plan_cuda_contraction(*m, a.gpu, a.options, a.plan);
  if (!grid_kinds(ceil_div(m->columns(), plan.tile.columns), ceil_div(m->rows(), plan.tile.rows),
                  m->batches() * plan.splits))
    return {};
  Scheduled s;
  subtract_zeros(*m, s);
  const auto gemm = plan.tile.on_tensor_cores() ? tensor_core_gemm(*m, plan) : std::make_unique<SimtGemm>(*m, plan);
  s.body = seq({border_launch(m->c), gemm->build(s)});
  bind_operands(s, m->c);
  s.family = "matmul";
  s.description = describe(*m, plan);
  return s;
}

}  // namespace tc
