#include "templates/cuda/block_gemm.h"

#include "ir/loop/intrin.h"
#include "support/text.h"

namespace tc {
BlockGemm::BlockGemm(const CudaContraction& m, const CudaPlan& plan)
    : m_(m),
      plan_(plan),
      t_(plan.tile),
      group_(make_var(plan.splits == 1  ? "batch"
                      : m.batch.empty() ? "part"
                                        : "group")) {
  z_ = std::make_unique<FlatPoint>(m_.batch, plan_.splits > 1 ? floor_div(Expr(group_), plan_.splits) : Expr(group_),
                                   "batch");
  if (plan_.splits > 1)
    partial_ =
        make_buffer("partial", m_.sum, {Dim(plan_.splits * m_.batches() * m_.rows() * m_.columns())}, Scope::Workspace);
}

Expr BlockGemm::split() const { return floor_mod(Expr(group_), plan_.splits); }

Stmt BlockGemm::build(Scheduled& s) {
  const int64_t row_tiles = ceil_div(m_.rows(), t_.rows), column_tiles = ceil_div(m_.columns(), t_.columns);
  const TileCopy p = tile_of(m_.p, plan_.p_type, m_.m, "row", block_m_, t_.rows, row_tiles, s);
  const TileCopy q = tile_of(m_.q, plan_.q_type, m_.n, "column", block_n_, t_.columns, column_tiles, s);
  Buffer sums;
  Stmt result = plan_.splits > 1 ? store_partial() : store_result();
  if (plan_.k_groups > 1) {
    Shape shape = sums_shape();
    shape.insert(shape.begin(), Dim(plan_.k_groups - 1));
    sums = make_buffer("sums", m_.sum, shape, Scope::Shared);
    result = join_k_groups(sums, result);
  }
  Stmt code = alloc(acc_, seq({clear(), sum(p, q), result}));
  code = with_thread_indices(z_->wrap(code));
  Stmt launch = loop(thread_, t_.threads(), code, ForKind::ThreadX);
  if (plan_.k_groups > 1) launch = alloc(sums, loop(k_group_, plan_.k_groups, launch, ForKind::ThreadY));
  launch = alloc(p.shared, alloc(q.shared, launch));
  const auto kinds = grid_kinds(column_tiles, row_tiles, m_.batches() * plan_.splits);
  check(kinds.has_value(), "a plan's blocks fit a grid");
  launch = loop(block_m_, row_tiles, launch, (*kinds)[1]);
  launch = loop(block_n_, column_tiles, launch, (*kinds)[0]);
  launch = loop(group_, m_.batches() * plan_.splits, launch, (*kinds)[2]);
  if (plan_.splits == 1) return launch;
  return alloc(partial_, seq({comment("each of " + to_text(plan_.splits) + " parts of the sum", launch),
                              comment("the parts added up, in order", add_parts())}));
}

TileCopy BlockGemm::tile_of(const Factor& f, DType type, const std::vector<Axis>& axes, const std::string& d_name,
                            const Var& block, int64_t size, int64_t tiles, Scheduled& s) const {
  TileCopy c;
  c.type = type;
  c.d = axes;
  c.d_name = d_name;
  c.d_begin = Expr(block) * Expr(size);
  c.d_tile = size;
  c.k = m_.k;
  c.batch = z_->at;
  c.k_tile = t_.depth;
  c.k_steps = plan_.splits * plan_.k_groups * plan_.steps;
  c.thread = thread_;
  c.threads = t_.threads();
  c.is_packed = f.packed;
  if (!f.packed) c.value = f.value;
  lay_out_tile(c, f.name);
  if (f.packed) {
    c.packed = pack_factor(m_.c, f, c, s);
    Expr matrix = 0;
    for (const Axis& a : f.batch) matrix = matrix * Expr(a.extent) + z_->at.at(a.var.get());
    c.packed_tile = matrix * Expr(tiles) + Expr(block);
  }
  if (through_registers(c)) c.registers = registers_of(c, f.name + "_next");
  return c;
}

// With S stages, iteration s issues the copies of step s and multiplies step s - (S - 1): S - 1 more than there are
// steps. What passes through registers is read before the products and stored behind them. One barrier each: a stage
// is filled when every thread has left it. Products that go on by themselves are begun before the copies are issued, and
// those of the step before may still run, so that copies are one step less ahead.
Stmt BlockGemm::sum(const TileCopy& p, const TileCopy& q) const {
  const int64_t stages = plan_.stages, ahead = plan_.ahead();
  const Var step = make_var("step"), stage = make_var("stage");
  Expr part = plan_.splits > 1 ? split() : Expr(0);
  if (plan_.k_groups > 1) part = part * Expr(plan_.k_groups) + Expr(k_group_);
  const Expr first = part * Expr(plan_.steps) + Expr(step);
  const Expr own = plan_.k_groups > 1 ? Expr(k_group_) * Expr(stages) : Expr(0);  // this group's tiles
  const Expr is_step = Expr(step) < Expr(plan_.steps);
  auto if_step = [&](const Stmt& s) { return s ? if_then(is_step, s) : s; };
  const Expr ready = own + (stages == 2 ? Expr(1) - Expr(stage) : floor_mod(Expr(step) + Expr(stages - ahead), stages));
  const Expr filled = own + Expr(stage);
  const Stmt wait = intrin("cp_async_wait", {}, {Expr(ahead - 1)});
  const Stmt copies =
      seq({if_step(seq({copy_tile(p, filled, first), copy_tile(q, filled, first)})), intrin("cp_async_commit", {})});
  const Stmt products = if_then(Expr(step) >= Expr(ahead), multiply(p, q, ready));
  const Stmt puts = if_step(seq({put_tile(p, filled), put_tile(q, filled)}));
  Stmt iteration = begins_products() ? seq({wait, intrin("wgmma_publish", {}), barrier(Scope::Shared), products, copies,
                                            wait_for_products(), puts})
                                     : seq({wait, barrier(Scope::Shared), copies, products, puts});
  for (const TileCopy* t : {&p, &q})
    if (t->registers) iteration = alloc(t->registers, iteration);
  const std::string description = ahead == 1 ? "while a step's tiles are on their way, the step before it is multiplied"
                                             : "while the tiles of " + to_text(ahead) +
                                                   " steps are on their way, the step before them is multiplied";
  const Stmt all = loop(step, plan_.steps + ahead, let(stage, floor_mod(Expr(step), stages), iteration));
  return seq({comment(description, all), end_products()});
}

// The first group of threads adds up what all of them have, in order.
Stmt BlockGemm::join_k_groups(const Buffer& sums, const Stmt& result) const {
  const Stmt give = over_sums([&](const Exprs& at, Exprs slot) {
    slot.insert(slot.begin(), Expr(k_group_) - Expr(1));
    return store(sums, slot, load(acc_, at));
  });
  const Var other = make_var("other");
  const Stmt take = loop(other, plan_.k_groups - 1, over_sums([&](const Exprs& at, Exprs slot) {
                           slot.insert(slot.begin(), Expr(other));
                           return store(acc_, at, load(sums, slot), Op::Add);
                         }));
  return seq(
      {comment("the first group of threads adds up what the others have", if_then(Expr(k_group_) > Expr(0), give)),
       barrier(Scope::Shared), if_then(eq(Expr(k_group_), Expr(0)), seq({take, result}))});
}

Stmt BlockGemm::if_row(const FlatPoint& row, const Stmt& s) const {
  return row.wrap(m_.rows() % t_.rows != 0 ? if_then(row.flat < Expr(m_.rows()), s) : s);
}

Stmt BlockGemm::store_result() const {
  return comment("the results of this thread", over_runs([&](const Run& run) {
                   const int64_t columns = m_.columns();
                   const bool vector = !m_.n.empty() && m_.n.back().extent.value % run.count == 0;
                   const Var j = make_var("j");
                   const FlatPoint n(m_.n, vector ? run.column : run.column + Expr(j), "column");
                   VarMap at = joined({&run.row.at, &z_->at, &n.at});
                   if (vector) at[m_.n.back().var.get()] = at[m_.n.back().var.get()] + Expr(j);
                   const Expr value = with_reduced(substitute(m_.c.epilogue, at), m_.c.reduced, run.sum(Expr(j)));
                   Stmt s = store(m_.c.out, {substitute(m_.c.out_index, at)}, value);
                   if (vector) s = loop(j, run.count, s, ForKind::Vector);
                   if (columns % t_.columns != 0) s = if_then(n.flat < Expr(columns), s);
                   s = n.wrap(s);
                   return vector ? s : loop(j, run.count, s, ForKind::Unroll);
                 }));
}

// partial[split][batch][row][column]
Expr BlockGemm::partial_index(const Expr& split, const Expr& batch, const Expr& row, const Expr& column) const {
  return ((split * Expr(m_.batches()) + batch) * Expr(m_.rows()) + row) * Expr(m_.columns()) + column;
}

Stmt BlockGemm::store_partial() const {
  return over_runs([&](const Run& run) {
    const int64_t columns = m_.columns();
    const bool vector = columns % run.count == 0;
    const Var j = make_var("j"), n = make_var("column");
    const Expr to = partial_index(split(), z_->flat, run.row.flat, vector ? Expr(n) + Expr(j) : Expr(n));
    Stmt s = store(partial_, {to}, run.sum(Expr(j)));
    if (vector) s = loop(j, run.count, s, ForKind::Vector);
    if (columns % t_.columns != 0) s = if_then(Expr(n) < Expr(columns), s);
    s = let(n, vector ? run.column : run.column + Expr(j), s);
    return vector ? s : loop(j, run.count, s, ForKind::Unroll);
  });
}

Stmt BlockGemm::add_parts() const {
  const Buffer sum = make_buffer(m_.c.name.empty() ? "sum" : m_.c.name, m_.sum, {}, Scope::Register);
  const Var part = make_var("part");
  const Expr from = partial_index(part, point_number(m_.batch), point_number(m_.m), point_number(m_.n));
  const Stmt add = loop(part, plan_.splits, store(sum, {}, load(partial_, {from}), Op::Add), ForKind::Unroll);
  const Expr result = substitute_buffers(m_.c.epilogue, {{m_.c.reduced.get(), sum}});
  std::vector<Axis> axes = m_.batch;
  axes.insert(axes.end(), m_.m.begin(), m_.m.end());
  axes.insert(axes.end(), m_.n.begin(), m_.n.end());
  const Stmt body = seq({store(sum, {}, zero(m_.sum)), add, store(m_.c.out, {m_.c.out_index}, result)});
  return thread_per_point(axes, alloc(sum, body));
}

}  // namespace tc
