// Rows of updates that are added where data says, each result's one after the other: messages along the edges of a graph.
//
//   for e: y[index[e], ..] += u[e, ..]     ->   order = the updates, sorted by their row (a counting sort, which keeps their order)
//                                               for n:                            results stay in the first cache, threads share them
//                                                 y[n, ..] = data[n, ..]
//                                                 for e of row n in order: y[n, ..] += u[e, ..]
//
// Positions that an update reads at are checked where it is sorted, and kept beside it. Each element takes its updates in the definition's order, so that its bits are the same.
#include <algorithm>

#include "ir/loop/build.h"
#include "ir/loop/visit.h"
#include "passes/loop/lower_lanes.h"
#include "passes/loop/vector_form.h"
#include "passes/schedule/primitives.h"
#include "templates/cpu/template.h"

namespace tc {
namespace {

struct ScatterRows {
  std::vector<const For*> copied;  // one for each axis of the result
  const Store* copy = nullptr;
  const For* updates = nullptr;
  std::vector<const For*> inner;  // along a row
  const Store* update = nullptr;
  size_t placed = 0;                     // so many leading axes of the result are positions that data says
  int64_t rows = 1, count = 0, row = 1;  // of the result, of updates, elements of one
};

bool is_var(const Expr& e, const Var& v) { return as<VarRef>(e) && as<VarRef>(e)->var == v; }

// Loops from zero to constants, one in another, around one store.
const Store* store_inside(const Stmt& s, std::vector<const For*>& loops) {
  const Stmt* at = &s;
  while (const For* f = as<For>(*at)) {
    if (f->kind != ForKind::Serial || !is_const(f->begin, 0) || !as_const_int(f->extent)) return nullptr;
    loops.push_back(f);
    at = &f->body;
  }
  return as<Store>(*at);
}

bool uses_any(const Expr& e, const std::vector<const For*>& loops) {
  return std::any_of(loops.begin(), loops.end(), [&](const For* f) { return uses_var(e, f->var); });
}

std::optional<ScatterRows> match(const TensorFn& fn) {
  if (fn.stages.size() != 1 || fn.stages[0].kind != Stage::Kind::Nest || fn.outputs.size() != 1) return {};
  const Buffer& y = fn.outputs[0];
  const Seq* both = as<Seq>(fn.stages[0].nest);
  if (!both || both->list.size() != 2 || !has_lanes(y->dtype)) return {};
  ScatterRows m;
  m.copy = store_inside(both->list[0], m.copied);
  m.update = store_inside(both->list[1], m.inner);
  if (!m.copy || !m.update || m.inner.size() < 2) return {};
  if (m.copy->buffer != y || m.copy->reduce || m.update->buffer != y || !m.update->reduce) return {};
  m.updates = m.inner[0];
  m.inner.erase(m.inner.begin());
  const size_t rank = y->shape.size();
  if (m.copied.size() != rank || m.inner.size() >= rank) return {};
  m.placed = rank - m.inner.size();
  for (size_t d = 0; d < rank; d++) {
    if (!is_var(m.copy->index[d], m.copied[d]->var)) return {};
    const Expr& at = m.update->index[d];
    if (d < m.placed ? uses_any(at, m.inner) || !uses_var(at, m.updates->var) : !is_var(at, m.inner[d - m.placed]->var))
      return {};
    (d < m.placed ? m.rows : m.row) *= *as_const_int(m.copied[d]->extent);
  }
  m.count = *as_const_int(m.updates->extent);
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
    value_ = rewrite(m.update->value, [&](const Expr& x) -> Expr {
      for (const Position& p : positions_)
        if (structurally_equal(p.at, x)) return p.name;
      return {};
    });
    if (!uses_var(value_, m.updates->var)) order_ = nullptr;
  }

  Stmt build() const {
    Stmt body = seq({sort(), rows()});
    for (const Position& p : positions_) body = alloc(p.kept, body);
    if (order_) body = alloc(order_, body);
    return alloc(first_, body);
  }

 private:
  // Where in a tensor an update reads, as data says: in the order of the updates.
  struct Position {
    Expr at;  // over the updates' variable
    Buffer kept;
    Var name;
  };

  void find_positions() {
    walk(m_.update->value, [&](const Expr& e) {
      const Apply* a = as<Apply>(e);
      if (!a || a->op != Op::Index) return true;
      const auto n = as_const_int(a->args[1]);
      const bool known = std::any_of(positions_.begin(), positions_.end(),
                                     [&](const Position& p) { return structurally_equal(p.at, e); });
      if (!known && n && *n <= INT32_MAX && !uses_any(e, m_.inner))
        positions_.push_back(
            {e, make_buffer("from", DType::I32, {Dim(m_.count)}, Scope::Workspace), make_var("source")});
      return false;
    });
  }

  // The number of the row that update `e` goes to.
  Expr row_of(const Expr& e) const {
    Expr n = 0;
    for (size_t d = 0; d < m_.placed; d++) n = n * Expr(*as_const_int(m_.copied[d]->extent)) + m_.update->index[d];
    return substitute(n, {{m_.updates->var.get(), e}});
  }

  // first[n] .. first[n + 1]: the updates of row n in `order`. They are counted two places behind, and placed from one behind.
  Stmt sort() const {
    constexpr DType type = DType::I32;
    const Expr one = make_int(type, 1);
    const Var i = make_var("i"), n = make_var("n"), counted = make_var("e"), e = make_var("e"), at = make_var("at"),
              place = make_var("place", type);
    Stmts put;
    if (order_) put.push_back(store(order_, {position(place)}, cast(type, Expr(e))));
    for (const Position& p : positions_)
      put.push_back(store(p.kept, {position(place)}, cast(type, substitute(p.at, {{m_.updates->var.get(), Expr(e)}}))));
    put.push_back(store(first_, {Expr(at)}, Expr(place) + one));
    return seq(
        {loop(i, m_.rows + 2, store(first_, {Expr(i)}, make_int(type, 0))),
         loop(counted, m_.updates->extent, store(first_, {row_of(counted) + Expr(2)}, one, Op::Add)),
         loop(n, m_.rows - 1, store(first_, {Expr(n)}, load(first_, {Expr(n) - Expr(1)}), Op::Add), ForKind::Serial, 3),
         loop(e, m_.updates->extent, let(at, row_of(e) + Expr(1), let(place, load(first_, {Expr(at)}), seq(put))))});
  }

  Stmt rows() const {
    const Var k = make_var("k"), e = make_var("e");
    std::vector<Var> at;  // along the result's leading axes
    Expr n = 0;
    for (size_t d = 0; d < m_.placed; d++) {
      at.push_back(make_var(m_.copied[d]->var->name));
      n = n * Expr(*as_const_int(m_.copied[d]->extent)) + Expr(at.back());
    }
    const Expr begin = position(load(first_, {n})), end = position(load(first_, {n + Expr(1)}));
    Stmt update = one_update(at, e);
    for (const Position& p : positions_) update = let(p.name, position(load(p.kept, {Expr(k)})), update);
    if (order_) update = let(e, position(load(order_, {Expr(k)})), update);
    Stmt body = seq({one_copy(at), loop(k, end - begin, update, ForKind::Serial, begin)});
    for (size_t d = m_.placed; d-- > 0;) body = loop(at[d], m_.copied[d]->extent, body);
    return body;
  }

  static Expr position(const Expr& e) { return cast(DType::I64, e); }

  Stmt one_copy(const std::vector<Var>& at) const {
    VarMap to;
    for (size_t d = 0; d < m_.placed; d++) to[m_.copied[d]->var.get()] = Expr(at[d]);
    return along(std::vector<const For*>(m_.copied.begin() + long(m_.placed), m_.copied.end()), to, *m_.copy, at);
  }
  Stmt one_update(const std::vector<Var>& at, const Var& e) const {
    return along(m_.inner, {{m_.updates->var.get(), Expr(e)}}, {m_.update->buffer, {}, value_, m_.update->reduce, {}},
                 at);
  }

  // `s` in loops of its own along a row, which is at `at`.
  Stmt along(const std::vector<const For*>& loops, VarMap to, const Store& s, const std::vector<Var>& at) const {
    std::vector<Var> own;
    for (const For* f : loops) {
      own.push_back(make_var(f->var->name));
      to[f->var.get()] = Expr(own.back());
    }
    Exprs index(at.begin(), at.end());
    for (const Var& v : own) index.push_back(Expr(v));
    Stmt body = store(s.buffer, index, substitute(s.value, to), s.reduce);
    for (size_t k = loops.size(); k-- > 0;) body = loop(own[k], loops[k]->extent, body);
    return body;
  }

  const ScatterRows& m_;
  Buffer first_, order_;  // null: nothing but positions is read of an update
  Expr value_;            // of an element, by the names of positions
  std::vector<Position> positions_;
};

}  // namespace

std::optional<Scheduled> schedule_scatter_rows(const TemplateArgs& a) {
  if (!a.options.open_axes.empty()) return {};
  const auto m = match(a.fn);
  if (!m || !pays(*m)) return {};
  TensorFn sorted = a.fn;
  sorted.stages[0].nest = Builder(*m).build();
  return schedule_nest(a, sorted, "scatter_rows",
                       "updates sorted by the rows that they go to, vectors along the innermost axis");
}

}  // namespace tc
