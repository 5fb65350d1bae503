// Reductions whose results lie side by side in memory: pooling, depthwise convolutions, means over all pixels.
//
//   for block of rows, block of columns:             chunks for threads
//     w[taps] = weights of these columns             where the definition has some, and they fit into registers
//     for rows, PX at a time:
//       acc[PX][v] = start
//       for taps: acc[i][v] = combine(acc[i][v], value)   unrolled, so that a pixel read by several taps is loaded once
//                                                         (of bytes: multiply_add_bytes)
//       y[row i, v] = epilogue(acc[i][v])
#include <algorithm>

#include "ir/loop/build.h"
#include "ir/loop/intrin.h"
#include "ir/loop/visit.h"
#include "support/text.h"
#include "templates/cpu/lanes.h"
#include "templates/cpu/row_blocks.h"
#include "templates/cpu/template.h"
#include "templates/cpu/tile.h"
#include "templates/match/axes.h"
#include "templates/zero_point.h"

namespace tc {
namespace {

using Point = std::vector<std::pair<Var, Expr>>;

constexpr int64_t kMostPixels = 8, kMostColumns = 128;  // of a tile
constexpr int64_t kMostKept = 25;                       // weights of a column that registers may hold
constexpr int64_t kMostCopies = 288;                    // of a tile's body, where it is unrolled

struct Window {
  Canonical c;
  std::vector<Axis> rows;  // all but the vector axis; the last one is tiled
  Axis n;
  Expr weight;  // the factor that depends on taps and columns only, and is kept; null: none
  Expr byte;    // the other factor, a load, where both are bytes; null: they are not
  int64_t pixels = 1, columns = 16, row_blocks = 1;
  size_t unrolled = 0;  // so many of the innermost taps' loops
  Scheduled s;          // with the packed weights
  bool parallel = false;
};

bool moves_with_rows(const Expr& e, const Window& w) {
  return std::any_of(w.rows.begin(), w.rows.end(), [&](const Axis& r) { return uses_var(e, r.var); });
}

// A load of the product, or bytes of it, that no row moves.
Expr row_invariant_factor(const Window& w) {
  const Apply* k = as<Apply>(w.c.value);
  if (!k || k->op != Op::Mul) return {};
  for (const Expr& e : k->args)
    if ((as<Load>(e) || zero_point_form(e).x.get()) && uses_var(e, w.n.var) && !moves_with_rows(e, w)) return e;
  return {};
}

// The load that is widened to i32; null: none of bytes.
Expr widened_byte(const Expr& e) {
  const ZeroPointForm f = zero_point_form(e);
  return bool(f.x) && !f.zero ? f.x : Expr();
}

// The factor of a sum of products of bytes that rows move, if the other one is to be kept, and both step along the columns.
Expr moving_byte(const Window& w) {
  if (!w.weight || w.c.combine != Op::Add || !widened_byte(w.weight)) return {};
  const Apply* k = as<Apply>(w.c.value);
  const Expr byte = widened_byte(k->args[k->args[0].same_as(w.weight) ? 1 : 0]);
  return bool(byte) && uses_var(byte, w.n.var) ? byte : Expr();
}

// sum(taps) (x - z) * w   ->   sum(taps) x * w, which starts from - z * sum(taps) w where weights are known
void fold_zero_point(Window& w, const TemplateArgs& a) {
  const Apply *k = as<Apply>(w.c.value), *shaped = as<Apply>(w.c.shaped_value);
  if (!k || k->op != Op::Mul || !shaped || shaped->op != Op::Mul || w.c.combine != Op::Add) return;
  for (size_t i = 0; i < 2; i++) {
    const ZeroPointForm x = zero_point_form(k->args[i]);
    const Expr other = k->args[1 - i];
    if (!x.x || !x.zero || !number_of(x.zero) || !is_constant(other, a) || moves_with_rows(other, w)) continue;
    const Expr zero = make_int(DType::I32, int64_t(*number_of(x.zero)));
    const Expr away = shaped->args[1 - i] * (make_int(DType::I32, 0) - zero);
    const Buffer sums = add_packed_sums(w.s, w.c, {w.n}, w.c.raxes, away, "sums of the weights times the zero point");
    w.c.init = is_const(w.c.init, 0) ? load(sums, {Expr(w.n.var)}) : w.c.init + load(sums, {Expr(w.n.var)});
    const Expr plain = cast(DType::I32, x.x);
    w.c.value = i == 0 ? plain * other : other * plain;
    return;
  }
}

// A constant factor that no row moves and that vectors cannot read as it lies: packed as [taps][columns].
void pack_weights(Window& w, const TemplateArgs& a) {
  const Apply *k = as<Apply>(w.c.value), *shaped = as<Apply>(w.c.shaped_value);
  if (!k || k->op != Op::Mul || !shaped || shaped->op != Op::Mul) return;
  for (size_t i = 0; i < 2; i++) {
    const Expr e = k->args[i];
    bool moves = !uses_var(e, w.n.var) || has_vector_form(e, w.n.var) || !is_constant(e, a);
    for (const Axis& r : w.rows) moves = moves || uses_var(e, r.var);
    if (moves) continue;
    std::vector<Axis> axes = w.c.raxes;
    axes.push_back(w.n);
    const ZeroPointForm bytes = zero_point_form(shaped->args[i]);  // are packed as they are
    const bool narrow = bool(bytes.x) && !bytes.zero;
    const Expr packed = read_packed(w.s, w.c, axes, narrow ? bytes.x : shaped->args[i]), other = k->args[1 - i];
    const Expr read = narrow ? cast(DType::I32, packed) : packed;
    w.c.value = i == 0 ? read * other : other * read;
    return;
  }
}

std::optional<Window> match(const TemplateArgs& a) {
  if (!a.canonical || !a.canonical->value) return {};
  Window w;
  w.c = *a.canonical;
  const Op op = w.c.combine;
  if (!has_lanes(w.c.value->dtype) || !op_has_lanes(op, w.c.value->dtype)) return {};
  if (op != Op::Add && op != Op::Max && op != Op::Min && op != Op::Mul) return {};
  const auto n = unit_axis(w.c);
  if (!n || n->extent.value < 4 || !uses_var(w.c.value, n->var)) return {};
  w.n = *n;
  for (const Axis& x : w.c.axes)
    if (x.var != n->var) w.rows.push_back(x);
  fold_zero_point(w, a);
  pack_weights(w, a);
  if (!has_vector_form(w.c.value, n->var) || !has_stored_form(w.c.epilogue, w.c.out->dtype, n->var)) return {};
  if (!has_vector_form(w.c.init, n->var)) return {};
  merge_axes(w.rows, {&w.c.value, &w.c.epilogue, &w.c.init}, {&w.c.out_index});
  merge_axes(w.c.raxes, {&w.c.value}, {});
  return w;
}

// Results of a row that are computed together: as many as registers hold, a divisor of the row if there is one near.
int64_t choose_pixels(const Window& w, const CpuModel& cpu) {
  const int64_t taps = points(w.c.raxes), vectors = std::max<int64_t>(1, w.columns / cpu.vector_lanes);
  const int64_t free_registers = (cpu.vector_registers - 4) / vectors - (w.weight ? taps : 0);
  const int64_t limit = std::clamp<int64_t>(std::min(free_registers, 16 / vectors), 1, kMostPixels);
  const int64_t tiled = w.rows.empty() ? 1 : w.rows.back().extent.value, pixels = std::min(limit, tiled);
  for (int64_t p = pixels; p * 2 > pixels; p--)
    if (tiled % p == 0) return p;
  return pixels;
}

// How many of the innermost taps' loops are unrolled, if a tile has at most so many copies of its body.
int64_t unrolled_loops(const Window& w, int64_t most) {
  int64_t copies = w.pixels, loops = 0;
  for (size_t i = w.c.raxes.size(); i-- > 0 && copies * w.c.raxes[i].extent.value <= most; loops++)
    copies *= w.c.raxes[i].extent.value;
  return loops;
}

void decide(Window& w, const CpuModel& cpu, const PlanEntry& plan) {
  const int64_t n = w.n.extent.value, taps = points(w.c.raxes);
  w.weight = row_invariant_factor(w);
  const int64_t per_row = std::max<int64_t>(1, 16 / cpu.vector_lanes);
  const bool filters = bool(w.weight), fits = taps <= 9 && (taps + 4) * per_row <= cpu.vector_registers;
  const bool keeps = plan.in_range(
                         "kept_weights", [&] { return filters && fits; }, 0, filters && taps <= kMostKept ? 1 : 0) == 1;
  if (!keeps) w.weight = {};
  w.byte = moving_byte(w);
  // Whole blocks are fast: partial vectors are read once more for each tap. With few registers, several rows share the
  // weights that are read for a tap.
  const bool narrow = filters && (cpu.vector_lanes < 16 || n % 64 != 0);
  const int64_t row = ceil_div(n, 16) * 16;
  w.columns = plan.in_range(
      "columns", [&] { return keeps || narrow ? 16 : std::min<int64_t>(row, std::max(64, 4 * cpu.vector_lanes)); }, 16,
      std::min(row, kMostColumns), 16);
  const int64_t tiled = w.rows.empty() ? 1 : w.rows.back().extent.value;
  w.pixels = plan.in_range(
      "rows", [&] { return choose_pixels(w, cpu); }, 1, std::min(tiled, kMostPixels));
  w.unrolled = size_t(plan.in_range(
      "unrolled", [&] { return unrolled_loops(w, 72); }, 0, unrolled_loops(w, kMostCopies)));
  const int64_t work = points(w.rows) * n * taps;
  const int64_t runs = w.rows.size() > 1 ? w.rows[0].extent.value : tiled / w.pixels;
  const int64_t blocks = ceil_div(n, w.columns);
  w.parallel = decide_parallel(plan, work >= kParallelThreshold, blocks, w.rows.empty() ? 1 : runs);
  // Rows go around columns: each thread has rows of its own, as in the kernels before and after (row_blocks.cc).
  w.row_blocks = decide_row_blocks(plan, w.parallel && !w.rows.empty(), blocks, runs, blocks_for_threads(runs));
}

class Builder {
 public:
  explicit Builder(const Window& w) : w_(w) {}

  Stmt build() {
    const int64_t blocks = ceil_div(w_.n.extent.value, w_.columns), total = blocks * w_.row_blocks;
    const std::string column_name = w_.n.var->name + "_o";
    const bool both = blocks > 1 && w_.row_blocks > 1;
    const Var part = make_var(both ? "part" : blocks > 1 ? column_name : "rows");
    const Var columns = both ? make_var(column_name) : part, row_block = both ? make_var("rows") : part;
    base_ = blocks > 1 ? Expr(columns) * Expr(w_.columns) : Expr(0);
    if (w_.row_blocks > 1) block_ = Expr(row_block);
    const int64_t whole = w_.n.extent.value / w_.columns;
    Stmt body = block();
    if (whole > 0 && whole < blocks) {  // the last block has partial vectors, the others need not pay for them
      partial_ = false;
      body = if_then(Expr(columns) < Expr(whole), block(), body);
    }
    if (total == 1) return body;
    if (both) {
      body = let(row_block, Expr(part) / Expr(blocks), body);
      body = let(columns, apply(Op::Mod, {Expr(part), Expr(blocks)}), body);
    }
    return loop(part, total, body, w_.parallel ? ForKind::Parallel : ForKind::Serial);
  }

 private:
  LanePoint at(const Point& p, const Var& v, const Expr& acc = {}) const {
    const Expr lane = base_ + Expr(v) * lanes();
    const bool whole = !partial_ || w_.n.extent.value % w_.columns == 0;
    return {p, w_.n.var, lane, whole ? Expr() : Expr(w_.n.extent) - lane, acc};
  }
  Expr used_vectors() const { return vectors(w_.n.extent.value < w_.columns ? w_.n.extent.value : w_.columns); }
  Stmt over_vectors(const std::function<Stmt(const Var& v)>& body) const {
    const Var v = make_var("v");
    return loop(v, used_vectors(), body(v), ForKind::Unroll);
  }
  Stmt over_tile(int64_t height, const std::function<Stmt(const Expr& i, const Var& v)>& body) const {
    const Var i = make_var("i");
    if (height == 1) return over_vectors([&](const Var& v) { return body(0, v); });
    return loop(i, height, over_vectors([&](const Var& v) { return body(Expr(i), v); }), ForKind::Unroll);
  }

  // The number of a tap, and its loops around `body`.
  Expr tap_index(const Point& taps) const {
    Expr e = 0;
    for (size_t i = 0; i < taps.size(); i++) e = e * Expr(w_.c.raxes[i].extent) + taps[i].second;
    return e;
  }
  Point tap_vars() const {
    Point p;
    for (const Axis& a : w_.c.raxes) p.push_back({a.var, Expr(make_var(a.var->name))});
    return p;
  }
  Stmt tap_loops(const Point& taps, Stmt body, size_t unrolled) const {
    for (size_t i = taps.size(); i-- > 0;) {
      const bool unroll = taps.size() - i <= unrolled;
      body =
          loop(as<VarRef>(taps[i].second)->var, w_.c.raxes[i].extent, body, unroll ? ForKind::Unroll : ForKind::Serial);
    }
    return body;
  }

  Stmt block() {
    weights_ = nullptr;
    const Stmt body = rows();
    return w_.weight ? with_weights(body) : body;
  }

  Stmt with_weights(const Stmt& body) {
    const Point taps = tap_vars();
    const Stmt fill = tap_loops(
        taps, over_vectors([&](const Var& v) {
          return store(weights(), {tap_index(taps), ramp(Expr(v) * lanes())}, vector_form(w_.weight, at(taps, v)));
        }),
        taps.size());
    return alloc(weights(), seq({fill, body}));
  }

  Buffer weights() {
    if (!weights_)
      weights_ = make_buffer("taps", w_.weight->dtype, {Dim(points(w_.c.raxes)), Dim(w_.columns)}, Scope::Register);
    return weights_;
  }

  Stmt rows() {
    if (w_.rows.empty()) return tile({}, 1, {});
    const Axis& tiled = w_.rows.back();
    const int64_t px = w_.pixels, whole = tiled.extent.value / px, rest = tiled.extent.value % px;
    const bool flat = w_.rows.size() == 1;
    const int64_t count = flat ? whole : w_.rows[0].extent.value, blocks = w_.row_blocks;
    Expr begin = 0, extent = count;
    if (block_) {
      begin = count % blocks == 0 ? block_ * Expr(count / blocks) : block_ * Expr(count) / Expr(blocks);
      extent = count % blocks == 0 ? Expr(count / blocks) : (block_ + Expr(1)) * Expr(count) / Expr(blocks) - begin;
    }
    Point outer;
    for (size_t i = 0; i + 1 < w_.rows.size(); i++)
      outer.push_back({w_.rows[i].var, Expr(make_var(w_.rows[i].var->name))});
    const Var t = make_var(tiled.var->name + "_o");
    Stmt full = loop(t, flat ? extent : Expr(whole), tile(outer, px, Expr(t) * Expr(px)), ForKind::Serial,
                     flat ? begin : Expr(0));
    Stmt tail = rest > 0 ? tile(outer, rest, Expr(whole * px)) : Stmt();
    if (tail && flat && bool(block_)) tail = if_then(eq(block_, Expr(blocks - 1)), tail);
    Stmt body = seq({full, tail});
    for (size_t i = outer.size(); i-- > 0;)
      body = loop(as<VarRef>(outer[i].second)->var, i == 0 ? extent : Expr(w_.rows[i].extent), body, ForKind::Serial,
                  i == 0 ? begin : Expr(0));
    return body;
  }

  Stmt tile(const Point& outer, int64_t height, const Expr& row) {
    const Buffer acc = make_buffer("acc", w_.c.value->dtype, {Dim(height), Dim(w_.columns)}, Scope::Register);
    auto point = [&](const Expr& i) {
      Point p = outer;
      if (!w_.rows.empty()) p.push_back({w_.rows.back().var, row + i});
      return p;
    };
    auto vector_index = [&](const Expr& i, const Var& v) { return Exprs{i, ramp(Expr(v) * lanes())}; };
    const Stmt start = over_tile(height, [&](const Expr& i, const Var& v) {
      return store(acc, vector_index(i, v), broadcast(vector_form(w_.c.init, at(point(i), v))));
    });
    const Point taps = tap_vars();
    const Stmt sum =
        tap_loops(taps,
                  over_tile(height,
                            [&](const Expr& i, const Var& v) {
                              Point p = point(i);
                              p.insert(p.end(), taps.begin(), taps.end());
                              if (bool(w_.byte) && !at(p, v).count) return add_bytes(acc, i, p, taps, v);
                              return store(acc, vector_index(i, v), broadcast(value(p, taps, v)), w_.c.combine);
                            }),
                  w_.unrolled);
    const Stmt finish = over_tile(height, [&](const Expr& i, const Var& v) {
      return store_lanes(w_.c.out, w_.c.out_index, w_.c.epilogue, at(point(i), v, load(acc, vector_index(i, v))));
    });
    return alloc(acc, seq({start, sum, finish}));
  }

  Stmt add_bytes(const Buffer& acc, const Expr& i, const Point& p, const Point& taps, const Var& v) {
    const Load* x = as<Load>(w_.byte);
    const LanePoint lanes_at = at(p, v);
    Point first = p;
    first.push_back({lanes_at.lane, lanes_at.base});
    return intrin("multiply_add_bytes",
                  {{acc, {i}}, {x->buffer, {index_at(x->index[0], first)}}, {weights(), {tap_index(taps)}}},
                  {Expr(v) * lanes()});
  }

  Expr value(const Point& p, const Point& taps, const Var& v) {
    if (!w_.weight) return vector_form(w_.c.value, at(p, v));
    const Apply* k = as<Apply>(w_.c.value);
    const bool first = k->args[0].same_as(w_.weight);
    const Expr kept = load(weights(), {tap_index(taps), ramp(Expr(v) * lanes())});
    return vector_form(k->args[first ? 1 : 0], at(p, v)) * kept;
  }

  const Window& w_;
  Expr base_, block_;    // first column; row block, null: one
  bool partial_ = true;  // vectors may end beyond the last column
  Buffer weights_;
};

}  // namespace

std::optional<Scheduled> schedule_window(const TemplateArgs& a) {
  auto w = match(a);
  if (!w) return {};
  if (w->c.value->dtype == DType::I32) w->c.epilogue = pack_known(w->s, w->c, a.constant_input, w->c.epilogue, w->n);
  decide(*w, with_lanes_of(a.cpu, w->c.value->dtype), a.plan);
  Scheduled s = std::move(w->s);
  s.body = seq({fill_border(w->c), Builder(*w).build()});
  bind_operands(s, w->c);
  s.family = "window";
  s.description = to_text(w->pixels) + (w->pixels == 1 ? " result by " : " results by ") + to_text(w->columns) +
                  " columns in registers";
  if (w->weight) s.description += ", and the weights of these columns";
  if (w->row_blocks > 1) s.description += "; rows in " + to_text(w->row_blocks) + " chunks";
  return s;
}

}  // namespace tc
