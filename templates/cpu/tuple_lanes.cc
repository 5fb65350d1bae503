#include "templates/cpu/tuple_lanes.h"

#include <algorithm>
#include <limits>

#include "ir/interpreter.h"
#include "ir/loop/build.h"
#include "ir/loop/op_rules.h"
#include "ir/loop/visit.h"
#include "templates/disjunction.h"

namespace tc {
namespace {

bool reads_one_of(const Expr& e, const VarMap& vars) {
  bool found = false;
  walk(e, [&](const Expr& x) {
    const VarRef* v = as<VarRef>(x);
    return !(found = found || (v && vars.count(v->var.get()) != 0));
  });
  return found;
}

// A choice among positions, or a truth about them, where positions have 32 bits; null if anything is computed of one, for that may need
// more of them.
Expr in_lanes(const Expr& e, const VarMap& to) {
  if (const VarRef* v = as<VarRef>(e)) {
    const auto it = to.find(v->var.get());
    return it != to.end() ? it->second : e->dtype == DType::I64 ? Expr() : e;
  }
  const IntImm* number = as<IntImm>(e);
  if (number && e->dtype == DType::I64)
    return number->value == int32_t(number->value) ? make_int(DType::I32, number->value) : Expr();
  const Apply* k = as<Apply>(e);
  const Select* s = as<Select>(e);
  if (!k && !s) return e->dtype == DType::I64 || reads_one_of(e, to) ? Expr() : e;
  if (k && e->dtype == DType::I64) return {};
  Exprs args;
  for (const Expr& a : k ? k->args : Exprs{s->condition, s->yes, s->no}) {
    args.push_back(in_lanes(a, to));
    if (!args.back()) return {};
  }
  return k ? apply(k->op, std::move(args)) : select(args[0], args[1], args[2]);
}

// Where no element was met yet: a number beyond all positions is so in 32 bits, too.
Expr start_in_lanes(const Expr& e) {
  const IntImm* k = as<IntImm>(e);
  return k ? make_int(DType::I32, std::clamp<int64_t>(k->value, INT32_MIN, INT32_MAX)) : Expr();
}

// A state's position before that of what joins it: ties are decided.
Expr in_order_of(const Combiner& c, const Expr& e) {
  const Expr decided = rewrite(e, [&](const Expr& x) -> Expr {
    const auto op = compares_positions(c, x);
    return op ? make_int(DType::Bool, *op == Op::Lt || *op == Op::Le || *op == Op::Ne) : Expr();
  });
  return rewrite(decided, [](const Expr& x) -> Expr {
    const Select* s = as<Select>(x);
    return s ? select(shorter(s->condition), s->yes, s->no) : Expr();
  });
}

bool is_position(const Expr& e, const Var& along) {
  const VarRef* v = as<VarRef>(e);
  return v && v->var == along;
}

}  // namespace

std::optional<Op> compares_positions(const Combiner& c, const Expr& e) {
  const Apply* k = as<Apply>(e);
  if (!k || k->args.size() != 2 || !info(k->op).compares || k->args[0]->dtype != DType::I64) return {};
  const auto is = [](const Expr& x, const Var& v) {
    const VarRef* r = as<VarRef>(x);
    return r && r->var == v;
  };
  for (size_t i = 0; i < c.lhs.size(); i++) {
    if (is(k->args[0], c.lhs[i]) && is(k->args[1], c.rhs[i])) return k->op;
    if (is(k->args[1], c.lhs[i]) && is(k->args[0], c.rhs[i])) return mirrored(k->op);
  }
  return {};
}

bool is_tuple_reduction(const Rows& r) {
  if (r.columns.size() != 1 || r.columns[0].extent.value >= INT32_MAX || r.steps.size() < 2) return false;
  const RowStep& reduce = r.steps[0];
  if (reduce.kind != RowStep::Kind::Reduce || reduce.tuple.empty() || reduce.combiner.op) return false;
  return std::all_of(r.steps.begin() + 1, r.steps.end(),
                     [](const RowStep& s) { return s.kind == RowStep::Kind::Value; });
}

void bind_rows(Scheduled& s, const Rows& r, const TensorFn& fn) {
  bind_operands(s, r.c);
  s.outputs = fn.outputs;
  for (size_t i = 1; i < s.outputs.size(); i++) s.views.push_back({r.outs[i], s.outputs[i]});
}

// Found out by joining what there is of elements to the start: the combiner may be the user's.
bool starts_from_nothing(const RowStep& reduce) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const Combiner& c = reduce.combiner;
  TensorFn joined;
  for (const double x : {-kInfinity, 0.0, kInfinity, std::numeric_limits<double>::quiet_NaN()}) {
    VarMap to;
    Exprs element;
    for (size_t k = 0; k < reduce.tuple.size(); k++) {
      const DType t = reduce.tuple[k].name->dtype;
      if (t != DType::I64 && !is_float(t)) return false;
      element.push_back(t == DType::I64 ? make_int(t, 0) : make_float(t, x));
      to[c.lhs[k].get()] = reduce.tuple[k].init;
      to[c.rhs[k].get()] = element[k];
    }
    for (size_t k = 0; k < element.size(); k++) {
      const Expr result = substitute(c.result[k], to);
      const Expr both_nan = result->dtype == DType::I64 ? make_int(DType::Bool, 0)
                                                        : apply(Op::IsNan, {result}) && apply(Op::IsNan, {element[k]});
      Stage s;
      s.name = "joined";
      s.values = {cast(DType::I64, eq(result, element[k]) || both_nan)};
      s.outputs = {make_buffer("joined", DType::I64, {})};
      joined.outputs.push_back(s.outputs[0]);
      joined.stages.push_back(std::move(s));
    }
  }
  const std::vector<Constant> wins = evaluate(joined, {});
  return std::all_of(wins.begin(), wins.end(), [](const Constant& w) { return w->as_int(0) == 1; });
}

std::optional<TupleLanes> tuple_in_lanes(const RowStep& reduce, const Var& along, const Var& counter, const Var& lane,
                                         bool in_order) {
  TupleLanes t;
  VarMap to;
  for (const RowComponent& c : reduce.tuple) {
    const bool is_index = c.name->dtype == DType::I64;
    if (is_index && !is_position(c.value, along)) return {};
    t.value.push_back(is_index ? cast(DType::I32, Expr(counter)) : c.value);
    t.start.push_back(is_index ? start_in_lanes(c.init) : c.init);
    const Expr &value = t.value.back(), &start = t.start.back();
    if (!value || !start || !has_lanes(value->dtype) || value->dtype != start->dtype) return {};
    t.state.push_back(make_buffer(is_index ? "place" : "best", value->dtype, {Dim(kMaxLanes)}));
  }
  for (size_t k = 0; k < t.state.size(); k++) {
    to[reduce.combiner.lhs[k].get()] = load(t.state[k], {Expr(lane)});
    to[reduce.combiner.rhs[k].get()] = t.value[k];
  }
  for (const Expr& e : reduce.combiner.result) {
    t.next.push_back(in_lanes(in_order ? in_order_of(reduce.combiner, e) : e, to));
    if (!t.next.back() || !has_vector_form(t.next.back(), lane)) return {};
  }
  return t;
}

// All values are computed before one of them is stored.
Stmt join_lanes(const TupleLanes& t, const std::vector<Buffer>& acc, const Var& v, const LanePoint& point) {
  const auto in_registers = [&](const Expr& e) {
    return rewrite(e, [&](const Expr& x) -> Expr {
      const Load* l = as<Load>(x);
      const auto it = l ? std::find(t.state.begin(), t.state.end(), l->buffer) : t.state.end();
      return it == t.state.end() ? Expr() : load(acc[size_t(it - t.state.begin())], lanes_of(v));
    });
  };
  std::vector<Buffer> next;
  Stmts list;
  for (size_t k = 0; k < acc.size(); k++) {
    next.push_back(make_buffer("next_" + t.state[k]->name, acc[k]->dtype, {Dim(kMaxLanes)}, Scope::Register));
    list.push_back(store(next[k], {ramp(0)}, broadcast(in_registers(vector_form(t.next[k], point)))));
  }
  for (size_t k = 0; k < acc.size(); k++) list.push_back(store(acc[k], lanes_of(v), load(next[k], {ramp(0)})));
  Stmt body = seq(list);
  for (const Buffer& b : next) body = alloc(b, body);
  return body;
}

}  // namespace tc
