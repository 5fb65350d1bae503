#include "templates/cuda/attention_loops.h"

#include <algorithm>

#include "ir/loop/conditions.h"
#include "ir/loop/intrin.h"
#include "support/text.h"

namespace tc {
namespace {

// What exponentials subtract. In a row that has seen no key but forbidden ones, -inf - -inf would be no number.
Expr shift_of(const Expr& top) { return select(eq(top, lowest(DType::F32)), zero(DType::F32), top); }

// TileCopy counts stages; these tiles have one: b[0][row][column] becomes b[row][column].
Stmt without_stages(const Stmt& s, const Buffer& b) {
  const Buffer flat = make_buffer(b->name, b->dtype, {b->shape[1], b->shape[2]}, b->scope);
  auto rest = [](const Exprs& index) { return Exprs(index.begin() + 1, index.end()); };
  const auto in_expr = [&](const Expr& e) -> Expr {
    const Load* l = as<Load>(e);
    return l && l->buffer == b ? load(flat, rest(l->index)) : Expr();
  };
  return rewrite(s, in_expr, [&](const Stmt& x) -> Stmt {
    if (const Alloc* k = as<Alloc>(x)) return k->buffer == b ? alloc(flat, k->body) : Stmt();
    if (const Store* k = as<Store>(x)) return k->buffer == b ? store(flat, rest(k->index), k->value) : Stmt();
    const Intrin* k = as<Intrin>(x);
    if (!k || std::find(k->buffers.begin(), k->buffers.end(), b) == k->buffers.end()) return {};
    IntrinCall call = parse(*k);
    for (IntrinOperand& o : call.operands)
      if (o.buffer == b) o = {flat, rest(o.index)};
    return intrin(k->name, call.operands, call.scalars);
  });
}

}  // namespace

AttentionLoops::AttentionLoops(const CudaAttention& m, const CudaAttentionPlan& p)
    : m_(m), p_(p), z_(m.batch, Expr(group_), "group") {
  q_ = tile(m.q, m.rows, "row", p.rows, m.depth, p.depth);
  q_.d_begin = Expr(block_) * Expr(p.rows);
  k_ = tile(m.k, {m.keys}, "n", p.keys, m.depth, p.depth);
  v_ = tile(m.v, m.values, "column", p.width, {m.keys}, p.keys);
  v_.k_steps = p.steps * p.splits;
  v_.k_inner = false;
  if (p_.steps > 1) allowed_ = allowed_keys(m, z_.at, q_.d_begin, p_.rows);
  if (p.splits == 1) return;
  const int64_t rows = p.splits * points(m.batch) * points(m.rows);
  auto scratch = [](const std::string& name, int64_t n) {
    return make_buffer(name, DType::F32, {Dim(n)}, Scope::Workspace);
  };
  partial_ = scratch("partial", rows * points(m.values));
  partial_max_ = scratch("partial_max", rows);
  partial_sum_ = scratch("partial_sum", rows);
}

TileCopy AttentionLoops::tile(const Expr& value, const std::vector<Axis>& d, const std::string& d_name, int64_t d_tile,
                              const std::vector<Axis>& k, int64_t k_tile) const {
  TileCopy c;
  c.value = value;
  c.batch = z_.at;
  c.d = d;
  c.d_name = d_name;
  c.d_begin = 0;
  c.d_tile = d_tile;
  c.k = k;
  c.k_tile = k_tile;
  c.k_steps = 1;
  c.k_inner = true;
  c.type = p_.type;
  c.thread = thread_;
  c.threads = p_.threads();
  return c;
}

Stmt AttentionLoops::build() {
  lay_out_tiles(q_, k_, v_);
  const std::vector<std::pair<TileCopy*, std::string>> tiles = {{&q_, "q"}, {&k_, "k"}, {&v_, "v"}};
  for (const auto& [t, name] : tiles)
    if (through_registers(*t)) t->registers = registers_of(*t, name + "_next");
  const Stmt none = over_rows([&](const Expr& i) {
    return seq({store(row_max_, row_at(i), lowest(DType::F32)), store(row_sum_, row_at(i), zero(DType::F32))});
  });
  const Stmt rows = alloc(acc_, seq({zeros(acc_), none, with_bounds(walk_keys()), results()}));
  const Stmt code = alloc(row_max_, alloc(row_sum_, rows));
  Stmt launch = loop(thread_, p_.threads(), with_thread_indices(z_.wrap(code)), ForKind::ThreadX);
  for (const Buffer& b : exchange_) launch = alloc(b, launch);
  for (const Buffer& b : {v_.shared, k_.shared, q_.shared}) launch = alloc(b, launch);
  const int64_t blocks = ceil_div(points(m_.rows), p_.rows);
  const auto kinds = grid_kinds(blocks, points(m_.batch), p_.splits);
  check(kinds.has_value(), "a plan's blocks fit a grid");
  launch = loop(block_, blocks, launch, (*kinds)[0]);
  launch = loop(group_, points(m_.batch), launch, (*kinds)[1]);
  if (p_.splits > 1) launch = loop(part_, p_.splits, launch, (*kinds)[2]);
  for (const Buffer& b : {q_.shared, k_.shared, v_.shared}) launch = without_stages(launch, b);
  if (p_.splits == 1) return launch;
  const Stmt both = seq({comment("each of " + to_text(p_.splits) + " parts of the keys", launch),
                         comment("the parts joined, in order", join_parts())});
  return alloc(partial_, alloc(partial_max_, alloc(partial_sum_, both)));
}

// Where the mask bounds the keys, a block begins and ends with the tiles of these bounds. It takes one tile at least: its
// copies are on their way, and where there is no key, the mask says so.
Stmt AttentionLoops::with_bounds(Stmt code) const {
  if (!skips_keys()) return code;
  const Expr none = 0, all = m_.keys.extent.value, tile = p_.keys;
  const Expr end = allowed_.end ? min(max(allowed_.end, Expr(1)), all) : all;
  const Expr begin = allowed_.begin ? min(max(allowed_.begin, none), end - Expr(1)) : none;
  Expr first = floor_div(begin, tile), last = floor_div(end + (tile - Expr(1)), tile);
  if (p_.splits > 1) {
    const Expr own = Expr(part_) * Expr(p_.steps), behind = own + Expr(p_.steps);
    first = min(max(first, own), behind - Expr(1));
    last = max(min(last, behind), Expr(first_tile_) + Expr(1));
  }
  return let(first_tile_, first, let(end_tile_, last, code));
}

// The tile of the keys that the block takes in iteration `step`.
Expr AttentionLoops::key_tile(const Expr& step) const {
  if (skips_keys()) return step;
  return p_.splits > 1 ? Expr(part_) * Expr(p_.steps) + step : step;
}
TileCopy AttentionLoops::keys_of(const Expr& step) const {
  TileCopy c = k_;
  c.d_begin = key_tile(step) * Expr(p_.keys);
  return c;
}
FlatPoint AttentionLoops::row_of(const Expr& i) const {
  return FlatPoint(m_.rows, Expr(block_) * Expr(p_.rows) + row_in_tile(i), "row");
}

// Two barriers an iteration: a copy takes the place of a tile that every thread has left.
Stmt AttentionLoops::walk_keys() const {
  const bool single = p_.steps == 1, bounded = skips_keys();
  const Var step = make_var(bounded ? "tile" : "step");
  const Expr at = single ? Expr(0) : Expr(step), from = bounded ? Expr(first_tile_) : Expr(0);
  const Expr end = bounded ? Expr(end_tile_) : Expr(p_.steps);
  const TileCopy next = keys_of(at + Expr(1));
  auto arrived = [] { return seq({intrin("cp_async_wait", {}, {Expr(0)}), barrier(Scope::Shared)}); };
  const Stmt commit = intrin("cp_async_commit", {});
  auto if_next = [&](const Stmt& s) { return single || !s ? Stmt() : if_then(at + Expr(1) < end, s); };
  const Stmt products =
      alloc(s_, seq({zeros(s_), comment("scores", dot_products()), comment("their softmax so far", softmax(at)),
                     put_tile(v_, 0), arrived(), if_next(seq({copy_tile(next, 0, 0), commit})),
                     comment("times the values", add_values()), if_next(put_tile(next, 0))}));
  Stmt iteration = seq({arrived(), copy_tile(v_, 0, key_tile(at)), commit, products});
  for (const TileCopy* t : {&k_, &v_})
    if (t->registers) iteration = alloc(t->registers, iteration);
  auto whole = [&](const TileCopy& t) {
    const Stmt s = seq({copy_tile(t, 0, 0), put_tile(t, 0)});
    return t.registers ? alloc(t.registers, s) : s;
  };
  const Stmt first = seq({whole(q_), whole(keys_of(from)), commit});
  return seq({comment("the rows of q, and the first keys", first),
              single ? iteration : loop(step, end - from, iteration, ForKind::Serial, from)});
}

// The score of an element of s: what the function makes of the sum, or -inf where there is no key.
Stmt AttentionLoops::finish_score(const Exprs& element, const Expr& key_in_tile, const FlatPoint& row,
                                  const Expr& step) const {
  const FlatPoint key({m_.keys}, key_tile(step) * Expr(p_.keys) + key_in_tile, "key");
  const VarMap at = joined({&z_.at, &row.at, &key.at});
  const Expr sum = load(s_, element);
  Expr value = with_reduced(substitute(m_.score, at), m_.score_acc, sum), valid;
  const int64_t keys = m_.keys.extent.value;
  if (p_.splits * p_.steps * p_.keys != keys) valid = key.flat < Expr(keys);
  const bool by_row =
      std::any_of(m_.rows.begin(), m_.rows.end(), [&](const Axis& a) { return uses_var(m_.score, a.var); });
  if (by_row && points(m_.rows) % p_.rows != 0) {
    valid = both(row.flat < Expr(points(m_.rows)), valid);
  }
  if (valid) value = select(valid, value, lowest(DType::F32));
  return value.same_as(sum) ? Stmt() : key.wrap(store(s_, element, value));
}

Stmt AttentionLoops::softmax(const Expr& step) const {
  const Var e = make_var("e"), shift = make_var("shift", DType::F32), rescale = make_var("rescale", DType::F32);
  const Buffer top = registers("top", {});
  return over_rows([&](const Expr& i) {
    const FlatPoint row = row_of(i);
    const Exprs own = row_at(i);
    const Stmt compared = over_scores(i, [&](const Exprs& at, const Expr& key) {
      return seq({finish_score(at, key, row, step), store(top, {}, load(s_, at), Op::Max)});
    });
    const Stmt weights = over_scores(i, [&](const Exprs& at, const Expr& key) {
      return seq({store(s_, at, exp(load(s_, at) - Expr(shift))), store(row_sum_, own, load(s_, at), Op::Add),
                  keep_weight(i, at, key)});
    });
    const Stmt old_results = over_runs(
        i, [&](const Run& run) { return each(e, run.count, store(acc_, run.at(e), Expr(rescale), Op::Mul)); });
    const Stmt rescaled =
        seq({store(row_max_, own, load(top, {})), store(row_sum_, own, Expr(rescale), Op::Mul), old_results});
    const Stmt shifted = let(shift, shift_of(load(top, {})),
                             let(rescale, exp(load(row_max_, own) - Expr(shift)), seq({rescaled, weights})));
    const Stmt body = seq({store(top, {}, load(row_max_, own)), compared, allreduce(top, Op::Max, p_.tx), shifted});
    return row.wrap(alloc(top, body));
  });
}

Expr AttentionLoops::inverse(const Expr& sum) const {
  const Expr one = make_float(DType::F32, 1);
  return one / (m_.zero_if_none || m_.zero_if_nan ? select(eq(sum, zero(DType::F32)), one, sum) : sum);
}

// A sum of values times `scale`. NaN among the scores makes both NaN, and all weights 0. Where no key counts the weights are 0 already,
// and so is the sum, unless a value is not finite.
Expr AttentionLoops::weighted(const Expr& sum, const Expr& scale) const {
  return m_.zero_if_nan ? select(scale > zero(DType::F32), sum * scale, zero(DType::F32)) : sum * scale;
}

// What a thread has of its rows, once their sums are joined over the threads of each.
Stmt AttentionLoops::results() const {
  const Var scale = make_var("scale", DType::F32);
  const Buffer total = registers("total", {});
  const Stmt rows = over_rows([&](const Expr& i) {
    const FlatPoint row = row_of(i);
    const Stmt stored = p_.splits > 1 ? store_partial(i, row, total)
                                      : let(scale, inverse(load(total, {})), store_result(i, row, Expr(scale)));
    const Stmt kept = points(m_.rows) % p_.rows != 0 ? if_then(row.flat < Expr(points(m_.rows)), stored) : stored;
    const Stmt sum = seq({store(total, {}, load(row_sum_, row_at(i))), allreduce(total, Op::Add, p_.tx), kept});
    return row.wrap(alloc(total, sum));
  });
  return comment("the results of this thread", rows);
}

// `one` for every column of the thread: neighbours at once where the last axis, of `last` columns, allows it.
Stmt AttentionLoops::over_columns(
    const Expr& i, int64_t last,
    const std::function<Stmt(const FlatPoint& n, const Expr& e, const Exprs& at)>& one) const {
  return over_runs(i, [&](const Run& run) {
    const bool vector = last % run.count == 0;
    const Var e = make_var("e");
    const FlatPoint n(m_.values, vector ? run.column : run.column + Expr(e), "column");
    Stmt s = one(n, vector ? Expr(e) : Expr(0), run.at(e));
    if (vector) s = loop(e, run.count, s, ForKind::Vector);
    if (points(m_.values) % p_.width != 0) s = if_then(n.flat < Expr(points(m_.values)), s);
    s = n.wrap(s);
    return vector ? s : each(e, run.count, s);
  });
}

Stmt AttentionLoops::store_result(const Expr& i, const FlatPoint& row, const Expr& scale) const {
  return over_columns(i, m_.values.back().extent.value, [&](const FlatPoint& n, const Expr& e, const Exprs& acc) {
    VarMap at = joined({&z_.at, &row.at, &n.at});
    at[m_.values.back().var.get()] = at[m_.values.back().var.get()] + e;
    const Expr sum = weighted(load(acc_, acc), scale);
    return store(m_.c.out, {substitute(m_.out_index, at)}, with_reduced(substitute(m_.result, at), m_.result_acc, sum));
  });
}

// partial[part][group][row], and there [column]
Expr AttentionLoops::partial_row(const Expr& part, const Expr& group, const Expr& row) const {
  return (part * Expr(points(m_.batch)) + group) * Expr(points(m_.rows)) + row;
}

Stmt AttentionLoops::store_partial(const Expr& i, const FlatPoint& row, const Buffer& total) const {
  const Expr at = partial_row(Expr(part_), z_.flat, row.flat);
  const int64_t columns = points(m_.values);
  const Stmt sums = over_columns(i, columns, [&](const FlatPoint& n, const Expr& e, const Exprs& acc) {
    return store(partial_, {at * Expr(columns) + n.flat + e}, load(acc_, acc));
  });
  const Stmt scalars =
      seq({store(partial_max_, {at}, load(row_max_, row_at(i))), store(partial_sum_, {at}, load(total, {}))});
  return seq({by_one(scalars), sums});
}

// A thread per result: the sums of the parts under the largest of their maxima.
Stmt AttentionLoops::join_parts() const {
  const Buffer top = registers("top", {}), total = registers("total", {}), sum = registers("sum", {});
  const Var part = make_var("part"), shift = make_var("shift", DType::F32), rescale = make_var("rescale", DType::F32);
  const Expr at = partial_row(part, point_number(m_.batch), point_number(m_.rows));
  const Expr element = load(partial_, {at * Expr(points(m_.values)) + point_number(m_.values)});
  const Stmt compare = store(top, {}, load(partial_max_, {at}), Op::Max);
  const Stmt add = let(rescale, exp(load(partial_max_, {at}) - Expr(shift)),
                       seq({store(total, {}, load(partial_sum_, {at}) * Expr(rescale), Op::Add),
                            store(sum, {}, element * Expr(rescale), Op::Add)}));
  const Var scale = make_var("scale", DType::F32);
  const Stmt result = let(
      scale, inverse(load(total, {})),
      store(m_.c.out, {m_.out_index}, with_reduced(m_.result, m_.result_acc, weighted(load(sum, {}), Expr(scale)))));
  const Stmt joined = let(shift, shift_of(load(top, {})), seq({loop(part, p_.splits, add, ForKind::Unroll), result}));
  const Stmt body = seq({store(top, {}, lowest(DType::F32)), store(total, {}, zero(DType::F32)),
                         store(sum, {}, zero(DType::F32)), loop(part, p_.splits, compare, ForKind::Unroll), joined});
  std::vector<Axis> axes = m_.batch;
  for (const auto* list : {&m_.rows, &m_.values}) axes.insert(axes.end(), list->begin(), list->end());
  return thread_per_point(axes, alloc(top, alloc(total, alloc(sum, body))));
}

}  // namespace tc
