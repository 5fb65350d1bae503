// One register tile of a sum of products (contraction.cc): what the sums start with, the products, and the epilogue.
#include "ir/loop/build.h"
#include "ir/loop/visit.h"
#include "templates/cpu/contraction_builder.h"
#include "templates/cpu/lanes.h"

namespace tc {

// --- one tile of `mr` rows from `row` on
Stmt ContractionBuilder::tile(int64_t mr, const Expr& row) {
  if (plan_.tile_step > 0) return byte_tile(mr, row);
  const bool has_rows = !m_.rows.empty();
  const int64_t height = has_rows ? mr : plan_.unroll_k;
  const Shape shape = plan_.tile.vectors > 0 ? Shape{Dim(height), Dim(plan_.tile.vectors), Dim(kMaxLanes)}
                                             : Shape{Dim(height), Dim(columns_)};
  const Buffer acc = make_buffer("acc", m_.c.reduced->dtype, shape, Scope::Register);
  const Stmt body = with_row_sums(height, [&] {
    return seq({start(acc, height, has_rows), m_.bytes ? sum_of_quads(acc, height, row) : sum(acc, height, row),
                has_rows ? Stmt() : join(acc), finish(acc, mr, row)});
  });
  return alloc(acc, body);
}

Expr ContractionBuilder::column(const Var& v) const {
  return (strip_ ? strip_ * Expr(plan_.tile.vectors) + Expr(v) : Expr(v)) * lanes();
}
// Vector v of row i of the tile.
Exprs ContractionBuilder::sums_at(const Expr& i, const Var& v) const {
  if (strip_) return {i, Expr(v), ramp(0)};
  return {i, ramp(column(v))};
}
Expr ContractionBuilder::lane_base(const Var& v) const { return panel_ * Expr(columns_) + column(v); }
// Lanes of vector v that exist; null where whole vectors do.
Expr ContractionBuilder::lane_count(const Var& v) const {
  return m_.n.extent.value % columns_ == 0 ? Expr() : Expr(m_.n.extent) - lane_base(v);
}

Stmt ContractionBuilder::tile_loops(int64_t height, const std::function<Stmt(const Expr& i, const Var& v)>& body) {
  const Var i = make_var("i"), v = make_var("v");
  if (height == 1) return loop(v, vectors_in_strip(), body(Expr(0), v), ForKind::Unroll);
  return loop(i, height, loop(v, vectors_in_strip(), body(Expr(i), v), ForKind::Unroll), ForKind::Unroll);
}

// Columns of a panel that may exist.
int64_t ContractionBuilder::used_columns() const { return plan_.panels == 1 ? m_.n.extent.value : columns_; }
Expr ContractionBuilder::vectors_in_strip() const {
  return strip_ ? Expr(plan_.tile.vectors) : vectors(used_columns());
}

// Runs `make` for every strip of a panel.
Stmt ContractionBuilder::in_strips(const std::function<Stmt()>& make) {
  const int64_t width = plan_.tile.vectors, used = used_columns();
  if (width == 0 || m_.rows.empty()) return make();
  const Var s = make_var("s");
  strip_ = Expr(s);
  const Stmt body = make();
  strip_ = {};
  const bool whole = used % (width * kMaxLanes) == 0;
  return loop(s, whole ? vectors(used / width) : (vectors(used) + Expr(width - 1)) / Expr(width), body);
}

Stmt ContractionBuilder::start(const Buffer& acc, int64_t height, bool has_rows) {
  return tile_loops(height, [&](const Expr& i, const Var& v) {
    const Expr first = vector_form(m_.start, {at_, m_.n.var, lane_base(v), lane_count(v), {}});
    const bool is_zero = as_const_number(m_.start) && *as_const_number(m_.start) == 0;
    // Partial sums other than the first start from zero.
    const Expr value = has_rows || is_zero || height == 1 ? first : select(eq(i, Expr(0)), first, zero(m_.type));
    return store(acc, sums_at(i, v), broadcast(value));
  });
}

// Fresh variables for the axes of the sum, also as indices in `at`; returns the number of the step that they are at.
Expr ContractionBuilder::along_sum(Point& at, std::vector<Var>& ks) const {
  Expr k = 0;
  for (const Axis& a : m_.k) {
    ks.push_back(make_var(a.var->name));
    at.push_back({a.var, Expr(ks.back())});
    k = k * Expr(a.extent) + Expr(ks.back());
  }
  return k;
}

// The steps of one axis of the sum, as many as the row has: the first, and what is behind the last.
std::pair<Expr, Expr> ContractionBuilder::steps_of(const Axis& k) const {
  if (const auto named = row_steps_.find(k.var.get()); named != row_steps_.end()) return named->second;
  Expr begin = 0, end = m_.k_end ? m_.k_end : Expr(k.extent);
  for (const TapRange& r : m_.ranges) {
    if (r.k != k.var) continue;
    const auto loop_row = std::find_if(at_.begin(), at_.end(), [&](const auto& p) { return p.first == r.row; });
    const Expr row = loop_row != at_.end() ? loop_row->second : Expr(ranged_row_);
    const auto steps_below = [&](int64_t n) {
      return (max(Expr(n) - row * Expr(r.row_step), Expr(0)) + Expr(r.k_step - 1)) / Expr(r.k_step);
    };
    begin = max(begin, steps_below(r.begin));
    end = min(end, steps_below(r.end));
  }
  return {begin, end};
}

// Names for the steps that loops around the tiles decide.
std::vector<std::pair<Var, Expr>> ContractionBuilder::name_row_steps() {
  std::vector<std::pair<Var, Expr>> names;
  for (const Axis& k : m_.k) {
    const auto by_loop = [&](const TapRange& r) { return r.k == k.var && r.row != m_.rows.back().var; };
    if (std::none_of(m_.ranges.begin(), m_.ranges.end(), by_loop)) continue;
    const auto [begin, end] = steps_of(k);
    const Var first = make_var("first_" + k.var->name), behind = make_var("behind_" + k.var->name);
    names.insert(names.end(), {{first, begin}, {behind, end}});
    row_steps_[k.var.get()] = {Expr(first), Expr(behind)};
  }
  return names;
}

Stmt ContractionBuilder::sum(const Buffer& acc, int64_t height, const Expr& row) {
  const bool has_rows = !m_.rows.empty();
  Point at = at_;
  std::vector<Var> ks;
  const Expr k = along_sum(at, ks);
  const int64_t u = has_rows ? 1 : height;
  auto step = [&](const Expr& kk, const Point& where, int64_t rows_here, bool unrolled) {
    Stmt update = tile_loops(rows_here, [&](const Expr& i, const Var& v) {
      Point p = where;
      if (has_rows) p.push_back({m_.rows.back().var, row + i});
      Expr left = load(m_.p, {left_index(p, unrolled ? i : Expr(0))});
      return store(acc, sums_at(i, v), left * right(kk + (unrolled ? i : Expr(0)), where, unrolled ? i : Expr(0), v),
                   Op::Add);
    });
    Stmt fetch;
    if (prefetch_) fetch = prefetch(packed_, {prefetch_ + kk * Expr(plan_.prefetch)});
    return seq({fetch, update});
  };
  Stmt body;
  if (u == 1) {
    body = step(k, at, height, false);
    for (size_t i = ks.size(); i-- > 0;) {
      const auto [begin, end] = steps_of(m_.k[i]);
      body = is_const(begin, 0) ? loop(ks[i], end, body) : loop(ks[i], end - begin, body, ForKind::Serial, begin);
    }
    return body;
  }
  // One k axis, u steps at a time into u partial sums; what is left goes to the first.
  const Expr n = m_.k_end ? m_.k_end : Expr(m_.k[0].extent), left = apply(Op::Mod, {n, Expr(u)});
  const Var k_o = make_var(m_.k[0].var->name + "_o");
  Point blocked = at_;
  blocked.push_back({m_.k[0].var, Expr(k_o) * Expr(u)});
  Stmt ahead;
  if (plan_.fetch_ahead) ahead = fetch_ahead(packed_, right_base() + Expr(k_o) * Expr(u * columns_), u * columns_);
  Stmt main = loop(k_o, n / Expr(u), seq({ahead, step(Expr(k_o) * Expr(u), blocked, u, true)}));
  if (is_const(left, 0)) return main;
  Point rest = at_;
  rest.push_back({m_.k[0].var, Expr(ks[0])});
  const Stmt last = step(Expr(ks[0]), rest, 1, false);
  return seq({main, loop(ks[0], left, last, ForKind::Serial, n - left)});
}

Expr ContractionBuilder::left_index(const Point& at, const Expr& k_extra) const {
  const Expr e = offset_expr(m_.p_at, at);
  return is_const(k_extra, 0) ? e : e + k_extra * Expr(m_.p_at.of(m_.k[0].var));
}

Expr ContractionBuilder::right_base() const {
  Expr matrix = 0;
  if (m_.right == Contraction::Right::Packed)
    for (const Axis& a : m_.q_outer)
      for (const auto& [v, e] : at_)
        if (v == a.var) matrix = matrix * Expr(a.extent) + e;
  const int64_t panel = steps_ * columns_ * (m_.bytes ? kQuad : 1);
  if (one_panel_) return 0;
  return matrix * Expr(plan_.panels * panel) + panel_ * Expr(panel);
}

Expr ContractionBuilder::right(const Expr& k, const Point& at, const Expr& k_extra, const Var& v) {
  if (m_.right != Contraction::Right::Direct) {
    const Expr e = load(packed_, {ramp(right_base() + k * Expr(columns_) + column(v))});
    return is_half(e->dtype) ? cast(DType::F32, e) : e;
  }
  Point p = at;
  p.push_back({m_.n.var, lane_base(v)});
  Expr index = offset_expr(m_.q_at, p);
  if (!is_const(k_extra, 0)) index = index + k_extra * Expr(m_.q_at.of(m_.k[0].var));
  const Expr e = load(m_.q, {ramp(index)});
  const Expr count = whole_vectors_ ? Expr() : lane_count(v);
  return count ? partial(e, count) : e;
}

// Adds the partial sums up in the first.
Stmt ContractionBuilder::join(const Buffer& acc) {
  if (plan_.unroll_k == 1) return {};
  const Var i = make_var("i"), v = make_var("v");
  const Stmt add = store(acc, sums_at(0, v), load(acc, sums_at(Expr(i), v)), Op::Add);
  return loop(i, plan_.unroll_k - 1, loop(v, vectors_in_strip(), add, ForKind::Unroll), ForKind::Unroll, 1);
}

Stmt ContractionBuilder::finish(const Buffer& acc, int64_t mr, const Expr& row) {
  auto point = [&](const Expr& i, const Var& v, const Expr& sum) {
    LanePoint p{at_, m_.n.var, lane_base(v), lane_count(v), sum};
    if (!m_.rows.empty()) p.at.push_back({m_.rows.back().var, row + i});
    return p;
  };
  const bool two_steps = is_costly(m_.c.epilogue) && mr > 1 && !m_.bytes && m_.c.out->dtype == m_.type;
  const Expr plain = load(m_.c.reduced, {});
  const Stmt out = tile_loops(mr, [&](const Expr& i, const Var& v) {
    LanePoint p = point(i, v, load(acc, sums_at(i, v)));
    p.acc = less_row_sum(p.acc, i, p);
    return store_lanes(m_.c.out, m_.c.out_index, two_steps ? plain : m_.c.epilogue, p);
  });
  if (!two_steps) return out;
  // A long epilogue in the unrolled tile would push the sums out of their registers: it works on what was stored.
  const Var i = make_var("i"), v = make_var("v");
  LanePoint p = point(Expr(i), v, {});
  auto at = p.at;
  at.push_back({p.lane, p.base});
  p.acc = load(m_.c.out, {ramp(index_at(m_.c.out_index, at))});
  if (p.count) p.acc = partial(p.acc, p.count);
  const Stmt again = store_lanes(m_.c.out, m_.c.out_index, m_.c.epilogue, p);
  return seq({out, loop(i, mr, loop(v, vectors_in_strip(), again))});
}

}  // namespace tc
