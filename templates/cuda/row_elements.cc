#include "templates/cuda/row_elements.h"

#include "ir/loop/build.h"
#include "ir/loop/intrin.h"
#include "support/text.h"

namespace tc {
namespace {

// Do threads exchange values in shared memory, or in exchanges of a whole warp? Then none of them may leave early.
bool threads_exchange(const Rows& r, const RowPlan& p) {
  if (p.lanes == 1) return false;
  if (p.across || p.lanes < kWarp) return true;
  for (const RowStep& s : r.steps)
    if (s.kind == RowStep::Kind::Reduce && (!s.tuple.empty() || info(s.name->dtype).bytes < 4)) return true;
  return false;
}

}  // namespace

RowElements::RowElements(Rows r, const RowPlan& plan)
    : r_(std::move(r)),
      p_(plan),
      columns_(r_.columns[0].extent.value),
      rows_(points(r_.c.axes)),
      partial_(rows_ % plan.rows != 0),
      clamped_(partial_ && threads_exchange(r_, plan)),
      block_(make_var(plan.rows == 1 ? "row" : "block")),
      thread_(make_var("thread")),
      lane_(make_var("lane")),
      at_(r_.c.axes, clamped_ ? min(row_number(), Expr(rows_ - 1)) : row_number(), "row") {}

Expr RowElements::lane_number() const {
  return p_.across ? floor_div(Expr(thread_), p_.rows) : floor_mod(Expr(thread_), p_.lanes);
}
Expr RowElements::row_of_block() const {
  if (p_.lanes == 1) return Expr(thread_);
  return p_.across ? floor_mod(Expr(thread_), p_.rows) : floor_div(Expr(thread_), p_.lanes);
}
Expr RowElements::row_number() const {
  return p_.rows == 1 ? Expr(block_) : Expr(block_) * Expr(p_.rows) + row_of_block();
}
Expr RowElements::lane() const { return p_.rows == 1 ? Expr(thread_) : p_.lanes == 1 ? Expr(0) : Expr(lane_); }

std::vector<Var> RowElements::vars_with_column() const {
  std::vector<Var> v = vars_of(r_.c.axes);
  v.push_back(r_.columns[0].var);
  return v;
}

int64_t RowElements::together(const Buffer& b, const Expr& index) const {
  if (b->scope != Scope::Global) return 1;
  const int64_t n = vector_elements(b->dtype);
  const auto o = n > 1 && n <= p_.vector ? offset_of(index, vars_with_column()) : std::nullopt;
  return o && o->of(r_.columns[0].var) == 1 ? n : 1;
}
// An array of a thread's part, or of one vector of it, in pieces of n elements.
Shape RowElements::vector_shape(int64_t n) const {
  if (n == 1 || n == p_.vector) return {Dim(p_.vector)};
  return {Dim(p_.vector / n), Dim(n)};
}
Buffer RowElements::array_of(const RowStep& s) const {
  const Load* l = as<Load>(s.value);
  Shape shape{Dim(p_.iterations)};
  if (p_.vector > 1)
    for (const Dim& d : vector_shape(l ? together(l->buffer, l->index[0]) : 1)) shape.push_back(d);
  return make_buffer(s.kept->name, s.kept->dtype, shape, Scope::Register);
}

Exprs RowElements::index_in(const Buffer& array, const Element& c) {
  const size_t rank = array->shape.size();
  if (rank == 1) return {c.iteration};
  if (rank == 2) return {c.iteration, c.within};
  const Expr n = array->shape[2];
  return {c.iteration, floor_div(c.within, n), floor_mod(c.within, n)};
}

Expr RowElements::at_element(const Expr& e, const Element& c) const {
  VarMap at = at_.at;
  at[r_.columns[0].var.get()] = c.column;
  const Expr kept = rewrite(e, [&](const Expr& x) -> Expr {
    const Load* l = as<Load>(x);
    const auto it = l ? arrays_.find(l->buffer.get()) : arrays_.end();
    if (it != arrays_.end()) return load(it->second, index_in(it->second, c));
    return l && l->buffer->scope == Scope::Global ? load(l->buffer, {at_index(l->index[0], c)}) : Expr();
  });
  return scalars(substitute(kept, at));
}
// Larger strides first.
Expr RowElements::at_index(const Expr& index, const Element& c) const {
  std::vector<std::pair<Var, Expr>> at;
  for (const Axis& a : r_.c.axes) at.push_back({a.var, at_.at.at(a.var.get())});
  if (c.column) at.push_back({r_.columns[0].var, c.column});
  const auto o = offset_of(index, vars_with_column());
  if (o) return offset_expr(*o, at);
  VarMap map;
  for (const auto& [v, e] : at) map[v.get()] = e;
  return substitute(index, map);
}

Expr RowElements::at_row(const Expr& e) const { return scalars(substitute(e, at_.at)); }

Stmt RowElements::over_iterations(const std::function<Stmt(const Element& first)>& body) const {
  const Var iteration = make_var("i"), column = make_var("column");
  const Expr base = (Expr(iteration) * Expr(p_.lanes) + lane()) * Expr(p_.vector);
  Stmt s = body({Expr(iteration), Expr(column), Expr(0)});
  if (p_.iterations * p_.lanes * p_.vector != columns_) s = if_then(Expr(column) < Expr(columns_), s);
  return loop(iteration, p_.iterations, let(column, base, s), p_.in_registers ? ForKind::Unroll : ForKind::Serial);
}

Stmt RowElements::read_vector(const Buffer& to, const Exprs& at, const Load& from, int64_t n,
                              const Element& first) const {
  auto piece = [&](Exprs to_index, const Expr& begin) {
    const Element c{first.iteration, first.column + begin, begin};
    return intrin("load" + to_text(n), {{to, std::move(to_index)}, {from.buffer, {at_index(from.index[0], c)}}});
  };
  if (n == p_.vector) return piece(at, 0);
  const Var h = make_var("h");
  Exprs to_index = at;
  to_index.push_back(Expr(h));
  return loop(h, p_.vector / n, piece(std::move(to_index), Expr(h) * Expr(n)), ForKind::Unroll);
}

Exprs RowElements::all_at(const Exprs& list, const Element& c) const {
  Exprs at;
  for (const Expr& e : list) at.push_back(at_element(e, c));
  return at;
}

Stmt RowElements::at_elements(const Exprs& values, const ElementBody& body) const {
  if (p_.vector == 1) return over_iterations([&](const Element& c) { return body(c, all_at(values, c)); });
  return over_iterations([&](const Element& first) {
    const Var j = make_var("j");
    std::vector<VectorRead> reads;
    Exprs gathered;
    for (const Expr& e : values) gathered.push_back(gather(e, first, reads, Expr(j)));
    const Element element{first.iteration, first.column + Expr(j), Expr(j)};
    Stmt s = loop(j, p_.vector, body(element, all_at(gathered, element)), ForKind::Unroll);
    for (size_t i = reads.size(); i-- > 0;) s = alloc(reads[i].to, seq({reads[i].code, s}));
    return s;
  });
}

Expr RowElements::gather(const Expr& e, const Element& first, std::vector<VectorRead>& reads, const Expr& j) const {
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
