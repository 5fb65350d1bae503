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
// and the second term, which depends on the column alone, is part of what the sums start with.
#include "ir/loop/build.h"
#include "ir/loop/intrin.h"
#include "ir/loop/visit.h"
#include "support/text.h"
#include "templates/cpu/contraction_builder.h"

namespace tc {
namespace {

// Points of m.q_k whose numbers in row-major order are e.
std::vector<std::pair<const VarDef*, Expr>> decoded(const std::vector<Axis>& axes, Expr e) {
  std::vector<std::pair<const VarDef*, Expr>> at;
  for (size_t i = axes.size(); i-- > 0;) {
    at.push_back({axes[i].var.get(), i == 0 ? e : apply(Op::Mod, {e, Expr(axes[i].extent)})});
    e = e / Expr(axes[i].extent);
  }
  return at;
}

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
  VarMap to{{m_.n.var.get(), at}};
  for (const auto& [v, e] : decoded({m_.q_k.begin() + std::ptrdiff_t(outer), m_.q_k.end()}, step)) to[v] = e;
  Expr value = substitute(m_.q_value, to), exists;
  auto need = [&](const Expr& condition) { exists = exists ? exists && condition : condition; };
  if (m_.n.extent.value % columns_ != 0) need(at < Expr(m_.n.extent));
  if (m_.k.back().extent.value % kQuad != 0) need(step < Expr(m_.k.back().extent));
  if (exists) value = select(exists, value, make_int(DType::I8, 0));
  std::vector<Axis> axes = m_.q_outer;
  axes.push_back({panel, Dim(plan_.panels)});
  axes.insert(axes.end(), m_.q_k.begin(), m_.q_k.begin() + std::ptrdiff_t(outer));
  axes.push_back({quad, Dim(quads_per_run(m_))});
  axes.push_back({column, Dim(columns_)});
  axes.push_back({part, Dim(kQuad)});
  std::string words = "packed: ";
  for (const Axis& a : m_.q_outer) words += a.var->name + ", ";
  words += m_.n.var->name + " block, ";
  for (size_t i = 0; i < outer; i++) words += m_.q_k[i].var->name + ", ";
  packed_ = add_packed(s, m_.c, std::move(axes), value,
                       words + m_.k.back().var->name + " / 4, " + m_.n.var->name + " in block, 4");
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
      const Expr weights = right_base() + kk * Expr(columns_ * kQuad) + Expr(v) * Expr(kQuad) * lanes();
      return intrin("dot4", {{acc, {i}}, {m_.p, {left_index(p, 0)}}, {packed_, {weights}}}, {column(v), Expr(count)});
    });
    Stmt fetch;
    if (prefetch_) fetch = prefetch(packed_, {(prefetch_ + kk * Expr(plan_.prefetch)) * Expr(kQuad)});
    return seq({fetch, update});
  };
  const Var k = make_var(m_.k.back().var->name + "_o");
  Stmt body;
  if (length >= kQuad) body = loop(k, length / kQuad, step(Expr(k), kQuad));
  if (length % kQuad != 0) body = seq({body, step(Expr(length / kQuad), length % kQuad)});
  for (size_t i = ks.size(); i-- > 0;) body = loop(ks[i], m_.k[i].extent, body);
  return body;
}

void fold_zero_point(Contraction& m, Scheduled& s) {
  Expr zero = m.p_zero;
  if (m.p->dtype == DType::I8) zero = zero ? zero + make_int(DType::I32, 128) : make_int(DType::I32, 128);
  if (!zero) return;
  std::vector<Axis> axes = m.q_outer;
  axes.push_back(m.n);
  const bool known = loads_of(zero).empty();  // then the products with it are packed
  Expr value = cast(DType::I32, m.q_value);
  if (known) value = value * negative(zero);
  const Buffer sums = add_packed_sums(s, m.c, axes, m.q_k, value,
                                      known ? "sums of the weights times the zero point" : "sums of the weights");
  Expr at = 0;
  for (const Axis& a : axes) at = at * Expr(a.extent) + Expr(a.var);
  const Expr all = load(sums, {at}), away = known ? all : all * negative(zero);
  m.start = is_const(m.start, 0) ? away : m.start + away;
}

}  // namespace tc
