// Moves that transpose memory, with arithmetic around them: what neighbours in the result read is far apart.
//
//   tile[c][a] = x[.., c, .., a]     32 x 32 elements, neighbouring threads read neighbours of x
//   barrier
//   y[.., a, .., c] = tile[c][a]     and write neighbours of y
//
// Rows of the tile are padded to 33, so that its columns fall into different banks.
#include <algorithm>

#include "ir/loop/build.h"
#include "ir/loop/conditions.h"
#include "ir/loop/equal.h"
#include "ir/loop/visit.h"
#include "templates/cuda/flat_point.h"
#include "templates/cuda/template.h"

namespace tc {
namespace {

constexpr int64_t kTile = 32;   // a warp reads a row of it
constexpr int64_t kRows = 8;    // that a block reads at once, where the model decides
constexpr int64_t kLeast = 16;  // shorter axes leave most of a tile empty

// Loads that are made at every point.
void certain_loads(const Expr& e, std::vector<const Load*>& list) {
  if (const Load* l = as<Load>(e)) return list.push_back(l);
  if (const Cast* k = as<Cast>(e)) return certain_loads(k->value, list);
  if (const Select* k = as<Select>(e)) return certain_loads(k->condition, list);
  const Apply* k = as<Apply>(e);
  if (!k || k->op == Op::And || k->op == Op::Or || k->op == Op::Index) return;
  for (const Expr& x : k->args) certain_loads(x, list);
}

struct TransposedAxes {
  size_t inner, outer;  // axes: neighbours in the result, neighbours in the operands
  Exprs loads;          // through tiles
};

std::optional<TransposedAxes> match(const Canonical& c) {
  const std::vector<Var> vars = vars_of(c.axes);
  const auto out = offset_of(c.out_index, vars);
  if (!out) return {};
  size_t inner = vars.size();
  for (size_t i = 0; i < vars.size(); i++)
    if (out->of(vars[i]) == 1) inner = i;
  if (inner == vars.size() || c.axes[inner].extent.value < kLeast) return {};
  TransposedAxes t{inner, vars.size(), {}};
  std::vector<const Load*> loads;
  certain_loads(c.epilogue, loads);
  for (const Load* l : loads) {
    const auto o = l->index.size() == 1 ? offset_of(l->index[0], vars) : std::nullopt;
    if (!o || std::abs(o->of(vars[inner])) <= 1) continue;
    const Expr read = load(l->buffer, l->index);
    if (std::any_of(t.loads.begin(), t.loads.end(), [&](const Expr& e) { return structurally_equal(e, read); }))
      continue;
    for (size_t i = 0; i < vars.size(); i++)
      if (o->of(vars[i]) == 1 && c.axes[i].extent.value >= kLeast && (t.outer == vars.size() || t.outer == i)) {
        t.outer = i;
        t.loads.push_back(read);
      }
  }
  if (t.loads.empty() || t.loads.size() > 2) return {};
  return t;
}

class Transpose {
 public:
  Transpose(const Canonical& c, const TransposedAxes& t, int64_t rows)
      : c_(c),
        t_(t),
        at_once_(rows),
        inner_(c.axes[t.inner]),
        outer_(c.axes[t.outer]),
        rest_(rest()),
        at_(rest_, Expr(z_), "plane") {}

  Stmt build() const {
    std::vector<Buffer> tiles;
    Stmts fill;
    Expr value = c_.epilogue;
    const Var k = make_var("turn"), ty = make_var("ty"), tx = make_var("tx"), thread = make_var("thread");
    const Expr along = Expr(k) * Expr(at_once_) + Expr(ty);
    for (const Expr& read : t_.loads) {
      const Load* l = as<Load>(read);
      const Buffer tile =
          make_buffer(l->buffer->name + "_tile", l->buffer->dtype, {Dim(kTile), Dim(kTile + 1)}, Scope::Shared);
      tiles.push_back(tile);
      fill.push_back(store(tile, {along, tx}, read));
      value = rewrite(value, [&](const Expr& e) -> Expr {
        return as<Load>(e) && structurally_equal(e, read) ? load(tile, {tx, along}) : Expr();
      });
    }
    const Expr inner0 = Expr(x_) * Expr(kTile), outer0 = Expr(y_) * Expr(kTile);
    const Stmt in = at_point(seq(fill), inner0 + along, outer0 + Expr(tx));
    const Stmt out = at_point(store(c_.out, {c_.out_index}, value), inner0 + Expr(tx), outer0 + along);
    auto rows = [&](const Stmt& s) { return loop(k, kTile / at_once_, s, ForKind::Unroll); };
    Stmt body = seq({comment("neighbouring threads read neighbours", rows(in)), barrier(Scope::Shared),
                     comment("and write neighbours", rows(out))});
    body = let(tx, floor_mod(Expr(thread), kTile), let(ty, floor_div(Expr(thread), kTile), at_.wrap(body)));
    Stmt s = loop(thread, kTile * at_once_, body, ForKind::ThreadX);
    for (const Buffer& b : tiles) s = alloc(b, s);
    const auto kinds = grid();
    s = loop(x_, tiles_of(inner_), s, (*kinds)[0]);
    s = loop(y_, tiles_of(outer_), s, (*kinds)[1]);
    return points(rest_) > 1 ? loop(z_, points(rest_), s, (*kinds)[2]) : substitute(s, {{z_.get(), Expr(0)}});
  }

  std::optional<std::array<ForKind, 3>> grid() const {
    return grid_kinds(tiles_of(inner_), tiles_of(outer_), points(rest_));
  }

 private:
  std::vector<Axis> rest() const {
    std::vector<Axis> list;
    for (size_t i = 0; i < c_.axes.size(); i++)
      if (i != t_.inner && i != t_.outer) list.push_back(c_.axes[i]);
    return list;
  }
  static int64_t tiles_of(const Axis& a) { return ceil_div(a.extent.value, kTile); }

  Stmt at_point(Stmt s, const Expr& inner, const Expr& outer) const {
    Expr inside;
    for (const Axis* a : {&inner_, &outer_})
      if (a->extent.value % kTile != 0) inside = both(inside, Expr(a->var) < Expr(a->extent));
    s = substitute(if_some(inside, s), at_.at);
    return let(inner_.var, inner, let(outer_.var, outer, s));
  }

  const Canonical& c_;
  const TransposedAxes& t_;
  const int64_t at_once_;  // rows
  const Axis inner_, outer_;
  const Var x_ = make_var("block_x"), y_ = make_var("block_y"), z_ = make_var("plane");
  const std::vector<Axis> rest_;
  const FlatPoint at_;
};

}  // namespace

std::optional<Scheduled> cuda_transpose(const CudaArgs& a) {
  if (!a.canonical || bool(a.canonical->value)) return {};
  Canonical c = *a.canonical;
  merge_axes(c.axes, {&c.epilogue}, {&c.out_index});
  const auto t = match(c);
  if (!t) return {};
  const int64_t rows = a.plan.number(
      "rows", [] { return kRows; }, KnobValues::powers_of_two(1, kTile, "rows of a tile that a block moves at once"));
  const Transpose loops(c, *t, rows);
  if (!loops.grid()) return {};
  Scheduled s;
  s.body = seq({border_launch(c), loops.build()});
  bind_operands(s, c);
  s.family = "transpose";
  s.description = "tiles of 32 x 32 turned in shared memory";
  return s;
}

}  // namespace tc
