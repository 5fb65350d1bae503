// Reductions along rows, with everything around them: softmax, normalisation, means, positions of extremes.
//
//   x_row = x[row]                          16 bytes a read; the row is read once and stays in registers
//   max = max(x_row), over the lanes too    shuffles; through shared memory where a block has the row
//   exp_row = exp(x_row - max); sum = ...
//   y[row] = exp_row / sum
//
// Rows that lie contiguous in memory: up to 1024 columns a warp or a part of it has the row, else a block. Where
// neighbouring rows are neighbours in memory instead (a softmax over channels first), a warp has 32 rows, and several
// warps share their columns. Rows of a few columns have a thread each. Rows that do not fit into the registers are read
// again for every step.
#include "templates/cuda/rows.h"

#include <bit>
#include <cmath>

#include "ir/loop/build.h"
#include "ir/loop/intrin.h"
#include "ir/loop/visit.h"
#include "passes/loop/lower_thread_allreduce.h"
#include "support/text.h"
#include "templates/cuda/flat_point.h"

namespace tc {
namespace {

constexpr int64_t kWarp = 32;

Expr identity(Op op, DType t) {
  return op == Op::Add ? zero(t) : op == Op::Mul ? make_const(t, 1) : op == Op::Max ? lowest(t) : highest(t);
}

// Do threads meet in shared memory, or in exchanges of a whole warp? Then none of them may leave early.
bool threads_meet(const Rows& r, const RowPlan& p) {
  if (p.lanes == 1) return false;
  if (p.across || p.lanes < kWarp) return true;
  for (const RowStep& s : r.steps)
    if (s.kind == RowStep::Kind::Reduce && (!s.tuple.empty() || info(s.name->dtype).bytes < 4)) return true;
  return false;
}

class RowLoops {
 public:
  RowLoops(Rows r, const RowPlan& plan)
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

  Stmt build() {
    if (p_.in_registers) keep_operands();
    Stmt body = steps(0);
    if (partial_ && !clamped_) body = if_then(at_.flat < Expr(rows_), body);
    body = at_.wrap(body);
    if (p_.lanes > 1 && p_.rows > 1) body = let(lane_, lane_number(), body);
    Stmt launch = loop(thread_, p_.threads(), body, ForKind::ThreadX);
    for (size_t i = shared_.size(); i-- > 0;) launch = alloc(shared_[i], launch);
    return loop(block_, ceil_div(rows_, p_.rows), launch, ForKind::BlockX);
  }

 private:
  Expr lane_number() const {
    return p_.across ? floor_div(Expr(thread_), p_.rows) : floor_mod(Expr(thread_), p_.lanes);
  }
  Expr row_of_block() const {
    if (p_.lanes == 1) return Expr(thread_);
    return p_.across ? floor_mod(Expr(thread_), p_.rows) : floor_div(Expr(thread_), p_.lanes);
  }
  Expr row_number() const { return p_.rows == 1 ? Expr(block_) : Expr(block_) * Expr(p_.rows) + row_of_block(); }
  Expr lane() const { return p_.rows == 1 ? Expr(thread_) : p_.lanes == 1 ? Expr(0) : Expr(lane_); }

  // Rows of operands that several steps read get an array, filled first.
  void keep_operands() {
    std::vector<RowStep> keeps;
    for (size_t i = 0; i < r_.steps.size(); i++) {
      if (!along_row(r_.steps[i])) continue;
      const Expr read = read_again(r_.steps[i]);
      if (!read) continue;
      const Buffer& from = as<Load>(read)->buffer;
      const Buffer kept = make_buffer(from->name + "_row", from->dtype, {Dim(columns_)}, Scope::Register);
      for (RowStep& s : r_.steps)
        for (Expr* value : values_of(s))
          *value = rewrite(*value, [&](const Expr& e) -> Expr {
            return as<Load>(e) && structurally_equal(e, read) ? load(kept, {r_.kept_index}) : Expr();
          });
      keeps.push_back({RowStep::Kind::Keep, read, Op::Add, {}, nullptr, kept});
      i--;  // the loads of this step are others now
    }
    r_.steps.insert(r_.steps.begin(), keeps.begin(), keeps.end());
    for (const RowStep& s : r_.steps)
      if (s.kind == RowStep::Kind::Keep) arrays_[s.kept.get()] = array_of(s);
  }
  // A read of the step that is made along the rows, and in other steps too.
  Expr read_again(const RowStep& step) const {
    for (const Expr& value : values_of(step))
      for (const Load* l : loads_of(value)) {
        if (l->buffer->scope != Scope::Global || !walks_rows(l->index[0])) continue;
        const Expr read = load(l->buffer, l->index);
        int uses = 0;
        for (const RowStep& s : r_.steps) uses += along_row(s) && reads(s, read) ? 1 : 0;
        if (uses > 1) return read;
      }
    return {};
  }
  bool walks_rows(const Expr& index) const {
    if (!uses_var(index, r_.columns[0].var)) return false;
    for (const Axis& a : r_.c.axes)
      if (uses_var(index, a.var)) return true;
    return rows_ == 1;
  }
  std::vector<Var> vars_with_column() const {
    std::vector<Var> v = vars_of(r_.c.axes);
    v.push_back(r_.columns[0].var);
    return v;
  }
  static bool reads(const RowStep& s, const Expr& read) {
    bool found = false;
    for (const Expr& value : values_of(s))
      walk(value, [&](const Expr& x) {
        found |= as<Load>(x) && structurally_equal(x, read);
        return !found;
      });
    return found;
  }

  // How many neighbours of an element one instruction accesses; 1 if it has to be alone.
  int64_t together(const Buffer& b, const Expr& index) const {
    if (b->scope != Scope::Global) return 1;
    const int64_t n = vector_elements(b->dtype);
    const auto o = n > 1 && n <= p_.vector ? offset_of(index, vars_with_column()) : std::nullopt;
    return o && o->of(r_.columns[0].var) == 1 ? n : 1;
  }
  // An array of a thread's part, or of one vector of it, in pieces of n elements.
  Shape vector_shape(int64_t n) const {
    if (n == 1 || n == p_.vector) return {Dim(p_.vector)};
    return {Dim(p_.vector / n), Dim(n)};
  }
  Buffer array_of(const RowStep& s) const {
    const Load* l = as<Load>(s.value);
    Shape shape{Dim(p_.turns)};
    if (p_.vector > 1)
      for (const Dim& d : vector_shape(l ? together(l->buffer, l->index[0]) : 1)) shape.push_back(d);
    return make_buffer(s.kept->name, s.kept->dtype, shape, Scope::Register);
  }

  // Where a thread is in its row.
  struct Cell {
    Expr turn, column, within;  // within a vector
  };
  static Exprs place(const Buffer& array, const Cell& c) {
    const size_t rank = array->shape.size();
    if (rank == 1) return {c.turn};
    if (rank == 2) return {c.turn, c.within};
    const Expr n = array->shape[2];
    return {c.turn, floor_div(c.within, n), floor_mod(c.within, n)};
  }

  Expr at_cell(const Expr& e, const Cell& c) const {
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
  Expr at_index(const Expr& index, const Cell& c) const {
    std::vector<std::pair<Var, Expr>> at;
    for (const Axis& a : r_.c.axes) at.push_back({a.var, at_.at.at(a.var.get())});
    if (c.column) at.push_back({r_.columns[0].var, c.column});
    const auto o = offset_of(index, vars_with_column());
    if (o) return offset_expr(*o, at);
    VarMap map;
    for (const auto& [v, e] : at) map[v.get()] = e;
    return substitute(index, map);
  }
  Expr scalars(const Expr& e) const { return substitute(e, names_); }
  Expr at_row(const Expr& e) const { return scalars(substitute(e, at_.at)); }

  // The thread's columns, whole vectors at a time: `body` gets the cell of the first.
  Stmt over_turns(const std::function<Stmt(const Cell& first)>& body) const {
    const Var turn = make_var("i"), column = make_var("column");
    const Expr base = (Expr(turn) * Expr(p_.lanes) + lane()) * Expr(p_.vector);
    Stmt s = body({Expr(turn), Expr(column), Expr(0)});
    if (p_.turns * p_.lanes * p_.vector != columns_) s = if_then(Expr(column) < Expr(columns_), s);
    return loop(turn, p_.turns, let(column, base, s), p_.in_registers ? ForKind::Unroll : ForKind::Serial);
  }

  Stmt steps(size_t i) {
    if (i == r_.steps.size()) return {};
    const RowStep& s = r_.steps[i];
    switch (s.kind) {
      case RowStep::Kind::Keep: {
        const Buffer array = arrays_.at(s.kept.get());
        const bool joined =
            !as<Load>(s.value) && i + 1 < r_.steps.size() && r_.steps[i + 1].kind == RowStep::Kind::Reduce;
        return alloc(array, joined ? reduce(r_.steps[i + 1], &s, i + 2) : seq({keep(s), steps(i + 1)}));
      }
      case RowStep::Kind::Reduce:
        return reduce(s, nullptr, i + 1);
      case RowStep::Kind::Scalar:
        return let(s.name, at_row(s.value), steps(i + 1));
      case RowStep::Kind::Value: {
        Stmt one = store(s.out, {at_index(s.out_index, {})}, at_row(s.value));
        if (clamped_)
          one = if_then(eq(lane(), 0) && row_number() < Expr(rows_), one);
        else if (p_.lanes > 1)
          one = if_then(eq(lane(), 0), one);
        return seq({one, steps(i + 1)});
      }
      case RowStep::Kind::Row:
        return seq(
            {comment(s.out == r_.c.out ? "the result" : "the result " + s.out->name, if_live(row(s))), steps(i + 1)});
    }
    return {};
  }
  // Threads without a row compute the last one again, and store nothing.
  Stmt if_live(const Stmt& s) const { return clamped_ ? if_then(row_number() < Expr(rows_), s) : s; }

  Stmt row(const RowStep& s) const {
    auto one = [&](const Cell& c) { return store(s.out, {at_index(s.out_index, c)}, at_cell(s.value, c)); };
    return over_turns([&](const Cell& first) {
      if (p_.vector == 1) return one(first);
      const int64_t n = together(s.out, s.out_index);
      const Var piece = make_var("h"), j = make_var("j");
      if (n == 1 || n == p_.vector)
        return loop(j, p_.vector, one({first.turn, first.column + Expr(j), Expr(j)}),
                    n > 1 ? ForKind::Vector : ForKind::Unroll);
      const Expr begin = Expr(piece) * Expr(n);
      const Stmt s1 = loop(j, n, one({first.turn, first.column + begin + Expr(j), begin + Expr(j)}), ForKind::Vector);
      return loop(piece, p_.vector / n, s1, ForKind::Unroll);
    });
  }

  // to[..] = from[index], a vector, in pieces of n elements.
  Stmt read_vector(const Buffer& to, const Exprs& at, const Load& from, int64_t n, const Cell& first) const {
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

  // Statements at every cell of a thread; what is read of global memory comes 16 bytes at a time.
  Stmt at_cells(const Exprs& values, const std::function<Stmt(const Cell& c, const Exprs& values)>& body) const {
    auto all_at = [&](const Exprs& list, const Cell& c) {
      Exprs at;
      for (const Expr& e : list) at.push_back(at_cell(e, c));
      return at;
    };
    if (p_.vector == 1) return over_turns([&](const Cell& c) { return body(c, all_at(values, c)); });
    return over_turns([&](const Cell& first) {
      const Var j = make_var("j");
      std::vector<std::pair<Buffer, Stmt>> reads;
      Exprs gathered;
      for (const Expr& e : values) gathered.push_back(gather(e, first, reads, Expr(j)));
      const Cell cell{first.turn, first.column + Expr(j), Expr(j)};
      Stmt s = loop(j, p_.vector, body(cell, all_at(gathered, cell)), ForKind::Unroll);
      for (size_t i = reads.size(); i-- > 0;) s = alloc(reads[i].first, seq({reads[i].second, s}));
      return s;
    });
  }
  Expr gather(const Expr& e, const Cell& first, std::vector<std::pair<Buffer, Stmt>>& reads, const Expr& j) const {
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

  Stmt keep(const RowStep& s) const {
    const Buffer to = arrays_.at(s.kept.get());
    const Load* l = as<Load>(s.value);
    const int64_t n = l ? together(l->buffer, l->index[0]) : 1;
    if (n > 1)
      return comment("this thread's part of the row",
                     over_turns([&](const Cell& c) { return read_vector(to, {c.turn}, *l, n, c); }));
    return at_cells({s.value}, [&](const Cell& c, const Exprs& v) { return store(to, place(to, c), v[0]); });
  }

  // `kept` is stored on the way.
  Stmt reduce(const RowStep& s, const RowStep* kept, size_t next) {
    if (!s.tuple.empty()) return reduce_tuple(s, kept, next);
    const DType t = s.name->dtype;
    const std::string op_name = s.op == Op::Add ? "sum" : s.op == Op::Mul ? "product" : s.op == Op::Max ? "max" : "min";
    const std::string name = s.name->name == r_.c.out->name ? op_name : s.name->name;
    const Buffer total = make_buffer(name, t, {}, Scope::Register);
    auto add = [&](const Expr& value) { return store(total, {}, value, s.op); };
    Stmts list = {store(total, {}, identity(s.op, t)),
                  part_of(kept, {s.value}, [&](const Exprs& v) { return add(v[0]); })};
    if (p_.across || info(t).bytes < 4)
      list.push_back(join({total}, [&](const Exprs& other) { return add(other[0]); }));
    else
      list.push_back(allreduce(total, s.op, p_.lanes));
    const auto init = as_const_number(s.init), none = as_const_number(identity(s.op, t));
    if (!init || *init != *none) list.push_back(add(at_row(s.init)));
    names_[s.name.get()] = load(total, {});
    list.push_back(steps(next));
    return comment(name + " of the row", alloc(total, seq(std::move(list))));
  }

  // Each lane begins with what joins first: a combiner gives the same however often it joins.
  Stmt reduce_tuple(const RowStep& s, const RowStep* kept, size_t next) {
    std::vector<Buffer> totals;
    for (const RowComponent& k : s.tuple)
      totals.push_back(make_buffer(k.name->name, k.name->dtype, {}, Scope::Register));
    auto combine = [&](const Exprs& other) {
      VarMap at;
      std::vector<Var> values, results;
      for (size_t k = 0; k < totals.size(); k++) {
        values.push_back(make_var("v", totals[k]->dtype));
        results.push_back(make_var("next", totals[k]->dtype));
        at[s.combiner.lhs[k].get()] = load(totals[k], {});
        at[s.combiner.rhs[k].get()] = Expr(values[k]);
      }
      Stmts stores;
      for (size_t k = 0; k < totals.size(); k++) stores.push_back(store(totals[k], {}, Expr(results[k])));
      Stmt one = seq(std::move(stores));
      for (size_t k = totals.size(); k-- > 0;) one = let(results[k], substitute(s.combiner.result[k], at), one);
      for (size_t k = totals.size(); k-- > 0;) one = let(values[k], other[k], one);
      return one;
    };
    Exprs values;
    for (const RowComponent& k : s.tuple) values.push_back(k.value);
    Stmts list = {part_of(kept, values, combine), join(totals, combine)};
    for (size_t k = 0; k < totals.size(); k++) names_[s.tuple[k].name.get()] = load(totals[k], {});
    list.push_back(steps(next));
    Stmt all = seq(std::move(list));
    for (size_t k = totals.size(); k-- > 0;)
      all = alloc(totals[k], seq({store(totals[k], {}, at_row(s.tuple[k].init)), all}));
    return comment(totals[0]->name + " of the row", all);
  }

  // This thread's part of a reduction.
  Stmt part_of(const RowStep* kept, const Exprs& values, const std::function<Stmt(const Exprs& values)>& add) {
    if (!kept) return at_cells(values, [&](const Cell&, const Exprs& v) { return add(v); });
    const Buffer to = arrays_.at(kept->kept.get());
    return at_cells({kept->value}, [&](const Cell& c, const Exprs& v) {
      Exprs at;
      for (const Expr& e : values) at.push_back(at_cell(e, c));
      return seq({store(to, place(to, c), v[0]), add(at)});
    });
  }

  // The lanes' parts through shared memory, halves of the lanes at a time; all lanes get the whole.
  Stmt join(const std::vector<Buffer>& totals, const std::function<Stmt(const Exprs& other)>& add) {
    if (p_.lanes == 1) return {};
    std::vector<Buffer> parts;
    for (const Buffer& t : totals) {
      parts.push_back(make_buffer(t->name + "_of_thread", t->dtype, {Dim(p_.threads())}, Scope::Shared));
      shared_.push_back(parts.back());
    }
    const int64_t step = p_.across ? p_.rows : 1;
    const Expr me = Expr(thread_);
    auto put = [&] {
      Stmts list;
      for (size_t k = 0; k < totals.size(); k++) list.push_back(store(parts[k], {me}, load(totals[k], {})));
      return seq(std::move(list));
    };
    Stmts list = {put()};
    const Var turn = make_var("k"), half = make_var("half");
    Exprs other;
    for (const Buffer& p : parts) other.push_back(load(p, {me + Expr(half) * Expr(step)}));
    const Stmt once = seq({barrier(Scope::Shared), if_then(lane() < Expr(half), seq({add(other), put()}))});
    list.push_back(loop(turn, std::countr_zero(uint64_t(p_.lanes)),
                        let(half, apply(Op::Shr, {Expr(p_.lanes / 2), Expr(turn)}), once)));
    list.push_back(barrier(Scope::Shared));
    for (size_t k = 0; k < totals.size(); k++)
      list.push_back(store(totals[k], {}, load(parts[k], {me - lane() * Expr(step)})));
    return seq(std::move(list));
  }

  Rows r_;
  const RowPlan p_;
  const int64_t columns_, rows_;
  const bool partial_, clamped_;
  const Var block_, thread_, lane_;
  const FlatPoint at_;
  std::map<const BufferDef*, Buffer> arrays_;  // looked up only
  std::vector<Buffer> shared_;
  VarMap names_;  // of reductions: their scalars
};

}  // namespace

Stmt row_loops(Rows r, const RowPlan& plan) { return RowLoops(std::move(r), plan).build(); }

}  // namespace tc
