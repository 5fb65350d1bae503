// Sums of products with few rows (a dense layer of one image): the other factor is read once, and that takes the time.
//
//   each thread, for a few columns:             the threads of a block share the sum: one takes each depth'th part
//     for its parts of the sum:
//       w[0..3] = q[k][column ..]               16 bytes a read (4 floats, 8 halves), a row of neighbouring threads together
//       acc[row][j] += p[row][k] * w[j]
//   sums[part][row][column] = acc, barrier, added up in two steps, in order
//   y[row][column] = epilogue(sum)
#include "ir/loop/conditions.h"
#include "ir/loop/intrin.h"
#include "support/text.h"
#include "templates/cuda/contraction.h"

namespace tc {
namespace {

constexpr int64_t kMaxRows = 8, kUnroll = 4, kThreads = 256;
constexpr int64_t kAtOnce = 16;      // parts that one thread adds up
constexpr int64_t kMostSums = 8192;  // of all threads of a block
constexpr int64_t kMostColumns = 512;

// Columns of a thread, its threads, and columns of a block: narrow enough to give every multiprocessor a block; parts enough
// to leave each a few iterations.
struct Widths {
  int64_t vector, threads = 0, block = 0;
};
int64_t model_threads(const CudaContraction& m, int64_t vector) {
  int64_t threads = kThreads;
  while (threads * m.rows() * vector > kMostSums) threads /= 2;
  return threads;
}
int64_t model_columns(const CudaContraction& m, const CudaModel& gpu, int64_t vector, int64_t threads) {
  int64_t columns = std::min<int64_t>(128, threads * vector);
  for (; columns > 2 * vector; columns /= 2)
    if (ceil_div(m.columns(), columns) * m.batches() >= gpu.multiprocessors ||
        threads / (columns / vector) * kUnroll > m.depth())
      break;
  return columns;
}

Widths decide_widths(const CudaContraction& m, const CudaModel& gpu, const PlanEntry& plan) {
  Widths w{16 / info(m.q.type).bytes};
  int64_t most = kMaxBlockThreads;
  while (most * m.rows() * w.vector > kMostSums) most /= 2;
  w.threads = plan.number(
      "threads", [&] { return model_threads(m, w.vector); },
      KnobValues::powers_of_two(kWarp, most, to_text(kMostSums) + " sums fit the memory of a block"));
  w.block = plan.number(
      "columns", [&] { return model_columns(m, gpu, w.vector, w.threads); },
      KnobValues::powers_of_two(2 * w.vector, std::min(kMostColumns, w.threads * w.vector),
                                "a thread has " + to_text(w.vector)));
  return w;
}

class MatrixVector {
 public:
  MatrixVector(const CudaContraction& m, const Widths& w)
      : m_(m),
        vector_(w.vector),
        threads_(w.threads),
        width_(w.block),
        quads_(width_ / vector_),
        parts_(threads_ / quads_),
        rows_(m.rows()) {}

  Stmt build(Scheduled& s) {
    const FlatPoint batch(m_.batch, Expr(group_), "batch");
    batch_ = batch.at;
    iterations_ = ceil_div(m_.depth(), parts_ * kUnroll);
    Stmt body = alloc(
        acc_, seq({clear(), comment("this thread's part of the sums of its columns", products(s)), store_parts()}));
    body =
        seq({body, barrier(Scope::Shared), comment("the parts added up, in order", seq({add_some(), store_result()}))});
    body = let(quad_, floor_mod(Expr(thread_), quads_), let(part_, floor_div(Expr(thread_), quads_), batch.wrap(body)));
    Stmt launch = alloc(sums_, loop(thread_, threads_, body, ForKind::ThreadX));
    const int64_t blocks = ceil_div(m_.columns(), width_);
    const auto kinds = grid_kinds(blocks, m_.batches());
    check(kinds.has_value(), "columns and batches fit a grid");
    launch = loop(block_, blocks, launch, (*kinds)[0]);
    return loop(group_, m_.batches(), launch, (*kinds)[1]);
  }

  std::string describe() const {
    return to_text(width_) + " columns a block, " + to_text(vector_) + " a thread; " + to_text(parts_) +
           " threads share a sum" + (m_.q.packed ? "; weights in tiles" : "");
  }

 private:
  Stmt over_rows(const std::function<Stmt(const Expr& row)>& body) const {
    const Var r = make_var("r");
    return loop(r, rows_, body(Expr(r)), ForKind::Unroll);
  }
  Stmt clear() const {
    const Var j = make_var("j");
    return over_rows([&](const Expr& r) {
      return loop(j, vector_, store(acc_, {r, Expr(j)}, zero(m_.sum)), ForKind::Unroll);
    });
  }

  Stmt products(Scheduled& s) {
    const Var iteration = make_var("turn"), u = make_var("u"), k_flat = make_var("k"), j = make_var("j");
    const Buffer w = make_buffer(m_.q.name + "_v", m_.q.type, {Dim(vector_)}, Scope::Register);
    const FlatPoint k(m_.k, (Expr(iteration) * Expr(kUnroll) + Expr(u)) * Expr(parts_) + Expr(part_), "depth");
    const VarMap at = joined({&batch_, &k.at});
    const Expr column = Expr(block_) * Expr(width_) + Expr(quad_) * Expr(vector_);
    Stmt read;
    if (m_.q.packed) {
      TileCopy tile;
      tile.type = m_.q.type;
      tile.d_tile = width_;
      tile.k_tile = parts_ * kUnroll;
      tile.k_steps = iterations_;
      const Buffer packed = pack_factor(m_.c, m_.q, tile, s);
      Expr matrix = 0;
      for (const Axis& a : m_.q.batch) matrix = matrix * Expr(a.extent) + batch_.at(a.var.get());
      const Expr panel = matrix * Expr(ceil_div(m_.columns(), width_)) + Expr(block_);
      const Expr from =
          (panel * Expr(iterations_ * parts_ * kUnroll) + k.flat) * Expr(width_) + Expr(quad_) * Expr(vector_);
      read = intrin("load" + to_text(vector_), {{w, {}}, {packed, {from}}});
    } else {
      const FlatPoint n(m_.n, column, "column");
      const Load* l = read_of(m_.q.value).load;
      read = n.wrap(
          intrin("load" + to_text(vector_), {{w, {}}, {l->buffer, {substitute(l->index[0], joined({&at, &n.at}))}}}));
    }
    const Stmt add = over_rows([&](const Expr& r) {
      const FlatPoint row(m_.m, r, "row");
      const Var p = make_var(m_.p.name + "_k", m_.sum);
      const Stmt one = loop(j, vector_, store(acc_, {r, Expr(j)}, Expr(p) * cast(m_.sum, load(w, {Expr(j)})), Op::Add),
                            ForKind::Unroll);
      return row.wrap(let(p, substitute(m_.p.value, joined({&at, &row.at})), one));
    });
    const Stmt iteration_code = alloc(w, seq({read, add}));
    Expr valid;
    if (m_.depth() != iterations_ * parts_ * kUnroll) valid = k.flat < Expr(m_.depth());
    if (!m_.q.packed && m_.columns() % width_ != 0) valid = both(valid, column < Expr(m_.columns()));
    return loop(iteration, iterations_, loop(u, kUnroll, k.wrap(if_some(valid, iteration_code)), ForKind::Unroll));
  }

  Stmt store_parts() const {
    const Var j = make_var("j");
    return over_rows([&](const Expr& r) {
      return loop(j, vector_,
                  store(sums_, {Expr(part_), r * Expr(width_) + Expr(quad_) * Expr(vector_) + Expr(j)},
                        load(acc_, {r, Expr(j)})),
                  ForKind::Unroll);
    });
  }

  // sums[16 g] becomes the sum of sums[16 g .. 16 g + 15].
  Stmt add_some() const {
    if (parts_ <= kAtOnce) return {};
    const int64_t results = rows_ * width_, count = parts_ / kAtOnce * results;
    const Var n = make_var("n"), first = make_var("first"), o = make_var("o");
    Stmt s = store(sums_, {Expr(first), Expr(o)}, load(sums_, {Expr(first) + Expr(n), Expr(o)}), Op::Add);
    s = loop(n, kAtOnce - 1, s, ForKind::Unroll, 1);
    return seq({by_threads(count,
                           [&](const Expr& e) {
                             return let(first, floor_div(e, results) * Expr(kAtOnce), let(o, floor_mod(e, results), s));
                           }),
                barrier(Scope::Shared)});
  }

  Stmt store_result() const {
    const int64_t groups = ceil_div(parts_, kAtOnce), step = parts_ <= kAtOnce ? 1 : kAtOnce,
                  terms = parts_ <= kAtOnce ? parts_ : groups;
    const Var g = make_var("g"), o = make_var("o");
    const Buffer sum = make_buffer(m_.c.name.empty() ? "sum" : m_.c.name, m_.sum, {}, Scope::Register);
    return by_threads(rows_ * width_, [&](const Expr& e) {
      const FlatPoint row(m_.m, floor_div(Expr(o), width_), "row"),
          n(m_.n, Expr(block_) * Expr(width_) + floor_mod(Expr(o), width_), "column");
      const VarMap at = joined({&batch_, &row.at, &n.at});
      const Expr value = substitute_buffers(substitute(m_.c.epilogue, at), {{m_.c.reduced.get(), sum}});
      const Stmt add = store(sum, {}, load(sums_, {Expr(g) * Expr(step), Expr(o)}), Op::Add);
      Stmt s = alloc(sum, seq({store(sum, {}, zero(m_.sum)), loop(g, terms, add, ForKind::Unroll),
                               store(m_.c.out, {substitute(m_.c.out_index, at)}, value)}));
      if (m_.columns() % width_ != 0) s = if_then(n.flat < Expr(m_.columns()), s);
      return let(o, e, row.wrap(n.wrap(s)));
    });
  }

  Stmt by_threads(int64_t count, const std::function<Stmt(const Expr& e)>& body) const {
    return pieces_by_thread(count, thread_, threads_, ForKind::Serial,
                            [&](const Expr&, const Expr& e) { return body(e); });
  }

  const CudaContraction& m_;
  const int64_t vector_, threads_, width_, quads_, parts_, rows_;
  int64_t iterations_ = 1;
  VarMap batch_;
  const Var group_ = make_var("batch"), block_ = make_var("block"), thread_ = make_var("thread"),
            quad_ = make_var("quad"), part_ = make_var("part");
  const Buffer acc_ = make_buffer("acc", m_.sum, {Dim(rows_), Dim(vector_)}, Scope::Register);
  const Buffer sums_ = make_buffer("sums", m_.sum, {Dim(parts_), Dim(rows_* width_)}, Scope::Shared);
};

}  // namespace

std::optional<Scheduled> cuda_matrix_vector(const CudaArgs& a) {
  auto m = match_cuda_contraction(a);
  if (!m || a.options.strict_fp || m->rows() > kMaxRows || m->depth() < 32 || !grid_kinds(m->columns(), m->batches()) ||
      m->p.packed)
    return {};
  // Known weights take half the memory where --precision lets tensor cores round them, and where that saves time: not those
  // of squeeze and excitation, say, of which a result scales a whole channel.
  const DType half = a.options.precision == Precision::F16 ? DType::F16 : DType::BF16;
  const bool rounds = a.options.precision == Precision::F16 || a.options.precision == Precision::Bf16;
  const double saved = memory_cycles(a.gpu, 2.0 * double(m->batches() * m->depth() * m->columns()));
  if (rounds && saved > kUnnoticedCycles && m->q.packed && m->q.type == DType::F32) m->q.type = half;
  const Widths w = decide_widths(*m, a.gpu, a.plan);
  if (!m->q.packed) {
    TileCopy q;
    q.value = m->q.value;
    q.d = m->n;
    q.k = m->k;
    q.type = m->q.type;
    q.d_tile = w.block;
    const Read r = read_of(m->q.value);
    if (!r.load || bool(r.inside) || copy_width(q) != w.vector) return {};
  }
  Scheduled s;
  MatrixVector loops(*m, w);
  s.body = seq({border_launch(m->c), loops.build(s)});
  bind_operands(s, m->c);
  s.family = "matrix_vector";
  s.description = loops.describe();
  return s;
}

}  // namespace tc
