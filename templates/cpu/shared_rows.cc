// A right factor that lies with another axis innermost, and whose windows overlap: the last convolution of a network
// that works with channels last and ends with channels first reads x[oh + kh][ow + kw][ic] into vectors along ow.
// Panels would hold every element once for each step of the window; rows along n hold it once:
//
//   x_rows[ic][kh][w] = x[oh + kh][w][ic]        w = 0 .. ow + kw - 1
//   acc[oc][ow] += w[oc][ic][kh][kw] * x_rows[ic][kh][ow + kw]
#include "ir/loop/build.h"
#include "templates/cpu/contraction.h"

namespace tc {
namespace {

struct Overlap {
  size_t axis;     // of k: it moves q as n does
  int64_t factor;  // columns a step
  int64_t width;   // of a row
};

std::optional<Overlap> overlap(const Contraction& m) {
  const int64_t stride = m.q_at.of(m.n.var), n = m.n.extent.value;
  if (m.right != Contraction::Right::Repacked || m.rows.empty() || stride <= 1) return {};
  std::optional<Overlap> best;
  for (size_t i = 0; i < m.k.size(); i++) {
    const int64_t step = m.q_at.of(m.k[i].var), extent = m.k[i].extent.value;
    if (step < stride || step % stride != 0) continue;
    const Overlap o{i, step / stride, n + step / stride * (extent - 1)};
    if (o.width < n * extent && (!best || o.factor < best->factor)) best = o;
  }
  return best;
}

}  // namespace

bool has_shared_rows(const Contraction& m) { return overlap(m).has_value(); }

SharedRows shared_rows(const Contraction& m, int64_t columns, const std::vector<std::pair<Var, Expr>>& at) {
  const std::optional<Overlap> o = overlap(m);
  check(o.has_value(), "rows are shared where windows overlap");
  SharedRows r;
  r.at.coefficient[m.n.var.get()] = 1;
  const Var w = make_var("w");
  std::vector<std::pair<Var, Expr>> from = at;
  from.push_back({m.n.var, Expr(w)});
  int64_t size = o->width;
  std::vector<std::pair<Var, Axis>> loops;
  for (size_t i = m.k.size(); i-- > 0;) {
    const Axis& a = m.k[i];
    r.at.coefficient[a.var.get()] = i == o->axis ? o->factor : size;
    if (i == o->axis) continue;
    loops.push_back({make_var(a.var->name), a});
    from.push_back({a.var, Expr(loops.back().first)});
    size *= a.extent.value;
  }
  Expr row = 0;
  for (const auto& [v, a] : loops) row = Expr(v) * Expr(r.at.of(a.var)) + row;
  // Vectors of the last row reach beyond it.
  const int64_t slack = (columns - m.n.extent.value % columns) % columns;
  r.buffer = make_buffer(m.q->name + "_rows", m.type, {Dim(size + slack)}, Scope::Workspace);
  Stmt copy = loop(w, o->width, store(r.buffer, {row + Expr(w)}, load(m.q, {offset_expr(m.q_at, from)})));
  for (const auto& [v, a] : loops) copy = loop(v, a.extent, copy);
  const Var pad = make_var("w");
  const Stmt zeros = slack > 0 ? loop(pad, slack, store(r.buffer, {Expr(size) + Expr(pad)}, zero(m.type))) : Stmt();
  r.copy = comment(m.q->name + " in rows along " + m.n.var->name, seq({copy, zeros}));
  return r;
}

}  // namespace tc
