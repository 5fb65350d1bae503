// lower_lanes: loops of kind Vector run over vectors of VL lanes (C).
//
//   vector j in 0 .. +100:                 for v in 0 .. +100 / VL:
//     y[i, j] = x[i, j] + b[j]       ->      y[i, v * VL:VL] = x[i, v * VL:VL] + b[v * VL:VL]
//                                          y[i, 100 / VL * VL:VL] = first(100 - 100 / VL * VL, ...)
//
// A body of stores of f32, i32 or bytes whose indices move by one element an iteration, in the last dimension, with
// values that have vector forms: loads that move the same way or not at all, operations of the vector headers. A loop
// of another form, or one too short to be worth it, becomes a plain loop. Needs: iterations that are independent, which
// the kind Vector promises.
#include "passes/loop/lower_lanes.h"

#include <functional>

#include "ir/loop/build.h"
#include "ir/loop/simplify.h"
#include "ir/loop/visit.h"
#include "passes/loop/vector_form.h"

namespace tc {
namespace {

constexpr int64_t kShortest = 8;  // iterations

bool has_lanes(const Stmt& s, const Var& lane) {
  if (const Seq* q = as<Seq>(s)) {
    for (const Stmt& x : q->list)
      if (!has_lanes(x, lane)) return false;
    return true;
  }
  const Store* k = as<Store>(s);
  return k && !k->count && has_lanes(k->buffer->dtype) && lane_step(k->index, lane) == 1 &&
         has_vector_form(k->value, lane, false) && (!k->reduce || op_has_lanes(*k->reduce, k->buffer->dtype));
}

// The body for lanes base .. base + VL - 1, of which only `count` exist (null: all).
class Lanes {
 public:
  Lanes(Var lane, Expr base, Expr count) : lane_(std::move(lane)), base_(std::move(base)), count_(std::move(count)) {}

  Stmt stmt(const Stmt& s) const {
    if (const Seq* q = as<Seq>(s)) {
      Stmts list;
      for (const Stmt& x : q->list) list.push_back(stmt(x));
      return seq(std::move(list));
    }
    const Store& k = *as<Store>(s);
    const Expr value = broadcast(expr(k.value));
    return store(k.buffer, ramps(k.index), k.reduce ? apply(*k.reduce, {vector(k.buffer, k.index), value}) : value,
                 std::nullopt, count_);
  }
  Expr expr(const Expr& e) const {
    if (!uses_var(e, lane_)) return e;
    if (const Apply* k = as<Apply>(e)) {
      Exprs args;
      for (const Expr& a : k->args) args.push_back(expr(a));
      return apply(k->op, std::move(args));
    }
    if (const Select* k = as<Select>(e)) return select(expr(k->condition), expr(k->yes), expr(k->no));
    if (const Cast* k = as<Cast>(e)) return cast(e->dtype, expr(k->value), k->saturate);
    const Load* k = as<Load>(e);
    check(k != nullptr, "a form that has lanes");
    return vector(k->buffer, k->index);
  }

 private:
  Expr at(const Expr& e) const { return substitute(e, {{lane_.get(), base_}}); }
  Exprs ramps(const Exprs& index) const {
    Exprs all = index;
    all.back() = ramp(at(all.back()));
    return all;
  }
  Expr vector(const Buffer& b, const Exprs& index) const {
    const Expr v = load(b, ramps(index));
    return count_ ? partial(v, count_) : v;
  }

  const Var lane_;
  const Expr base_, count_;
};

Stmt lower_loop(const For& f) {
  const auto n = as_const_int(f.extent);
  if (!n || *n < kShortest || !has_lanes(f.body, f.var)) return loop(f.var, f.extent, f.body, ForKind::Serial, f.begin);
  const Var v = make_var("v");
  Stmts list = {loop(v, Expr(*n) / lanes(), Lanes(f.var, f.begin + Expr(v) * lanes(), {}).stmt(f.body))};
  if (*n % kMaxLanes != 0) {
    const Expr done = Expr(*n) / lanes() * lanes();
    list.push_back(Lanes(f.var, f.begin + done, Expr(*n) - done).stmt(f.body));
  }
  return seq(list);
}

Expr whole_lanes(const Expr& e, const Var& lane, const Expr& base) { return Lanes(lane, base, {}).expr(e); }

}  // namespace

Expr in_lanes(const Expr& e, const Var& lane, const Expr& base) { return whole_lanes(e, lane, base); }

bool op_has_lanes(Op op, DType operand) {
  switch (op) {
    case Op::Add:
    case Op::Sub:
    case Op::Mul:
    case Op::Neg: return operand == DType::F32 || operand == DType::I32;
    case Op::Lt:
    case Op::Le:
    case Op::Gt:
    case Op::Ge:
    case Op::Eq:
    case Op::Ne:
    case Op::Min:
    case Op::Max: return has_lanes(operand);
    case Op::IsNan:
    case Op::IsInf:
    case Op::Div: return operand == DType::F32;
    case Op::And:
    case Op::Or:
    case Op::Not: return operand == DType::Bool;
    case Op::ReduceAdd:
    case Op::ReduceMax:
    case Op::ReduceMin:
    case Op::Index: return false;
    default: return operand == DType::F32 && !info(op).c_vector.empty();
  }
}

bool has_integer_lanes(DType t) { return t == DType::I32 || t == DType::I8 || t == DType::U8; }

bool cast_has_lanes(const Expr& value, DType to) {
  const DType from = value->dtype;
  if (!has_lanes(from) || !has_lanes(to)) return false;
  if (to == DType::F32 || to == DType::I32 || to == from) return true;
  const Apply* top = as<Apply>(value);
  const Apply* bottom = top && top->op == Op::Min ? as<Apply>(top->args[0]) : nullptr;
  if (!bottom || bottom->op != Op::Max) return false;
  const auto low = as_const_number(bottom->args[1]), high = as_const_number(top->args[1]);
  return low && high && *low >= double(*as_const_int(lowest(to))) && *high <= double(*as_const_int(highest(to)));
}

Stmt lower_lanes(const Stmt& s) {
  return rewrite(s, {}, [](const Stmt& x) -> Stmt {
    const For* f = as<For>(x);
    return f && f->kind == ForKind::Vector ? lower_loop(*f) : Stmt();
  });
}

}  // namespace tc
