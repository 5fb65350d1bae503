// Reductions along rows that lie contiguous in memory, with everything around them: softmax, normalisation, means.
//
//   x_row = x[row]                          16 bytes a read; the row is read once and stays in registers
//   max = max(x_row), over the lanes too    shuffles; through shared memory where a block has the row
//   exp_row = exp(x_row - max); sum = ...
//   y[row] = exp_row / sum
//
// Up to 1024 columns a warp has the row, else a block; rows of more than 16384 columns are read again for every step.
// Rows of a few columns have a thread each.
#include "templates/rows.h"

#include <cmath>

#include "ir/loop/build.h"
#include "ir/loop/intrin.h"
#include "ir/loop/visit.h"
#include "passes/loop/lower_thread_allreduce.h"
#include "support/text.h"
#include "templates/cuda/contraction.h"

namespace tc {
namespace {

constexpr int64_t kWarp = 32, kVector = 4;
constexpr int64_t kWarpColumns = 1024, kFewColumns = 8;
constexpr int64_t kMaxKept = 64;  // registers of a thread for rows; half of it where a block has 1024 threads

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

// Who computes a row.
struct RowPlan {
  int64_t lanes = 1;   // threads of a row
  int64_t rows = 1;    // of a block
  int64_t vector = 1;  // neighbours that a thread has together
  int64_t turns = 1;   // of the lanes through the row
  bool in_registers = true;
  int64_t threads() const { return lanes * rows; }
};

// The threads of a row by its length alone.
int64_t lanes_of(int64_t columns) {
  if (columns <= kFewColumns) return 1;
  return columns <= kWarpColumns ? kWarp : columns <= 8192 ? 256 : 1024;
}

class RowLoops {
 public:
  RowLoops(Rows r, const RowPlan& plan)
      : r_(std::move(r)),
        p_(plan),
        columns_(r_.columns[0].extent.value),
        rows_(points(r_.c.axes)),
        block_(make_var(plan.rows == 1 ? "row" : "block")),
        thread_(make_var("thread")),
        lane_(make_var("lane")),
        at_(r_.c.axes, row_number(), "row") {}

  Stmt build() {
    if (p_.in_registers) keep_operands();
    Stmt body = steps(0);
    if (rows_ % p_.rows != 0) body = if_then(at_.flat < Expr(rows_), body);
    body = at_.wrap(body);
    if (p_.lanes > 1 && p_.rows > 1) body = let(lane_, floor_mod(Expr(thread_), p_.lanes), body);
    Stmt launch = loop(thread_, p_.threads(), body, ForKind::ThreadX);
    return loop(block_, ceil_div(rows_, p_.rows), launch, ForKind::BlockX);
  }

 private:
  Expr warp() const { return p_.lanes == 1 ? Expr(thread_) : floor_div(Expr(thread_), p_.lanes); }
  Expr row_number() const { return p_.rows == 1 ? Expr(block_) : Expr(block_) * Expr(p_.rows) + warp(); }
  Expr lane() const { return p_.rows == 1 ? Expr(thread_) : p_.lanes == 1 ? Expr(0) : Expr(lane_); }

  // Rows of operands that several steps read get an array, filled first.
  void keep_operands() {
    const Var column = r_.columns[0].var;
    std::vector<RowStep> keeps;
    for (size_t i = 0; i < r_.steps.size(); i++) {
      if (!along_row(r_.steps[i])) continue;
      for (const Load* l : loads_of(r_.steps[i].value)) {
        if (l->buffer->scope != Scope::Global || !walks_rows(l->index[0])) continue;
        const Expr read = load(l->buffer, l->index);
        int uses = 0;
        for (const RowStep& s : r_.steps) uses += along_row(s) && reads(s.value, read) ? 1 : 0;
        if (uses < 2) continue;
        const Buffer kept = make_buffer(l->buffer->name + "_row", l->buffer->dtype, {Dim(columns_)}, Scope::Register);
        for (RowStep& s : r_.steps)
          s.value = rewrite(s.value, [&](const Expr& e) -> Expr {
            return as<Load>(e) && structurally_equal(e, read) ? load(kept, {r_.kept_index}) : Expr();
          });
        keeps.push_back({RowStep::Kind::Keep, read, Op::Add, {}, nullptr, kept});
        i--;  // the loads of this step are others now
        break;
      }
    }
    r_.steps.insert(r_.steps.begin(), keeps.begin(), keeps.end());
    for (const RowStep& s : r_.steps)
      if (s.kind == RowStep::Kind::Keep) arrays_[s.kept.get()] = array_of(s.kept);
  }
  bool walks_rows(const Expr& index) const {
    const auto o = offset_of(index, vars_with_column());
    if (!o || o->of(r_.columns[0].var) == 0) return false;
    for (const Axis& a : r_.c.axes)
      if (o->of(a.var) != 0) return true;
    return rows_ == 1;
  }
  std::vector<Var> vars_with_column() const {
    std::vector<Var> v = vars_of(r_.c.axes);
    v.push_back(r_.columns[0].var);
    return v;
  }
  static bool reads(const Expr& e, const Expr& read) {
    bool found = false;
    walk(e, [&](const Expr& x) {
      found |= as<Load>(x) && structurally_equal(x, read);
      return !found;
    });
    return found;
  }
  Buffer array_of(const Buffer& kept) const {
    const Shape shape = p_.vector > 1 ? Shape{Dim(p_.turns), Dim(p_.vector)} : Shape{Dim(p_.turns)};
    return make_buffer(kept->name, kept->dtype, shape, Scope::Register);
  }

  // Where a thread is in its row.
  struct Cell {
    Expr turn, column, within;  // within a vector
  };
  Exprs place(const Cell& c) const { return p_.vector > 1 ? Exprs{c.turn, c.within} : Exprs{c.turn}; }

  Expr at_cell(const Expr& e, const Cell& c) const {
    VarMap at = at_.at;
    at[r_.columns[0].var.get()] = c.column;
    const Expr kept = rewrite(e, [&](const Expr& x) -> Expr {
      const Load* l = as<Load>(x);
      const auto it = l ? arrays_.find(l->buffer.get()) : arrays_.end();
      if (it != arrays_.end()) return load(it->second, place(c));
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
  Stmt over_cells(const std::function<Stmt(const Cell& c)>& body, ForKind inner = ForKind::Unroll) const {
    return over_turns([&](const Cell& first) {
      if (p_.vector == 1) return body(first);
      const Var j = make_var("j");
      return loop(j, p_.vector, body({first.turn, first.column + Expr(j), Expr(j)}), inner);
    });
  }

  Stmt steps(size_t i) {
    if (i == r_.steps.size()) return {};
    const RowStep& s = r_.steps[i];
    switch (s.kind) {
      case RowStep::Kind::Keep: {
        const Buffer array = arrays_.at(s.kept.get());
        const bool joined =
            !as<Load>(s.value) && i + 1 < r_.steps.size() && r_.steps[i + 1].kind == RowStep::Kind::Reduce;
        return alloc(array, joined ? reduce(r_.steps[i + 1], &s, i + 2) : seq({keep(s, nullptr, {}), steps(i + 1)}));
      }
      case RowStep::Kind::Reduce:
        return reduce(s, nullptr, i + 1);
      case RowStep::Kind::Scalar:
        return let(s.name, at_row(s.value), steps(i + 1));
      case RowStep::Kind::Value: {
        const Stmt one = store(r_.c.out, {at_index(r_.c.out_index, {})}, at_row(s.value));
        return p_.lanes > 1 ? if_then(eq(lane(), 0), one) : one;
      }
      case RowStep::Kind::Row:
        return comment("the result", over_cells(
                                         [&](const Cell& c) {
                                           return store(r_.c.out, {at_index(r_.c.out_index, c)}, at_cell(s.value, c));
                                         },
                                         ForKind::Vector));
    }
    return {};
  }

  // Statements at every cell of a thread; what is read of global memory comes 16 bytes at a time.
  Stmt at_cells(const Expr& value, const std::function<Stmt(const Cell& c, const Expr& value)>& body) const {
    if (p_.vector == 1) return over_turns([&](const Cell& c) { return body(c, at_cell(value, c)); });
    return over_turns([&](const Cell& first) {
      const Var j = make_var("j");
      std::vector<std::pair<Buffer, Stmt>> reads;
      const Expr gathered = gather(value, first, reads, Expr(j));
      const Cell cell{first.turn, first.column + Expr(j), Expr(j)};
      Stmt s = loop(j, p_.vector, body(cell, at_cell(gathered, cell)), ForKind::Unroll);
      for (size_t i = reads.size(); i-- > 0;) s = alloc(reads[i].first, seq({reads[i].second, s}));
      return s;
    });
  }
  Expr gather(const Expr& e, const Cell& first, std::vector<std::pair<Buffer, Stmt>>& reads, const Expr& j) const {
    if (const Load* l = as<Load>(e)) {
      const auto o = l->buffer->scope == Scope::Global ? offset_of(l->index[0], vars_with_column()) : std::nullopt;
      if (!o || o->of(r_.columns[0].var) != 1) return e;
      const Buffer v = make_buffer(l->buffer->name + "_v", l->buffer->dtype, {Dim(p_.vector)}, Scope::Register);
      reads.push_back({v, intrin("load4", {{v, {}}, {l->buffer, {at_index(l->index[0], first)}}})});
      return load(v, {j});
    }
    const Apply* k = as<Apply>(e);
    if (!k || k->op == Op::And || k->op == Op::Or || k->op == Op::Index) return e;
    Exprs args;
    for (const Expr& a : k->args) args.push_back(gather(a, first, reads, j));
    return apply(k->op, std::move(args));
  }

  Stmt keep(const RowStep& s, const RowStep* next, const Buffer& total) const {
    const Buffer to = arrays_.at(s.kept.get());
    const Load* l = as<Load>(s.value);
    if (l && l->buffer->scope == Scope::Global && p_.vector > 1)
      return comment("this thread's part of the row", over_turns([&](const Cell& c) {
                       return intrin("load4", {{to, {c.turn}}, {l->buffer, {at_index(l->index[0], c)}}});
                     }));
    return at_cells(s.value, [&](const Cell& c, const Expr& value) {
      const Stmt one = store(to, place(c), value);
      return next ? seq({one, store(total, {}, at_cell(next->value, c), next->op)}) : one;
    });
  }

  // `kept` is stored on the way.
  Stmt reduce(const RowStep& s, const RowStep* kept, size_t next) {
    const std::string op_name = s.op == Op::Add ? "sum" : s.op == Op::Max ? "max" : "min";
    const std::string name = s.name->name == r_.c.out->name ? op_name : s.name->name;
    const Buffer total = make_buffer(name, DType::F32, {}, Scope::Register);
    const Expr identity = s.op == Op::Add   ? make_float(DType::F32, 0)
                          : s.op == Op::Max ? lowest(DType::F32)
                                            : highest(DType::F32);
    const Stmt part =
        kept ? keep(*kept, &s, total)
             : at_cells(s.value, [&](const Cell&, const Expr& value) { return store(total, {}, value, s.op); });
    Stmts list = {store(total, {}, identity), part, allreduce(total, s.op, p_.lanes)};
    const auto init = as_const_number(s.init);
    const bool neutral = init && (s.op == Op::Add ? *init == 0 : *init == (s.op == Op::Max ? -INFINITY : INFINITY));
    if (!neutral) list.push_back(store(total, {}, at_row(s.init), s.op));
    names_[s.name.get()] = load(total, {});
    list.push_back(steps(next));
    return comment(name + " of the row", alloc(total, seq(std::move(list))));
  }

  Rows r_;
  const RowPlan p_;
  const int64_t columns_, rows_;
  const Var block_, thread_, lane_;
  const FlatPoint at_;
  std::map<const BufferDef*, Buffer> arrays_;  // looked up only
  VarMap names_;                               // of reductions: their scalars
};

// Steps that read or write along the row: a vector at a time where all of them begin on 16 bytes.
bool in_vectors(const Rows& r) {
  const Var column = r.columns[0].var;
  if (r.columns[0].extent.value % kVector != 0) return false;
  std::vector<Var> vars = vars_of(r.c.axes);
  vars.push_back(column);
  auto aligned = [&](const Expr& index) {
    const auto o = offset_of(index, vars);
    if (!o || o->of(column) > 1 || o->of(column) < 0) return false;
    if (o->of(column) == 0) return true;
    bool ok = o->constant % kVector == 0;
    for (const Axis& a : r.c.axes) ok = ok && o->of(a.var) % kVector == 0;
    return ok;
  };
  for (const RowStep& s : r.steps) {
    if (!along_row(s)) continue;
    for (const Load* l : loads_of(s.value))
      if (l->buffer->scope == Scope::Global && !aligned(l->index[0])) return false;
  }
  return r.steps.back().kind != RowStep::Kind::Row || aligned(r.c.out_index);
}

// Neighbouring columns are neighbours in memory, for every operand that is not the same for all columns.
bool is_contiguous(const Rows& r) {
  std::vector<Var> vars = vars_of(r.c.axes);
  vars.push_back(r.columns[0].var);
  bool found = false;
  for (const RowStep& s : r.steps) {
    if (!along_row(s)) continue;
    for (const Load* l : loads_of(s.value)) {
      if (l->buffer->scope != Scope::Global) continue;
      const auto o = offset_of(l->index[0], vars);
      if (!o || std::abs(o->of(vars.back())) > 1) return false;
      found |= o->of(vars.back()) != 0;
    }
  }
  return found;
}

int64_t kept_rows(const Rows& r) {
  int64_t n = 1;
  for (const RowStep& s : r.steps) n += s.kind == RowStep::Kind::Keep ? 1 : 0;
  return n;
}

RowPlan plan_rows(const Rows& r, const CudaModel& gpu) {
  const int64_t columns = r.columns[0].extent.value, rows = points(r.c.axes);
  RowPlan p;
  p.lanes = lanes_of(columns);
  p.vector = p.lanes > 1 && columns >= p.lanes * kVector && in_vectors(r) ? kVector : 1;
  p.turns = ceil_div(columns, p.lanes * p.vector);
  p.in_registers = p.turns * p.vector * kept_rows(r) <= (p.lanes > 256 ? kMaxKept / 2 : kMaxKept);
  if (p.lanes == 1) {
    p.rows = std::min<int64_t>(kBlockThreads, ceil_div(rows, kWarp) * kWarp);
  } else if (p.lanes == kWarp) {
    p.rows = 8;
    while (p.rows > 1 && ceil_div(rows, p.rows) < gpu.multiprocessors) p.rows /= 2;
  }
  return p;
}

}  // namespace

std::optional<Scheduled> cuda_rows(const CudaArgs& a) {
  if (a.options.strict_fp) return {};  // lanes change the order of sums
  std::optional<Rows> r = match_rows(a.fn, KeptRows::InArrays);
  if (!r || points(r->c.axes) == 0 || points(r->columns) == 0) return {};
  RowPlan plan = plan_rows(*r, a.gpu);
  if (!plan.in_registers) r = match_rows(a.fn, KeptRows::Nowhere);
  if (!is_contiguous(*r)) return {};
  Scheduled s;
  const Canonical c = r->c;
  const int64_t columns = r->columns[0].extent.value;
  s.words = plan.lanes == 1 ? "a thread per row"
            : plan.lanes > kWarp
                ? "a block of " + to_text(plan.lanes) + " threads per row"
                : "a warp per row, " + to_text(plan.rows) + (plan.rows == 1 ? " row a block" : " rows a block");
  if (plan.in_registers && columns > 1) s.words += ", the row in registers";
  s.family = "rows";
  s.body = RowLoops(std::move(*r), plan).build();
  bind_operands(s, c);
  return s;
}

}  // namespace tc
