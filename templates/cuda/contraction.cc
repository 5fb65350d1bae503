// Sums of products on CUDA cores: a block per tile of the result, its sum in steps through shared memory.
//
//   for each step of the sum:            copies of step s are on their way while step s - 1 is multiplied
//     wait, barrier, copy the next tiles
//     for k in the step:
//       acc[i][j] += p_tile[k][row] * q_tile[k][column]     four neighbours a read
//   y[row][column] = epilogue(acc)
//
// Where the tiles of the result are too few for the multiprocessors, blocks share a sum: each stores what it has to
// scratch memory, and a second launch adds it up, in order, and applies the epilogue.
#include "templates/cuda/contraction.h"

#include "ir/loop/build.h"
#include "ir/loop/intrin.h"
#include "support/text.h"

namespace tc {
namespace {

constexpr int64_t kVector = 4;  // floats of 16 bytes
constexpr int64_t kStages = 2;

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

class SimtGemm {
 public:
  SimtGemm(const CudaContraction& m, const CudaPlan& plan) : m_(m), t_(plan.tile), plan_(plan) {}

  Stmt build(Scheduled& s) {
    const int64_t steps = plan_.splits * plan_.steps;
    z_ = std::make_unique<FlatPoint>(m_.batch, plan_.splits > 1 ? floor_div(Expr(group_), plan_.splits) : Expr(group_),
                                     "batch");
    const TileCopy p = tile_of(m_.p, m_.m, "row", block_m_, t_.rows, ceil_div(m_.rows(), t_.rows), steps, s);
    const TileCopy q =
        tile_of(m_.q, m_.n, "column", block_n_, t_.columns, ceil_div(m_.columns(), t_.columns), steps, s);
    Stmt thread_code = alloc(acc_, seq({clear(), sum(p, q), plan_.splits > 1 ? store_partial() : store_result()}));
    thread_code = z_->wrap(thread_code);
    Stmt launch =
        loop(thread_, t_.threads(),
             let(tx_, floor_mod(Expr(thread_), across()), let(ty_, floor_div(Expr(thread_), across()), thread_code)),
             ForKind::ThreadX);
    launch = alloc(p.shared, alloc(q.shared, launch));
    launch = loop(block_m_, ceil_div(m_.rows(), t_.rows), launch, ForKind::BlockY);
    launch = loop(block_n_, ceil_div(m_.columns(), t_.columns), launch, ForKind::BlockX);
    launch = loop(group_, m_.batches() * plan_.splits, launch, ForKind::BlockZ);
    if (plan_.splits == 1) return launch;
    return alloc(partial_, seq({comment("each of " + to_text(plan_.splits) + " parts of the sum", launch),
                                comment("the parts added up, in order", add_parts())}));
  }

 private:
  int64_t across() const { return t_.columns / t_.tn; }
  Expr split() const { return floor_mod(Expr(group_), plan_.splits); }

  TileCopy tile_of(const Factor& f, const std::vector<Axis>& axes, const std::string& place, const Var& block,
                   int64_t size, int64_t tiles, int64_t steps, Scheduled& s) {
    TileCopy c;
    c.d = axes;
    c.d_name = place;
    c.d_begin = Expr(block) * Expr(size);
    c.d_tile = size;
    if (f.packed) {
      c.packed = pack_factor(m_.c, f, size, t_.depth, steps, s);
      Expr matrix = 0;
      for (const Axis& a : f.batch) matrix = matrix * Expr(a.extent) + z_->at.at(a.var.get());
      c.packed_tile = matrix * Expr(tiles) + Expr(block);
    } else {
      c.value = f.value;
    }
    c.k = m_.k;
    c.batch = z_->at;
    c.k_tile = t_.depth;
    c.k_steps = steps;
    c.thread = thread_;
    c.threads = t_.threads();
    // Rows that a copy turns by 90 degrees are padded, so that its words fall into different banks.
    const int64_t pad = copies_vectors(c) ? 0 : kVector;
    c.shared =
        make_buffer(f.name + "_tile", DType::F32, {Dim(kStages), Dim(t_.depth), Dim(c.d_tile + pad)}, Scope::Shared);
    return c;
  }

  Stmt tile_loops(const std::function<Stmt(const Expr& i, const Expr& j)>& body) const {
    const Var i = make_var("i"), j = make_var("j");
    return loop(i, t_.tm, loop(j, t_.tn, body(i, j), ForKind::Unroll), ForKind::Unroll);
  }
  Stmt clear() const {
    return tile_loops([&](const Expr& i, const Expr& j) { return store(acc_, {i, j}, zero(DType::F32)); });
  }

  // One turn more than there are steps: in each, copies of a step are issued and the step before it is multiplied.
  Stmt sum(const TileCopy& p, const TileCopy& q) {
    const Var step = make_var("step"), stage = make_var("stage");
    Expr first = Expr(step);
    if (plan_.splits > 1) first = split() * Expr(plan_.steps) + Expr(step);
    Stmt copies = seq({copy_tile(p, stage, first), copy_tile(q, stage, first)});
    copies = if_then(Expr(step) < Expr(plan_.steps), copies);
    const Stmt products = if_then(Expr(step) > Expr(0), multiply(p.shared, q.shared, Expr(kStages - 1) - Expr(stage)));
    const Stmt turn = seq({intrin("cp_async_wait", {}, {Expr(0)}), barrier(Scope::Shared), copies,
                           intrin("cp_async_commit", {}), products});
    return comment("while a step's tiles are on their way, the step before it is multiplied",
                   loop(step, plan_.steps + 1, let(stage, floor_mod(Expr(step), kStages), turn)));
  }

  // Reads four neighbours at a time; a thread's groups of four lie side by side with those of its neighbours.
  Stmt multiply(const Buffer& p, const Buffer& q, const Expr& stage) {
    const Buffer a = make_buffer(m_.p.name + "_k", DType::F32, fragment(t_.tm), Scope::Register),
                 b = make_buffer(m_.q.name + "_k", DType::F32, fragment(t_.tn), Scope::Register);
    const Var k = make_var("k");
    auto read = [&](const Buffer& to, const Buffer& from, int64_t part, int64_t whole, const Expr& t) {
      if (part == kVector) return intrin("load4", {{to, {}}, {from, {stage, k, t * Expr(kVector)}}});
      const Var h = make_var("h");
      return loop(h, part / kVector,
                  intrin("load4",
                         {{to, {h}}, {from, {stage, k, Expr(h) * Expr(whole / (part / kVector)) + t * Expr(kVector)}}}),
                  ForKind::Unroll);
    };
    auto element = [](const Buffer& f, const Expr& i) {
      return f->shape.size() == 1 ? load(f, {i}) : load(f, {floor_div(i, kVector), floor_mod(i, kVector)});
    };
    const Stmt products = tile_loops([&](const Expr& i, const Expr& j) {
      return store(acc_, {i, j}, element(a, i) * element(b, j), Op::Add);
    });
    return loop(
        k, t_.depth,
        alloc(a, alloc(b, seq({read(a, p, t_.tm, t_.rows, ty_), read(b, q, t_.tn, t_.columns, tx_), products}))),
        ForKind::Unroll);
  }
  static Shape fragment(int64_t n) { return n == kVector ? Shape{Dim(n)} : Shape{Dim(n / kVector), Dim(kVector)}; }

  // The place of element i of a thread in the tile.
  static Expr place(const Expr& i, int64_t part, int64_t whole, const Expr& t) {
    if (part == kVector) return t * Expr(kVector) + i;
    return floor_div(i, kVector) * Expr(whole / (part / kVector)) + t * Expr(kVector) + floor_mod(i, kVector);
  }

  // For every row of the thread, and every four columns: `body` gets the first column and the sums' first index.
  Stmt rows_and_columns(const std::function<Stmt(const VarMap& row, const Expr& flat_row, const Expr& column,
                                                 const Expr& i, const Expr& j)>& body) {
    const Var i = make_var("i"), h = make_var("h");
    const FlatPoint row(m_.m, Expr(block_m_) * Expr(t_.rows) + place(i, t_.tm, t_.rows, ty_), "row");
    const Expr column =
        Expr(block_n_) * Expr(t_.columns) + Expr(h) * Expr(t_.columns / (t_.tn / kVector)) + Expr(tx_) * Expr(kVector);
    Stmt s = body(row.at, row.flat, column, i, Expr(h) * Expr(kVector));
    s = loop(h, t_.tn / kVector, s, ForKind::Unroll);
    if (m_.rows() % t_.rows != 0) s = if_then(row.flat < Expr(m_.rows()), s);
    return loop(i, t_.tm, row.wrap(s), ForKind::Unroll);
  }

  Stmt store_result() {
    return comment(
        "the results of this thread",
        rows_and_columns([&](const VarMap& row, const Expr&, const Expr& column, const Expr& i, const Expr& j0) {
          const int64_t columns = m_.columns();
          const bool vector = !m_.n.empty() && m_.n.back().extent.value % kVector == 0;
          const Var j = make_var("j");
          const FlatPoint n(m_.n, vector ? column : column + Expr(j), "column");
          VarMap at = row;
          at.insert(z_->at.begin(), z_->at.end());
          at.insert(n.at.begin(), n.at.end());
          if (vector) at[m_.n.back().var.get()] = at[m_.n.back().var.get()] + Expr(j);
          const Expr acc = load(acc_, {i, j0 + Expr(j)});
          const Expr value = rewrite(substitute(m_.c.epilogue, at), [&](const Expr& e) -> Expr {
            const Load* l = as<Load>(e);
            return l && l->buffer == m_.c.reduced ? acc : Expr();
          });
          Stmt s = store(m_.c.out, {substitute(m_.c.out_index, at)}, value);
          if (vector) s = loop(j, kVector, s, ForKind::Vector);
          if (columns % t_.columns != 0) s = if_then(n.flat < Expr(columns), s);
          s = n.wrap(s);
          return vector ? s : loop(j, kVector, s, ForKind::Unroll);
        }));
  }

  // partial[split][batch][row][column]
  Expr partial_index(const Expr& split, const Expr& batch, const Expr& row, const Expr& column) const {
    return ((split * Expr(m_.batches()) + batch) * Expr(m_.rows()) + row) * Expr(m_.columns()) + column;
  }
  Stmt store_partial() {
    partial_ = make_buffer("partial", DType::F32, {Dim(plan_.splits * m_.batches() * m_.rows() * m_.columns())},
                           Scope::Workspace);
    return rows_and_columns([&](const VarMap&, const Expr& row, const Expr& column, const Expr& i, const Expr& j0) {
      const int64_t columns = m_.columns();
      const bool vector = columns % kVector == 0;
      const Var j = make_var("j");
      const Var n = make_var("column");
      const Expr to = partial_index(split(), z_->flat, row, vector ? Expr(n) + Expr(j) : Expr(n));
      Stmt s = store(partial_, {to}, load(acc_, {i, j0 + Expr(j)}));
      if (vector) s = loop(j, kVector, s, ForKind::Vector);
      if (columns % t_.columns != 0) s = if_then(Expr(n) < Expr(columns), s);
      s = let(n, vector ? column : column + Expr(j), s);
      return vector ? s : loop(j, kVector, s, ForKind::Unroll);
    });
  }
  Stmt add_parts() {
    const Buffer sum = make_buffer(m_.c.name.empty() ? "sum" : m_.c.name, DType::F32, {}, Scope::Register);
    auto flat = [](const std::vector<Axis>& axes) {
      Expr e = 0;
      for (const Axis& a : axes) e = e * Expr(a.extent) + Expr(a.var);
      return e;
    };
    const Var part = make_var("part");
    const Stmt add =
        store(sum, {}, load(partial_, {partial_index(part, flat(m_.batch), flat(m_.m), flat(m_.n))}), Op::Add);
    const Expr result = substitute_buffers(m_.c.epilogue, {{m_.c.reduced.get(), sum}});
    std::vector<Axis> axes = m_.batch;
    axes.insert(axes.end(), m_.m.begin(), m_.m.end());
    axes.insert(axes.end(), m_.n.begin(), m_.n.end());
    return thread_per_point(
        axes, alloc(sum, seq({store(sum, {}, zero(DType::F32)), loop(part, plan_.splits, add, ForKind::Unroll),
                              store(m_.c.out, {m_.c.out_index}, result)})));
  }

  const CudaContraction& m_;
  const CudaTile t_;
  const CudaPlan plan_;
  const Var group_ = make_var(plan_.splits == 1  ? "batch"
                              : m_.batch.empty() ? "part"
                                                 : "group"),
            block_m_ = make_var("block_m"), block_n_ = make_var("block_n");
  const Var thread_ = make_var("thread"), tx_ = make_var("tx"), ty_ = make_var("ty");
  const Buffer acc_ = make_buffer("acc", DType::F32, {Dim(t_.tm), Dim(t_.tn)}, Scope::Register);
  std::unique_ptr<FlatPoint> z_;
  Buffer partial_;
};

std::string describe(const CudaContraction& m, const CudaPlan& p) {
  const CudaTile& t = p.tile;
  std::string s = to_text(t.rows) + " x " + to_text(t.columns) + " results a block, " + to_text(t.tm) + " x " +
                  to_text(t.tn) + " a thread; the sum in steps of " + to_text(t.depth) +
                  " through shared memory, two at a time";
  if (p.splits > 1) s += "; " + to_text(p.splits) + " blocks share a sum";
  if (m.p.packed || m.q.packed) s += "; weights in tiles";
  return s;
}

}  // namespace

std::optional<Scheduled> cuda_contraction(const CudaArgs& a) {
  const auto m = match_cuda_contraction(a);
  if (!m) return {};
  const CudaPlan plan = plan_cuda_contraction(*m, a.gpu, a.options);
  if (ceil_div(m->rows(), plan.tile.rows) > 65535 || m->batches() * plan.splits > 65535) return {};
  Scheduled s;
  s.body = seq({border_launch(m->c), SimtGemm(*m, plan).build(s)});
  bind_operands(s, m->c);
  s.family = "matmul";
  s.words = describe(*m, plan);
  return s;
}

}  // namespace tc
