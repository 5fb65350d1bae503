// Sums of products of bytes: what differs from sums of floats (contraction.cc).
//
//   for k, four at a time: acc[i][v] += p[row i, k .. k + 3] . q[k .. k + 3, v]      dot4: exact, in 32 bits
//
// The last axis of k walks p element by element and is cut into quads; the last quad of a run may be shorter. Weights
// are packed as [panel][k quads][column in panel][4], zeros where there is no column or step, so that a vector of sums
// takes one vector of weights. dot4 multiplies bytes without a sign by bytes with one: it adds 128 to signed p. With
// the zero point z of p that is
//
//   sum(k) (p - z) * q   =   sum(k) (p + 128) * q  -  (z + 128) * sum(k) q
//
// and the second term, which depends on the column alone, is part of what the sums start with. Where a zero point of q
// is left, too, the tile sums every row of p as well (dot4 with ones), and the epilogue takes zero * row sum away.
#include "ir/loop/build.h"
#include "ir/loop/conditions.h"
#include "ir/loop/intrin.h"
#include "ir/loop/visit.h"
#include "support/text.h"
#include "templates/cpu/contraction_builder.h"
#include "templates/points.h"

namespace tc {
namespace {

// How many of the last axes of q_k the last axis of k is made of.
size_t merged_into_last(const Contraction& m) {
  int64_t n = 1;
  size_t count = 0;
  while (n < m.k.back().extent.value) n *= m.q_k[m.q_k.size() - ++count].extent.value;
  check(n == m.k.back().extent.value, "axes are merged whole");
  return std::max<size_t>(count, 1);
}

Expr negative(const Expr& e) { return make_int(DType::I32, 0) - e; }

}  // namespace

int64_t quads_per_run(const Contraction& m) { return ceil_div(m.k.back().extent.value, kQuad); }

void ContractionBuilder::pack_quads(Scheduled& s) {
  const Var panel = make_var("nb"), column = make_var("ni"), quad = make_var("k4"), part = make_var("q");
  const Expr at = Expr(panel) * Expr(columns_) + Expr(column), step = Expr(quad) * Expr(kQuad) + Expr(part);
  const size_t outer = m_.q_k.size() - merged_into_last(m_);
  VarMap to = point_at({m_.q_k.begin() + std::ptrdiff_t(outer), m_.q_k.end()}, step);
  to[m_.n.var.get()] = at;
  Expr value = substitute(m_.q_value, to), exists;
  if (m_.n.extent.value % columns_ != 0) exists = at < Expr(m_.n.extent);
  if (m_.k.back().extent.value % kQuad != 0) exists = both(exists, step < Expr(m_.k.back().extent));
  if (exists) value = select(exists, value, make_int(DType::I8, 0));
  std::vector<Axis> axes = m_.q_outer;
  axes.push_back({panel, Dim(plan_.panels)});
  axes.insert(axes.end(), m_.q_k.begin(), m_.q_k.begin() + std::ptrdiff_t(outer));
  axes.push_back({quad, Dim(quads_per_run(m_))});
  axes.push_back({column, Dim(columns_)});
  axes.push_back({part, Dim(kQuad)});
  std::string layout = "packed: ";
  for (const Axis& a : m_.q_outer) layout += a.var->name + ", ";
  layout += m_.n.var->name + " block, ";
  for (size_t i = 0; i < outer; i++) layout += m_.q_k[i].var->name + ", ";
  packed_ = add_packed(s, m_.c, std::move(axes), value,
                       layout + m_.k.back().var->name + " / 4, " + m_.n.var->name + " in block, 4");
  if (!m_.q_zero) return;
  const std::vector<Axis> vector = {{make_var("ni"), Dim(kMaxLanes)}, {make_var("q"), Dim(kQuad)}};
  ones_ = add_packed(s, m_.c, vector, make_int(DType::I8, 1), "ones, which sum rows of the left factor");
}

Stmt ContractionBuilder::sum_of_quads(const Buffer& acc, int64_t height, const Expr& row) {
  Point at = at_;
  std::vector<Var> ks;
  Expr run = 0;
  for (size_t i = 0; i + 1 < m_.k.size(); i++) {
    ks.push_back(make_var(m_.k[i].var->name));
    at.push_back({m_.k[i].var, Expr(ks.back())});
    run = run * Expr(m_.k[i].extent) + Expr(ks.back());
  }
  const int64_t length = m_.k.back().extent.value, quads = quads_per_run(m_);
  auto step = [&](const Expr& quad, int64_t count) {
    const Expr kk = run * Expr(quads) + quad;
    Point where = at;
    where.push_back({m_.k.back().var, quad * Expr(kQuad)});
    const Stmt update = tile_loops(height, [&](const Expr& i, const Var& v) {
      Point p = where;
      if (!m_.rows.empty()) p.push_back({m_.rows.back().var, row + i});
      const Expr weights = right_base() + kk * Expr(columns_ * kQuad) + column(v) * Expr(kQuad);
      const Exprs sums = strip_ ? Exprs{i, Expr(v)} : Exprs{i};
      const Expr first = strip_ ? Expr(0) : column(v);
      return intrin("dot4", {{acc, sums}, {m_.p, {left_index(p, 0)}}, {packed_, {weights}}}, {first, Expr(count)});
    });
    Stmt row_sums;
    if (row_sums_) {
      const Var i = make_var("i");
      if (!m_.rows.empty()) where.push_back({m_.rows.back().var, row + Expr(i)});
      const Stmt add =
          intrin("dot4", {{row_sums_, {Expr(i)}}, {m_.p, {left_index(where, 0)}}, {ones_, {0}}}, {0, Expr(count)});
      row_sums = loop(i, height, add, ForKind::Unroll);
    }
    Stmt fetch;
    if (prefetch_) fetch = prefetch(packed_, {(prefetch_ + kk * Expr(plan_.prefetch)) * Expr(kQuad)});
    return seq({fetch, update, row_sums});
  };
  const Var k = make_var(m_.k.back().var->name + "_o");
  Stmt body;
  if (length >= kQuad) body = loop(k, length / kQuad, step(Expr(k), kQuad));
  if (length % kQuad != 0) body = seq({body, step(Expr(length / kQuad), length % kQuad)});
  for (size_t i = ks.size(); i-- > 0;) body = loop(ks[i], m_.k[i].extent, body);
  return body;
}

Stmt ContractionBuilder::with_row_sums(int64_t height, const std::function<Stmt()>& tile) {
  if (!m_.q_zero) return tile();
  row_sums_ = make_buffer("row_sums", DType::I32, {Dim(height), Dim(kMaxLanes)}, Scope::Register);
  const Var i = make_var("i");
  const Stmt zero = store(row_sums_, {Expr(i), ramp(0)}, broadcast(make_int(DType::I32, 0)));
  return alloc(row_sums_, seq({loop(i, height, zero, ForKind::Unroll), tile()}));
}

Expr ContractionBuilder::less_row_sum(const Expr& sum, const Expr& i, const LanePoint& p) const {
  if (!m_.q_zero) return sum;
  return sum - load(row_sums_, {i, ramp(0)}) * vector_form(m_.q_zero, p);
}

void fold_zero_points(Contraction& m, Scheduled& s, bool signed_as_unsigned) {
  Expr zero = m.p_zero;
  if (m.p->dtype == DType::I8 && signed_as_unsigned)
    zero = zero ? zero + make_int(DType::I32, 128) : make_int(DType::I32, 128);
  if (!zero) return;
  // Row sums are of p as dot4 reads it: zero points and all.
  if (m.q_zero) {
    const Expr back = m.q_zero * (zero * make_int(DType::I32, points(m.k)));
    m.start = is_const(m.start, 0) ? back : m.start + back;
  }
  std::vector<Axis> axes = m.q_outer;
  axes.push_back(m.n);
  const bool known = loads_of(zero).empty();  // then the products with it are packed
  Expr value = cast(DType::I32, m.q_value);
  if (known) value = value * negative(zero);
  const Buffer sums = add_packed_sums(s, m.c, axes, m.q_k, value,
                                      known ? "sums of the weights times the zero point" : "sums of the weights");
  const Expr all = load(sums, {point_number(axes)}), away = known ? all : all * negative(zero);
  m.start = is_const(m.start, 0) ? away : m.start + away;
}

}  // namespace tc
