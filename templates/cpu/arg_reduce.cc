// Extremes and where they are, across rows: ArgMax over channels that come first.
//
//   for blocks of columns that lie side by side:      shared among threads
//     best[v], index[v] = nothing                     vectors; indices are counted in 32 bits
//     for r:  (best, index)[v] = combine((best, index)[v], (x[r, v], r))
//     y[column] = what follows from best and index    one after the other, in their own type
//
// The last block ends where the columns end, and so overlaps the one before.
#include <algorithm>

#include "ir/loop/build.h"
#include "ir/loop/visit.h"
#include "support/text.h"
#include "templates/cpu/lanes.h"
#include "templates/cpu/template.h"
#include "templates/rows.h"

namespace tc {
namespace {

using Point = std::vector<std::pair<Var, Expr>>;

struct ArgReduce {
  Rows r;
  Axis n;                     // columns, side by side
  std::vector<Axis> outer;    // the other ones
  std::vector<Buffer> state;  // the values that are joined, a vector each: f32 or i32, over n while they are matched
  Exprs start, next, value;   // of the state; `value`: what joins
  std::vector<RowStep> results;
  const Axis& along() const { return r.columns[0]; }
};

struct ArgReducePlan {
  int64_t columns = kMaxLanes;  // of a block
  bool parallel = false;        // on threads: the outermost axis, or parts of the blocks
  int64_t parts = 1;            // of two blocks and more, since the last ones may overlap; 1: the outermost axis
};

ArgReducePlan decide(const ArgReduce& p, const PlanEntry& plan) {
  constexpr int64_t kMostVectors = 8, kMostParts = 16;
  ArgReducePlan d;
  const int64_t vectors = p.n.extent.value / kMaxLanes;
  d.columns = plan.in_range(
      "columns", [&] { return std::min<int64_t>(vectors, 4) * kMaxLanes; }, kMaxLanes,
      std::min(vectors, kMostVectors) * kMaxLanes, kMaxLanes);
  const int64_t most = ceil_div(p.n.extent.value, d.columns) / 2;
  const int64_t outer = p.outer.empty() ? 1 : p.outer[0].extent.value;
  const bool pays = points(p.r.c.axes) * p.along().extent.value >= kParallelThreshold;
  d.parallel =
      plan.flag("parallel", pays && (outer >= 4 || most >= 2), outer > 1 || most >= 2, "there is nothing to share");
  if (!d.parallel)
    d.parts = plan.number(
        "parts", [] { return 1; }, KnobValues::only(1, "it is not on threads"));
  else
    d.parts = plan.in_range(
        "parts", [&] { return outer >= 4 ? 1 : std::min(kMostParts, most); }, outer > 1 ? 1 : 2,
        std::max<int64_t>(1, most));
  return d;
}

// The same value where integers have 32 bits; null if it has another form.
Expr in_lanes(const Expr& e, const VarMap& to) {
  if (const VarRef* v = as<VarRef>(e)) {
    const auto it = to.find(v->var.get());
    return it != to.end() ? it->second : e->dtype == DType::I64 ? Expr() : e;
  }
  if (const IntImm* k = as<IntImm>(e); k && e->dtype == DType::I64)
    return make_int(DType::I32, std::clamp<int64_t>(k->value, INT32_MIN, INT32_MAX));
  const Apply* k = as<Apply>(e);
  const Select* s = as<Select>(e);
  if (!k && !s) return e->dtype == DType::I64 ? Expr() : e;
  Exprs args;
  for (const Expr& a : k ? k->args : Exprs{s->condition, s->yes, s->no}) {
    args.push_back(in_lanes(a, to));
    if (!args.back()) return {};
  }
  return k ? apply(k->op, std::move(args)) : select(args[0], args[1], args[2]);
}

// Columns: the axis that lies side by side in all results.
bool find_columns(ArgReduce& p) {
  for (const Axis& a : p.r.c.axes) {
    const bool unit = std::all_of(p.results.begin(), p.results.end(), [&](const RowStep& s) {
      const auto f = affine_in(s.out_index, {a.var});
      return f && f->coefficients[0] == 1;
    });
    if (unit)
      p.n = a;
    else
      p.outer.push_back(a);
  }
  return p.n.var && p.n.extent.value >= kMaxLanes;
}

// What is joined, on lanes.
bool find_state(ArgReduce& p, const RowStep& reduce) {
  VarMap to;
  const Expr lane(p.n.var);
  for (size_t k = 0; k < reduce.tuple.size(); k++) {
    const RowComponent& c = reduce.tuple[k];
    const bool is_index = c.name->dtype == DType::I64;
    const VarMap counted = {{p.along().var.get(), cast(DType::I32, Expr(p.along().var))}};
    p.value.push_back(is_index ? in_lanes(c.value, counted) : c.value);
    p.start.push_back(is_index ? in_lanes(c.init, {}) : c.init);
    if (!p.value[k] || !p.start[k] || !has_lanes(p.value[k]->dtype) || p.value[k]->dtype != p.start[k]->dtype)
      return false;
    p.state.push_back(make_buffer(is_index ? "place" : "best", p.value[k]->dtype, {Dim(kMaxLanes)}));
    to[reduce.combiner.lhs[k].get()] = load(p.state[k], {lane});
    to[reduce.combiner.rhs[k].get()] = p.value[k];
  }
  for (const Expr& e : reduce.combiner.result) {
    p.next.push_back(in_lanes(e, to));
    if (!p.next.back() || !has_vector_form(p.next.back(), p.n.var)) return false;
  }
  return true;
}

std::optional<ArgReduce> match(const TemplateArgs& a) {
  auto r = match_rows(a.fn, KeptRows::Nowhere, RowForm::Any);
  if (!r || r->columns.size() != 1 || r->columns[0].extent.value >= INT32_MAX || r->steps.empty()) return {};
  const RowStep reduce = r->steps[0];
  if (reduce.kind != RowStep::Kind::Reduce || reduce.tuple.empty() || reduce.combiner.op) return {};
  ArgReduce p;
  p.r = std::move(*r);
  p.results.assign(p.r.steps.begin() + 1, p.r.steps.end());
  for (const RowStep& s : p.results)
    if (s.kind != RowStep::Kind::Value) return {};
  if (p.results.empty() || !find_columns(p) || !find_state(p, reduce)) return {};
  return p;
}

class Builder {
 public:
  Builder(const ArgReduce& p, const ArgReducePlan& plan)
      : p_(p), plan_(plan), size_(plan.columns), blocks_(ceil_div(p.n.extent.value, size_)) {
    for (const Axis& a : p.outer) at_.push_back({a.var, Expr(a.var)});
    for (const Buffer& b : p.state) acc_.push_back(make_buffer(b->name, b->dtype, {Dim(size_)}, Scope::Register));
  }

  Stmt build() {
    const int64_t parts = plan_.parts;
    const bool outermost = plan_.parallel && parts == 1;
    auto over_outer = [&](Stmt body) {
      for (size_t i = p_.outer.size(); i-- > 0;)
        body =
            loop(p_.outer[i].var, p_.outer[i].extent, body, outermost && i == 0 ? ForKind::Parallel : ForKind::Serial);
      return body;
    };
    if (parts < 2) return over_outer(over_blocks(0, blocks_));
    const Var part = make_var("part");
    auto first = [&](const Expr& i) {
      return blocks_ % parts == 0 ? i * Expr(blocks_ / parts) : i * Expr(blocks_) / Expr(parts);
    };
    const Expr count = blocks_ % parts == 0 ? Expr(blocks_ / parts) : first(Expr(part) + Expr(1)) - first(part);
    return loop(part, parts, over_outer(over_blocks(first(part), count)), ForKind::Parallel);
  }

 private:
  Stmt over_blocks(const Expr& begin, const Expr& count) {
    const Var o = make_var(p_.n.var->name + "_o");
    if (blocks_ == 1) return block(0);
    if (p_.n.extent.value % size_ == 0) return loop(o, count, block(Expr(o) * Expr(size_)), ForKind::Serial, begin);
    const Var first = make_var(p_.n.var->name);
    const Expr last = min(Expr(o) * Expr(size_), Expr(p_.n.extent.value - size_));
    return loop(o, count, let(first, last, block(Expr(first))), ForKind::Serial, begin);
  }

  Stmt block(const Expr& begin) {
    const Stmt start = over_vectors([&](const Var& v) {
      Stmts list;
      for (size_t k = 0; k < acc_.size(); k++) list.push_back(store(acc_[k], vector_index(v), broadcast(p_.start[k])));
      return seq(list);
    });
    const Stmt join = over_vectors([&](const Var& v) { return step(begin, v); });
    Stmt body = seq({start, loop(p_.along().var, p_.along().extent, join), results(begin)});
    for (const Buffer& b : acc_) body = alloc(b, body);
    return body;
  }

  Stmt over_vectors(const std::function<Stmt(const Var& v)>& body) const {
    const Var v = make_var("v");
    return loop(v, Expr(size_) / lanes(), body(v), ForKind::Unroll);
  }
  static Exprs vector_index(const Var& v) { return {ramp(Expr(v) * lanes())}; }

  // All values are computed before one of them is stored.
  Stmt step(const Expr& begin, const Var& v) const {
    const LanePoint point{at_, p_.n.var, begin + Expr(v) * lanes(), {}, {}};
    std::vector<Buffer> next;
    Stmts list;
    for (size_t k = 0; k < acc_.size(); k++) {
      next.push_back(make_buffer("next_" + p_.state[k]->name, acc_[k]->dtype, {Dim(kMaxLanes)}, Scope::Register));
      list.push_back(store(next[k], {ramp(0)}, broadcast(in_registers(vector_form(p_.next[k], point), v))));
    }
    for (size_t k = 0; k < acc_.size(); k++) list.push_back(store(acc_[k], vector_index(v), load(next[k], {ramp(0)})));
    Stmt body = seq(list);
    for (const Buffer& b : next) body = alloc(b, body);
    return body;
  }
  Expr in_registers(const Expr& e, const Var& v) const {
    return rewrite(e, [&](const Expr& x) -> Expr {
      const Load* l = as<Load>(x);
      const auto it = l ? std::find(p_.state.begin(), p_.state.end(), l->buffer) : p_.state.end();
      return it == p_.state.end() ? Expr() : load(acc_[size_t(it - p_.state.begin())], vector_index(v));
    });
  }

  // The vectors that results are made of go through memory, since results may have any type.
  Stmt results(const Expr& begin) const {
    const Var i = make_var("i");
    Point p = at_;
    p.push_back({p_.n.var, begin + Expr(i)});
    VarMap to;
    std::vector<Buffer> arrays;
    Stmts list;
    const std::vector<RowComponent>& tuple = p_.r.steps[0].tuple;
    for (size_t k = 0; k < tuple.size(); k++) {
      const bool read = std::any_of(p_.results.begin(), p_.results.end(),
                                    [&](const RowStep& s) { return uses_var(s.value, tuple[k].name); });
      if (!read) continue;
      const Buffer array = make_buffer(p_.state[k]->name + "s", acc_[k]->dtype, {Dim(size_)}, Scope::Stack);
      arrays.push_back(array);
      list.push_back(
          over_vectors([&](const Var& v) { return store(array, vector_index(v), load(acc_[k], vector_index(v))); }));
      to[tuple[k].name.get()] = cast(tuple[k].name->dtype, load(array, {Expr(i)}));
    }
    Stmts stores;
    for (const RowStep& s : p_.results)
      stores.push_back(store(s.out, {index_at(s.out_index, p)}, scalar_form(substitute(s.value, to), p)));
    list.push_back(loop(i, size_, seq(stores)));
    Stmt body = seq(list);
    for (const Buffer& b : arrays) body = alloc(b, body);
    return body;
  }

  const ArgReduce& p_;
  const ArgReducePlan plan_;
  const int64_t size_, blocks_;  // columns of a block
  Point at_;
  std::vector<Buffer> acc_;
};

}  // namespace

std::optional<Scheduled> schedule_arg_reduce(const TemplateArgs& a) {
  const auto p = match(a);
  if (!p) return {};
  Scheduled s;
  const ArgReducePlan plan = decide(*p, a.plan);
  s.body = Builder(*p, plan).build();
  bind_operands(s, p->r.c);
  s.outputs = a.fn.outputs;
  for (size_t i = 1; i < s.outputs.size(); i++) s.views.push_back({p->r.outs[i], s.outputs[i]});
  s.family = "places";
  s.description = to_text(plan.columns) + " columns at a time, in vectors";
  return s;
}

}  // namespace tc
