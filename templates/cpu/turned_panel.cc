// A panel of a right factor whose terms, not its columns, lie side by side: tiles of VL by VL elements are turned in registers.
//
//   for columns, VL at a time: for the sum, VL at a time:
//     t[i] = q[column + lane, k + i]
//     panel[k + i][column + lane] = t[i]                      i < VL
//
// Element by element, each store would go to another line of the cache; copying took as long as multiplying by 32 rows.
//
// Columns that do lie side by side are copied where several tiles of rows read them, if the last panel would be a part of one, so that
// every vector of every panel were a partial one, or if rows are far from each other.
#include "ir/loop/build.h"
#include "ir/loop/intrin.h"
#include "ir/loop/max_lanes.h"
#include "ir/open_size.h"
#include "templates/cpu/contraction.h"

namespace tc {

bool can_turn(const Contraction& m) {
  return m.right == Contraction::Right::Repacked && m.type == DType::F32 && !m.bytes && !m.k_end && !m.rows.empty() &&
         m.q->dtype == DType::F32 && m.q_at.of(m.k.back().var) == 1 && m.k.back().extent.value >= kMaxLanes &&
         m.n.extent.value >= kMaxLanes && !is_open(m.n.extent.value) && !is_open(points(m.k));
}

Stmt turned_panel(const Contraction& m, int64_t columns, std::vector<std::pair<Var, Expr>> at, const Expr& panel,
                  const Buffer& to, const Expr& begin) {
  const int64_t n = m.n.extent.value, terms = m.k.back().extent.value, in_tiles = terms / kMaxLanes * kMaxLanes;
  const Expr first = panel * Expr(columns);
  const bool all = n % columns == 0;
  const Var vectors =
      make_var("whole");  // columns of this panel that are whole vectors; behind them are others one by one, and zeros
  const Expr whole = all ? Expr(columns) : Expr(vectors);
  Expr k = 0;
  std::vector<Var> ks;
  for (const Axis& a : m.k) {
    ks.push_back(make_var(a.var->name));
    if (ks.size() == m.k.size()) break;
    at.push_back({a.var, Expr(ks.back())});
    k = k * Expr(a.extent) + Expr(ks.back());
  }
  k = k * Expr(terms);
  const auto from = [&](const Expr& column, const Expr& term) {
    auto there = at;
    there.push_back({m.n.var, first + column});
    there.push_back({m.k.back().var, term});
    return offset_expr(m.q_at, there);
  };
  const auto target = [&](const Expr& column, const Expr& term) { return begin + (k + term) * Expr(columns) + column; };

  const Var column_o = make_var(m.n.var->name + "_o"), term_o = make_var(ks.back()->name + "_o"), i = make_var("i");
  const Expr column = Expr(column_o) * lanes(), term = Expr(term_o) * lanes();
  const Buffer tile = make_buffer(m.q->name + "_tile", DType::F32, {Dim(kMaxLanes), Dim(kMaxLanes)}, Scope::Register);
  const Stmt read = intrin("load_transposed", {{tile, {0}}, {m.q, {from(column, term)}}}, {Expr(m.q_at.of(m.n.var))});
  const Stmt write = store(to, {ramp(target(column, term + Expr(i)))}, load(tile, {Expr(i), ramp(0)}));
  const Stmt turned = alloc(tile, seq({read, loop(i, lanes(), write, ForKind::Unroll)}));
  const Var c = make_var("n"), t = ks.back();
  const auto one_by_one = [&](const Expr& value) { return store(to, {target(Expr(c), Expr(t))}, value); };
  const Stmt one = one_by_one(load(m.q, {from(Expr(c), Expr(t))}));
  Stmts list = {loop(column_o, whole / lanes(), loop(term_o, Expr(in_tiles) / lanes(), turned))};
  if (in_tiles < terms) list.push_back(loop(c, whole, loop(t, terms - in_tiles, one, ForKind::Serial, in_tiles)));
  if (!all) {
    const Stmt rest =
        if_then(first + Expr(c) < Expr(n), loop(t, terms, one), loop(t, terms, one_by_one(zero(DType::F32))));
    list.push_back(loop(c, Expr(columns) - whole, rest, ForKind::Serial, whole));
  }
  Stmt body = seq(list);
  for (size_t d = ks.size() - 1; d-- > 0;) body = loop(ks[d], m.k[d].extent, body);
  return all ? body : let(vectors, min(Expr(n / kMaxLanes * kMaxLanes) - first, Expr(columns)), body);
}

bool should_copy(const Contraction& m, const ContractionPlan& plan) {
  constexpr int64_t kFar = 8192;  // bytes between rows
  if (m.right != Contraction::Right::Direct || m.type != DType::F32 || m.bytes || bool(m.k_end) || bool(m.n_end) ||
      m.q->dtype != DType::F32 || m.q_at.of(m.n.var) != 1 || plan.row_blocks > 1 || is_open(m.n.extent.value) ||
      is_open(points(m.k)) || is_open(points(m.rows)))
    return false;
  const int64_t tiles = ceil_div(points(m.rows), plan.tile.rows);
  return m.n.extent.value % plan.tile.columns != 0 ? tiles >= 2 : m.q_at.of(m.k.back().var) * 4 >= kFar && tiles >= 8;
}

Stmt copied_panel(const Contraction& m, int64_t columns, std::vector<std::pair<Var, Expr>> at, const Expr& panel,
                  const Buffer& to) {
  const int64_t n = m.n.extent.value;
  const Expr first = panel * Expr(columns);
  Expr k = 0;
  std::vector<Var> ks;
  for (const Axis& a : m.k) {
    ks.push_back(make_var(a.var->name));
    at.push_back({a.var, Expr(ks.back())});
    k = k * Expr(a.extent) + Expr(ks.back());
  }
  const Var v = make_var("v");
  const Expr column = Expr(v) * lanes();
  at.push_back({m.n.var, first + column});
  const Expr from = offset_expr(m.q_at, at), rest = Expr(n) - (first + column);
  const Expr row = n % columns == 0 ? load(m.q, {ramp(from)}) : partial(load(m.q, {ramp(from)}), rest);
  Stmt body = loop(v, Expr(columns) / lanes(), store(to, {ramp(k * Expr(columns) + column)}, row));
  for (size_t d = ks.size(); d-- > 0;) body = loop(ks[d], m.k[d].extent, body);
  return body;
}

}  // namespace tc
