#include "templates/cuda/row_cells.h"

#include "ir/loop/build.h"
#include "ir/loop/intrin.h"
#include "support/text.h"

namespace tc {
namespace {

// Do threads meet in shared memory, or in exchanges of a whole warp? Then none of them may leave early.
bool threads_meet(const Rows& r, const RowPlan& p) {
  if (p.lanes == 1) return false;
  if (p.across || p.lanes < kWarp) return true;
  for (const RowStep& s : r.steps)
    if (s.kind == RowStep::Kind::Reduce && (!s.tuple.empty() || info(s.name->dtype).bytes < 4)) return true;
  return false;
}

}  // namespace

RowCells::RowCells(Rows r, const RowPlan& plan)
    : r_(std::move(r)),
      p_(plan),
      columns_(r_.columns[0].extent.value),
      rows_(points(r_.c.axes)),
      partial_(rows_ % plan.rows != 0),
      clamped_(partial_ && threads_meet(r_, plan)),
      block_(make_var(plan.rows == 1 ? "row" : "block")),
      thread_(make_var("thread")),
      lane_(make_var("lane")),
      at_(r_.c.axes, clamped_ ? min(row_number(), Expr(rows_ - 1)) : row_number(), "row") {}

Expr RowCells::lane_number() const {
  return p_.across ? floor_div(Expr(thread_), p_.rows) : floor_mod(Expr(thread_), p_.lanes);
}
Expr RowCells::row_of_block() const {
  if (p_.lanes == 1) return Expr(thread_);
  return p_.across ? floor_mod(Expr(thread_), p_.rows) : floor_div(Expr(thread_), p_.lanes);
}
Expr RowCells::row_number() const {
  return p_.rows == 1 ? Expr(block_) : Expr(block_) * Expr(p_.rows) + row_of_block();
}
Expr RowCells::lane() const { return p_.rows == 1 ? Expr(thread_) : p_.lanes == 1 ? Expr(0) : Expr(lane_); }

std::vector<Var> RowCells::vars_with_column() const {
  std::vector<Var> v = vars_of(r_.c.axes);
  v.push_back(r_.columns[0].var);
  return v;
}

int64_t RowCells::together(const Buffer& b, const Expr& index) const {
  if (b->scope != Scope::Global) return 1;
  const int64_t n = vector_elements(b->dtype);
  const auto o = n > 1 && n <= p_.vector ? offset_of(index, vars_with_column()) : std::nullopt;
  return o && o->of(r_.columns[0].var) == 1 ? n : 1;
}
// An array of a thread's part, or of one vector of it, in pieces of n elements.
Shape RowCells::vector_shape(int64_t n) const {
  if (n == 1 || n == p_.vector) return {Dim(p_.vector)};
  return {Dim(p_.vector / n), Dim(n)};
}
Buffer RowCells::array_of(const RowStep& s) const {
  const Load* l = as<Load>(s.value);
  Shape shape{Dim(p_.turns)};
  if (p_.vector > 1)
    for (const Dim& d : vector_shape(l ? together(l->buffer, l->index[0]) : 1)) shape.push_back(d);
  return make_buffer(s.kept->name, s.kept->dtype, shape, Scope::Register);
}

Exprs RowCells::place(const Buffer& array, const Cell& c) {
  const size_t rank = array->shape.size();
  if (rank == 1) return {c.turn};
  if (rank == 2) return {c.turn, c.within};
  const Expr n = array->shape[2];
  return {c.turn, floor_div(c.within, n), floor_mod(c.within, n)};
}

Expr RowCells::at_cell(const Expr& e, const Cell& c) const {
  VarMap at = at_.at;
  at[r_.columns[0].var.get()] = c.column;
  const Expr kept = rewrite(e, [&](const Expr& x) -> Expr {
    const Load* l = as<Load>(x);
    const auto it = l ? arrays_.find(l->buffer.get()) : arrays_.end();
    if (it != arrays_.end()) return load(it->second, place(it->second, c));
    return l && l->buffer->scope == Scope::Global ? load(l->buffer, {at_index(l->index[0], c)}) : Expr();
  });
  return scalars(substitute(kept, at));
}
// Larger strides first.
Expr RowCells::at_index(const Expr& index, const Cell& c) const {
  std::vector<std::pair<Var, Expr>> at;
  for (const Axis& a : r_.c.axes) at.push_back({a.var, at_.at.at(a.var.get())});
  if (c.column) at.push_back({r_.columns[0].var, c.column});
  const auto o = offset_of(index, vars_with_column());
  if (o) return offset_expr(*o, at);
  VarMap map;
  for (const auto& [v, e] : at) map[v.get()] = e;
  return substitute(index, map);
}

Expr RowCells::at_row(const Expr& e) const { return scalars(substitute(e, at_.at)); }

Stmt RowCells::over_turns(const std::function<Stmt(const Cell& first)>& body) const {
  const Var turn = make_var("i"), column = make_var("column");
  const Expr base = (Expr(turn) * Expr(p_.lanes) + lane()) * Expr(p_.vector);
  Stmt s = body({Expr(turn), Expr(column), Expr(0)});
  if (p_.turns * p_.lanes * p_.vector != columns_) s = if_then(Expr(column) < Expr(columns_), s);
  return loop(turn, p_.turns, let(column, base, s), p_.in_registers ? ForKind::Unroll : ForKind::Serial);
}

Stmt RowCells::read_vector(const Buffer& to, const Exprs& at, const Load& from, int64_t n, const Cell& first) const {
  auto piece = [&](Exprs place, const Expr& begin) {
    const Cell c{first.turn, first.column + begin, begin};
    return intrin("load" + to_text(n), {{to, std::move(place)}, {from.buffer, {at_index(from.index[0], c)}}});
  };
  if (n == p_.vector) return piece(at, 0);
  const Var h = make_var("h");
  Exprs place = at;
  place.push_back(Expr(h));
  return loop(h, p_.vector / n, piece(std::move(place), Expr(h) * Expr(n)), ForKind::Unroll);
}

Exprs RowCells::all_at(const Exprs& list, const Cell& c) const {
  Exprs at;
  for (const Expr& e : list) at.push_back(at_cell(e, c));
  return at;
}

Stmt RowCells::at_cells(const Exprs& values, const CellBody& body) const {
  if (p_.vector == 1) return over_turns([&](const Cell& c) { return body(c, all_at(values, c)); });
  return over_turns([&](const Cell& first) {
    const Var j = make_var("j");
    std::vector<VectorRead> reads;
    Exprs gathered;
    for (const Expr& e : values) gathered.push_back(gather(e, first, reads, Expr(j)));
    const Cell cell{first.turn, first.column + Expr(j), Expr(j)};
    Stmt s = loop(j, p_.vector, body(cell, all_at(gathered, cell)), ForKind::Unroll);
    for (size_t i = reads.size(); i-- > 0;) s = alloc(reads[i].to, seq({reads[i].code, s}));
    return s;
  });
}

Expr RowCells::gather(const Expr& e, const Cell& first, std::vector<VectorRead>& reads, const Expr& j) const {
  if (const Load* l = as<Load>(e)) {
    const int64_t n = together(l->buffer, l->index[0]);
    if (n == 1) return e;
    const Buffer v = make_buffer(l->buffer->name + "_v", l->buffer->dtype, vector_shape(n), Scope::Register);
    reads.push_back({v, read_vector(v, {}, *l, n, first)});
    return load(v, n == p_.vector ? Exprs{j} : Exprs{floor_div(j, n), floor_mod(j, n)});
  }
  if (const Cast* k = as<Cast>(e)) return cast(e->dtype, gather(k->value, first, reads, j), k->saturate);
  const Apply* k = as<Apply>(e);
  if (!k || k->op == Op::And || k->op == Op::Or || k->op == Op::Index) return e;
  Exprs args;
  for (const Expr& a : k->args) args.push_back(gather(a, first, reads, j));
  return apply(k->op, std::move(args));
}

}  // namespace tc
