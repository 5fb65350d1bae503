// Rows of updates that are added where data says, each result's one after the other: messages along the edges of a graph.
//
//   for e: y[index[e], ..] += u[e, ..]     ->   order = the updates, sorted by their row (a counting sort, which keeps their order)
//                                               for n:                            results stay in the first cache, threads share them
//                                                 y[n, ..] = data[n, ..]
//                                                 for e of row n in order: y[n, ..] += u[e, ..]
//
// Parts of a row that fit into registers stay there until all updates have been added.
//
// Positions that an update reads at are checked where it is sorted, and kept beside it. Each element takes its updates in the
// definition's order, so that its bits are the same.
#include <algorithm>

#include "ir/loop/build.h"
#include "ir/loop/visit.h"
#include "passes/analysis/nest.h"
#include "passes/loop/lower_lanes.h"
#include "passes/schedule/primitives.h"
#include "support/text.h"
#include "templates/cpu/template.h"

namespace tc {
namespace {

struct ScatterRows {
  std::vector<const For*> copied;  // one for each axis of the result
  const Store* copy = nullptr;
  const For* updates = nullptr;
  std::vector<const For*> inner;  // along a row
  const Store* update = nullptr;
  Exprs conditions;                      // of an update: where their number is chosen at run time
  size_t placed = 0;                     // so many leading axes of the result are positions that data says
  int64_t rows = 1, count = 0, row = 1;  // of the result, of updates, elements of one
  Dims tile;                             // of a row, whose sums stay in registers; empty: none
};

bool is_var(const Expr& e, const Var& v) { return as<VarRef>(e) && as<VarRef>(e)->var == v; }

// A store in loops from zero to constants.
std::optional<OnlyStore> plain_store(const Stmt& s) {
  auto site = only_store(s);
  const auto is_plain = [](const For* f) {
    return f->kind == ForKind::Serial && is_const(f->begin, 0) && as_const_int(f->extent);
  };
  return site && std::all_of(site->loops.begin(), site->loops.end(), is_plain) ? site : std::nullopt;
}

std::vector<Var> vars_of(const std::vector<const For*>& loops) {
  std::vector<Var> vars;
  for (const For* f : loops) vars.push_back(f->var);
  return vars;
}

// The longest part of an axis of n elements, of those that fill vectors best: 100 elements are two times 50.
int64_t part_of(int64_t n, int64_t most, int64_t lanes) {
  const auto vectors = [&](int64_t part) { return n / part * ((part + lanes - 1) / lanes); };
  int64_t best = 1;
  for (int64_t part = 2; part <= std::min(n, most); part++)
    if (n % part == 0 && vectors(part) <= vectors(best)) best = part;
  return best;
}

// As many sums as registers hold, and enough to be worth another look at the row's updates.
Dims tile_of(const ScatterRows& m) {
  constexpr int64_t kMostSums = 64, kFewestSums = 32;
  if (!runs_on_vectors(*m.inner.back())) return {};
  Dims tile(m.inner.size(), 1);
  int64_t sums = 1;
  for (size_t d = tile.size(); d-- > 0;) {
    const int64_t n = *as_const_int(m.inner[d]->extent);
    tile[d] = part_of(n, kMostSums / sums, d + 1 == tile.size() ? kMaxLanes : 1);
    sums *= tile[d];
    if (tile[d] < n) break;
  }
  return sums >= kFewestSums ? tile : Dims();
}

std::optional<ScatterRows> match(const TensorFn& fn) {
  if (fn.stages.size() != 1 || fn.stages[0].kind != Stage::Kind::Nest || fn.outputs.size() != 1) return {};
  const Buffer& y = fn.outputs[0];
  const Seq* both = as<Seq>(fn.stages[0].nest);
  if (!both || both->list.size() != 2 || !has_lanes(y->dtype)) return {};
  const auto copy = plain_store(both->list[0]), update = plain_store(both->list[1]);
  if (!copy || !copy->conditions.empty() || !update || update->loops.size() < 2) return {};
  ScatterRows m;
  m.copied = copy->loops, m.copy = copy->store;
  m.updates = update->loops[0], m.inner.assign(update->loops.begin() + 1, update->loops.end());
  m.conditions = update->conditions, m.update = update->store;
  if (m.copy->buffer != y || m.copy->reduce || m.update->buffer != y || !m.update->reduce) return {};
  const size_t rank = y->shape.size();
  if (m.copied.size() != rank || m.inner.size() >= rank) return {};
  m.placed = rank - m.inner.size();
  for (size_t d = 0; d < rank; d++) {
    if (!is_var(m.copy->index[d], m.copied[d]->var)) return {};
    const Expr& at = m.update->index[d];
    if (d < m.placed ? uses_any(at, vars_of(m.inner)) || !uses_var(at, m.updates->var)
                     : !is_var(at, m.inner[d - m.placed]->var))
      return {};
    (d < m.placed ? m.rows : m.row) *= *as_const_int(m.copied[d]->extent);
  }
  const auto is_of_elements = [&](const Expr& c) { return uses_any(c, vars_of(m.inner)); };
  if (std::any_of(m.conditions.begin(), m.conditions.end(), is_of_elements)) return {};
  m.count = *as_const_int(m.updates->extent);
  m.tile = tile_of(m);
  return m;
}

// Where results do not fit into the first cache, a row is longer than what sorting its update costs, and most rows have one.
bool pays(const ScatterRows& m) {
  constexpr int64_t kShortestRow = 48, kFirstCache = 8 << 10;  // elements
  return m.row >= kShortestRow && m.rows * m.row > kFirstCache && m.count >= m.rows && m.count < INT32_MAX &&
         m.rows < INT32_MAX - 2;
}

class Builder {
 public:
  explicit Builder(const ScatterRows& m) : m_(m) {
    first_ = make_buffer("first", DType::I32, {Dim(m.rows + 2)}, Scope::Workspace);
    order_ = make_buffer("order", DType::I32, {Dim(m.count)}, Scope::Workspace);
    find_positions();
    for (size_t d = 0; d < m.tile.size(); d++)
      if (const int64_t n = *as_const_int(m.inner[d]->extent) / m.tile[d]; n > 1)
        tiles_.push_back({d, make_var("tile"), n});
    update_ = in_order(in_row(m.inner, *m.update));
    if (!uses_var(update_, e_)) order_ = nullptr;
  }

  Stmt build() const {
    Stmt body = seq({sort(), rows()});
    for (const Position& p : positions_) body = alloc(p.kept, body);
    if (order_) body = alloc(order_, body);
    return alloc(first_, body);
  }

  // An iteration of this loop has all that is added to a tile of the result.
  Var around_tile() const { return tiles_.empty() ? m_.copied[m_.placed - 1]->var : tiles_.back().var; }

 private:
  // Of the tiles along an axis of a row.
  struct Tile {
    size_t axis;
    Var var;
    int64_t count;
  };

  // Where in a tensor an update reads, as data says: in the order of the updates.
  struct Position {
    Expr at;  // over the updates' variable
    Buffer kept;
    Var name;
  };

  // Those behind a condition are left where they are: of other updates there may be none.
  void find_positions() {
    walk(m_.update->value, [&](const Expr& e) {
      const Apply* a = as<Apply>(e);
      if (!a || a->op != Op::Index) return !as<Select>(e) && !(a && (a->op == Op::And || a->op == Op::Or));
      const auto n = as_const_int(a->args[1]);
      const bool known = std::any_of(positions_.begin(), positions_.end(),
                                     [&](const Position& p) { return structurally_equal(p.at, e); });
      if (!known && n && *n <= INT32_MAX && !uses_any(e, vars_of(m_.inner)))
        positions_.push_back(
            {e, make_buffer("from", DType::I32, {Dim(m_.count)}, Scope::Workspace), make_var("source")});
      return false;
    });
  }

  // What an update does to the row that it goes to: by the names of positions, and by that of its number where it needs more.
  Stmt in_order(const Stmt& update) const {
    const Stmt named = rewrite(update, [&](const Expr& x) -> Expr {
      for (size_t d = 0; d < m_.placed; d++)
        if (structurally_equal(m_.update->index[d], x)) return m_.copied[d]->var;
      for (const Position& p : positions_)
        if (structurally_equal(p.at, x)) return p.name;
      return {};
    });
    return substitute(named, {{m_.updates->var.get(), Expr(e_)}});
  }

  // The number of the row at a position of the leading axes.
  Expr row_at(const Exprs& at) const {
    Expr n = 0;
    for (size_t d = 0; d < m_.placed; d++) n = n * m_.copied[d]->extent + at[d];
    return n;
  }
  // That which update `e` goes to.
  Expr row_of(const Expr& e) const { return substitute(row_at(m_.update->index), {{m_.updates->var.get(), e}}); }

  // first[n] .. first[n + 1]: the updates of row n in `order`. They are counted two places behind, and placed from one behind.
  Stmt sort() const {
    constexpr DType type = DType::I32;
    const Expr one = make_int(type, 1);
    const Var i = make_var("i"), n = make_var("n"), counted = make_var("e"), e = make_var("e"), at = make_var("at"),
              place = make_var("place", type), behind = make_var("behind");
    Stmts put;
    if (order_) put.push_back(store(order_, {position(place)}, cast(type, Expr(e))));
    for (const Position& p : positions_)
      put.push_back(store(p.kept, {position(place)}, cast(type, substitute(p.at, {{m_.updates->var.get(), Expr(e)}}))));
    put.push_back(store(first_, {Expr(at)}, Expr(place) + one));
    return seq(
        {loop(i, m_.rows + 2, store(first_, {Expr(i)}, make_int(type, 0))),
         each_update(counted, let(behind, row_of(counted) + Expr(2), store(first_, {Expr(behind)}, one, Op::Add))),
         loop(n, m_.rows - 1, store(first_, {Expr(n)}, load(first_, {Expr(n) - Expr(1)}), Op::Add), ForKind::Serial, 3),
         each_update(e, let(at, row_of(e) + Expr(1), let(place, load(first_, {Expr(at)}), seq(put))))});
  }

  // `s` for each update that there is.
  Stmt each_update(const Var& e, Stmt s) const {
    for (size_t k = m_.conditions.size(); k-- > 0;) s = if_then(m_.conditions[k], s);
    return loop(e, m_.updates->extent, substitute(s, {{m_.updates->var.get(), Expr(e)}}));
  }

  // The loops of the copy, whose rows take their updates as soon as they are there, a tile after the other.
  Stmt rows() const {
    const std::vector<const For*> along(m_.copied.begin() + long(m_.placed), m_.copied.end());
    Stmt body = seq({in_row(along, *m_.copy), updates()});
    for (size_t t = tiles_.size(); t-- > 0;) body = loop(tiles_[t].var, tiles_[t].count, body);
    for (size_t d = m_.placed; d-- > 0;) body = with_body(*m_.copied[d], body);
    return body;
  }

  // A store in the loops along a row, or along a tile of it.
  Stmt in_row(const std::vector<const For*>& along, const Store& s) const {
    VarMap to;
    for (const Tile& t : tiles_)
      to[along[t.axis]->var.get()] = Expr(t.var) * Expr(m_.tile[t.axis]) + Expr(along[t.axis]->var);
    Stmt body = substitute(store(s.buffer, s.index, s.value, s.reduce), to);
    for (size_t d = along.size(); d-- > 0;)
      body = m_.tile.empty()
                 ? with_body(*along[d], body)
                 : loop(along[d]->var, m_.tile[d], body, d + 1 < along.size() ? ForKind::Unroll : ForKind::Serial);
    return body;
  }

  // Of a row, one after the other.
  Stmt updates() const {
    Exprs at;
    for (const For* f : m_.copied) at.push_back(f->var);
    const Var k = make_var("k");
    const Expr n = row_at(at), begin = position(load(first_, {n})), end = position(load(first_, {n + Expr(1)}));
    Stmt update = update_;
    for (const Position& p : positions_) update = let(p.name, position(load(p.kept, {Expr(k)})), update);
    if (order_) update = let(e_, position(load(order_, {Expr(k)})), update);
    return loop(k, end - begin, update, ForKind::Serial, begin);
  }

  static Expr position(const Expr& e) { return cast(DType::I64, e); }

  const ScatterRows& m_;
  Buffer first_, order_;  // null: nothing but positions is read of an update
  const Var e_ = make_var("e");
  std::vector<Tile> tiles_;  // of axes that have several
  std::vector<Position> positions_;
  Stmt update_;  // of one, in the loops along a row or a tile
};

// A tile in registers, filled by the copy, and written when all updates of its row have been added.
void keep_sums(Schedule& s, const ScatterRows& m, const Var& around) {
  if (m.tile.empty()) return;
  const Buffer& y = m.update->buffer;
  s.cache_write(y, around, Scope::Register);
  const std::vector<Var> out = s.loops(y);
  for (size_t k = size_t(std::find(out.begin(), out.end(), around) - out.begin()) + 1; k + 1 < out.size(); k++)
    s.unroll(out[k]);
}

}  // namespace

std::optional<Scheduled> schedule_scatter_rows(const TemplateArgs& a) {
  const auto m = match(a.fn);
  if (!m || !pays(*m)) return {};
  const Builder built(*m);
  TensorFn sorted = a.fn;
  sorted.stages[0].nest = built.build();
  const std::string sums =
      m->tile.empty() ? "" : ", sums of " + to_text(num_elements(m->tile)) + " elements in registers";
  return schedule_nest(a, sorted, "scatter_rows", "updates sorted by the rows that they go to" + sums,
                       [&](Schedule& s) { keep_sums(s, *m, built.around_tile()); });
}

}  // namespace tc
