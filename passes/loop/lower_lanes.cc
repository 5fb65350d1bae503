// lower_lanes: loops of kind Vector run over vectors of VL lanes (C).
//
//   vector j in 0 .. +100:                 for v in 0 .. +100 / VL:
//     y[i, j] = x[i, j] + b[j]       ->      y[i, v * VL:VL] = x[i, v * VL:VL] + b[v * VL:VL]
//                                          y[i, 100 / VL * VL:VL] = first(100 - 100 / VL * VL, ...)
//
// A body of stores of f32, i32 or bytes whose indices move by one element an iteration, in the last dimension, with
// values that have vector forms: loads that move the same way or not at all, operations of the vector headers. Loops and
// conditions inside that are the same for all lanes stay; what an iteration has for itself (`alloc acc`) becomes a vector.
// A condition `j < n` around the body ends the loop: lanes behind it are not stored. Loops around are cut where that
// makes the number of iterations a constant. A loop of another form, or one too short to be worth it, becomes a plain
// loop. Needs: iterations that are independent, which the kind Vector promises.
#include "passes/loop/lower_lanes.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <set>

#include "ir/loop/build.h"
#include "ir/loop/linear.h"
#include "ir/loop/simplify.h"
#include "ir/loop/visit.h"
#include "passes/loop/lane_conditions.h"
#include "passes/loop/partition_loops.h"
#include "passes/loop/vector_form.h"
#include "passes/loop/vector_room.h"
#include "passes/loop/vectorize_loops.h"

namespace tc {
namespace {

// Iterations that are worth a vector.
int64_t shortest(const Stmt& body) {
  int64_t least = INT64_MAX;
  walk(body, [&](const Stmt& s) {
    if (const Store* k = as<Store>(s)) least = std::min(least, fewest_lanes(k->value));
    return true;
  });
  return least;
}

bool has_lanes(const Stmt& s, const Var& lane) {
  if (!s) return true;
  if (const Seq* q = as<Seq>(s))
    return std::all_of(q->list.begin(), q->list.end(), [&](const Stmt& x) { return has_lanes(x, lane); });
  if (const For* f = as<For>(s))
    return (f->kind == ForKind::Serial || f->kind == ForKind::Unroll) && !uses_var(f->begin, lane) &&
           !uses_var(f->extent, lane) && has_lanes(f->body, lane);
  if (const If* k = as<If>(s))
    return !uses_var(k->condition, lane) && has_lanes(k->then, lane) && has_lanes(k->otherwise, lane);
  if (const Alloc* k = as<Alloc>(s)) return has_lanes(k->body, lane);
  if (as<Prefetch>(s)) return true;
  const Store* k = as<Store>(s);
  return k && !k->count && lane_step(k->index, lane) == 1 && has_stored_form(k->value, k->buffer->dtype, lane, false) &&
         (!k->reduce || op_has_lanes(*k->reduce, k->buffer->dtype));
}

// The body with an element per lane, in a last dimension of its own, of the registers that an iteration has for itself.
struct Widened {
  Stmt body;
  Buffers own;
};
Widened widen(const Stmt& body, const Var& lane) {
  BufferMap wide;
  walk(body, [&](const Stmt& s) {
    const Alloc* k = as<Alloc>(s);
    if (!k || k->buffer->scope != Scope::Register) return true;
    Shape shape = k->buffer->shape;
    shape.push_back(Dim(kMaxLanes));
    wide[k->buffer.get()] = make_buffer(k->buffer->name, k->buffer->dtype, shape, Scope::Register);
    return true;
  });
  if (wide.empty()) return {body, {}};
  auto of = [&](const Buffer& b) {
    const auto it = wide.find(b.get());
    return it == wide.end() ? Buffer() : it->second;
  };
  auto with_lane = [&](Exprs index) {
    index.push_back(Expr(lane));
    return index;
  };
  Widened w;
  w.body = rewrite(
      body,
      [&](const Expr& e) {
        const Load* k = as<Load>(e);
        const Buffer b = k ? of(k->buffer) : Buffer();
        return b ? load(b, with_lane(k->index)) : Expr();
      },
      [&](const Stmt& s) {
        const Store* k = as<Store>(s);
        const Alloc* a = as<Alloc>(s);
        const Buffer b = k ? of(k->buffer) : a ? of(a->buffer) : Buffer();
        if (!b) return Stmt();
        return k ? store(b, with_lane(k->index), k->value, k->reduce, k->count) : alloc(b, a->body);
      });
  for (const auto& [_, b] : wide) w.own.insert(b.get());
  return w;
}

// The body for lanes base .. base + VL - 1, of which only `count` exist in memory (null: all). Registers have them all.
class Lanes {
 public:
  /// `from_zero`: the loop's first lane is 0.
  Lanes(Var lane, Expr base, Expr count, const Buffers& own, bool from_zero)
      : lane_(std::move(lane)), base_(std::move(base)), count_(std::move(count)), own_(own), from_zero_(from_zero) {}

  Stmt stmt(const Stmt& s) const {
    if (const Seq* q = as<Seq>(s)) {
      Stmts list;
      for (const Stmt& x : q->list) list.push_back(stmt(x));
      return seq(std::move(list));
    }
    if (const For* f = as<For>(s)) return loop(f->var, f->extent, stmt(f->body), f->kind, f->begin);
    if (const If* k = as<If>(s))
      return if_then(k->condition, stmt(k->then), k->otherwise ? stmt(k->otherwise) : Stmt());
    if (const Alloc* k = as<Alloc>(s)) return alloc(k->buffer, stmt(k->body));
    if (const Prefetch* k = as<Prefetch>(s)) {
      Exprs index;
      for (const Expr& e : k->index) index.push_back(at(e));
      return prefetch(k->buffer, index, k->level);
    }
    const Store& k = *as<Store>(s);
    const Expr value = broadcast(expr(k.value));
    return store(k.buffer, ramps(k.buffer, k.index),
                 k.reduce ? apply(*k.reduce, {vector(k.buffer, k.index), value}) : value, std::nullopt,
                 k.buffer->scope == Scope::Register ? Expr() : count_);
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
  Exprs ramps(const Buffer& b, const Exprs& index) const {
    Exprs all = index;
    all.back() = ramp(own_.count(b.get()) != 0 ? Expr(0) : at(all.back()));
    return all;
  }
  Expr vector(const Buffer& b, const Exprs& index) const {
    const Expr v = load(b, ramps(b, index));
    return bool(count_) && !has_all_lanes(b, index) ? partial(v, count_) : v;
  }
  // Registers, and memory of the kernel's own whose rows are whole vectors: what lies behind the last lane may be read.
  bool has_all_lanes(const Buffer& b, const Exprs& index) const {
    const VarRef* at_lane = as<VarRef>(index.back());
    return b->scope == Scope::Register || (b->scope == Scope::Stack && at_lane && at_lane->var == lane_ && from_zero_ &&
                                           b->shape.back().value % kMaxLanes == 0);
  }

  const Var lane_;
  const Expr base_, count_;
  const Buffers& own_;
  const bool from_zero_;
};

// Registers that outlive an iteration and have elements of their own for lanes.
Buffers shared_registers(const Stmt& body, const Var& lane, const Buffers& own) {
  Buffers found;
  for_each_access(body, [&](const Buffer& b, const Exprs& index) {
    const bool lanes = b->scope == Scope::Register && !index.empty() && uses_var(index.back(), lane);
    if (lanes && own.count(b.get()) == 0) found.insert(b.get());
  });
  return found;
}

// How many whole vectors lie before a loop that begins behind some of them; null: it begins elsewhere.
Expr vectors_before(const Expr& begin) {
  const Apply* k = as<Apply>(begin);
  return k && k->op == Op::Mul && as<tc::Lanes>(k->args[1]) ? k->args[0] : Expr();
}

constexpr int64_t kMostUnrolled = 64;  // iterations of a loop whose vectors are registers

// `kept`: becomes also the registers that the loop shares with others.
Stmt lower_loop(const For& f, Buffers& kept) {
  Stmt plain = loop(f.var, f.extent, f.body, ForKind::Serial, f.begin);
  const auto n = as_const_int(f.extent);
  const Widened w = widen(f.body, f.var);
  if (!f.body || !has_lanes(w.body, f.var)) return plain;
  // Registers are reached by constants, and have room for whole vectors; short loops over them are of vectors as well, so
  // that they need not lie in memory.
  const Buffers shared = shared_registers(w.body, f.var, w.own);
  const bool registers = !shared.empty();
  const int64_t most = interval(f.extent, {}).max;  // of min(16, n), 16
  if ((registers && most == INT64_MAX) || (n && *n < (registers ? 1 : shortest(f.body)))) return plain;
  kept.insert(shared.begin(), shared.end());
  const bool from_zero = is_const(f.begin, 0);
  const Expr all = n ? Expr(*n) : f.extent;
  const Var v = make_var("v");
  if (!n && registers) {  // whole vectors in registers, as many lanes as there are in memory
    const int64_t room = round_up(most);
    const Lanes some(f.var, f.begin + Expr(v) * lanes(), all - Expr(v) * lanes(), w.own, from_zero);
    return loop(v, Expr(room) / lanes(), some.stmt(w.body), ForKind::Unroll);
  }
  const auto end = as_const_int(simplify(f.begin + f.extent));
  if (const Expr first = vectors_before(f.begin); bool(first) && end) {
    const Expr whole = Expr(*end) / lanes();
    const Lanes vector(f.var, Expr(v) * lanes(), {}, w.own, false);
    const Lanes rest(f.var, whole * lanes(), Expr(*end) - whole * lanes(), w.own, false);
    return seq({loop(v, whole - first, vector.stmt(w.body), ForKind::Serial, first),
                *end % kMaxLanes != 0 ? rest.stmt(w.body) : Stmt()});
  }
  const ForKind kind = registers && *n <= kMostUnrolled ? ForKind::Unroll : ForKind::Serial;
  Stmts list = {
      loop(v, all / lanes(), Lanes(f.var, f.begin + Expr(v) * lanes(), {}, w.own, from_zero).stmt(w.body), kind)};
  if (!n || *n % kMaxLanes != 0) {
    const Expr done = all / lanes() * lanes();
    const Lanes rest(f.var, f.begin + done, all - done, w.own, from_zero);
    list.push_back(n ? rest.stmt(w.body) : if_then(done < all, rest.stmt(w.body)));
  }
  return seq(list);
}

Buffers written_in(const Stmt& s) {
  Buffers found;
  walk(s, [&](const Stmt& x) {
    if (const Store* k = as<Store>(x)) found.insert(k->buffer.get());
    return true;
  });
  return found;
}

Stmt ended(const Stmt& s) {
  bool open = false;
  const Buffers written = written_in(s);
  const Stmt all = rewrite(s, {}, [&](const Stmt& x) -> Stmt {
    const For* f = as<For>(x);
    if (!f || f->kind != ForKind::Vector) return {};
    Stmt e = end_at_condition(*f);
    if (!e) e = cut_at_stairs(*f, written);
    open = open || e || !as_const_int(f->extent);
    return e;
  });
  return open ? partition_loops(all) : s;
}

Expr whole_lanes(const Expr& e, const Var& lane, const Expr& base) { return Lanes(lane, base, {}, {}, false).expr(e); }

}  // namespace

bool runs_on_vectors(const For& f) {
  const auto n = as_const_int(f.extent);
  return f.body && n && *n >= shortest(f.body) && has_lanes(widen(f.body, f.var).body, f.var);
}

Expr in_lanes(const Expr& e, const Var& lane, const Expr& base) { return whole_lanes(e, lane, base); }

namespace {

// What tc_double.h has. Masks lie in lanes of 32 bits: there are none of comparisons of doubles.
bool op_has_double_lanes(Op op) {
  static constexpr Op kOps[] = {Op::Add, Op::Sub,  Op::Mul, Op::Div,   Op::Neg,  Op::Abs,    Op::Min,
                                Op::Max, Op::Sqrt, Op::Exp, Op::Expm1, Op::Tanh, Op::Sigmoid};
  return std::find(std::begin(kOps), std::end(kOps), op) != std::end(kOps);
}

}  // namespace

bool op_has_lanes(Op op, DType operand) {
  if (operand == DType::F64) return op_has_double_lanes(op);
  switch (op) {
    case Op::Add:
    case Op::Sub:
    case Op::Mul:
    case Op::Neg: return operand == DType::F32 || operand == DType::I32;
    case Op::Ne:
    case Op::Eq: return has_lanes(operand) || operand == DType::Bool;
    case Op::Lt:
    case Op::Le:
    case Op::Gt:
    case Op::Ge:
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
  auto of_mask = [](DType t) { return t == DType::F32 || has_integer_lanes(t); };
  if (from == DType::Bool || to == DType::Bool) return of_mask(from == DType::Bool ? to : from);
  if (!has_lanes(from) || !has_lanes(to)) return false;
  if (from == DType::F64 || to == DType::F64) return from == to;
  if (to == DType::F32 || to == DType::I32 || to == from) return true;
  const Apply* top = as<Apply>(value);
  const Apply* bottom = top && top->op == Op::Min ? as<Apply>(top->args[0]) : nullptr;
  if (!bottom || bottom->op != Op::Max) return false;
  const auto low = as_const_number(bottom->args[1]), high = as_const_number(top->args[1]);
  return low && high && *low >= double(*as_const_int(lowest(to))) && *high <= double(*as_const_int(highest(to)));
}

Stmt lower_lanes(const Stmt& s) {
  Buffers kept;
  const Stmt vectors = rewrite(settle_partial(settle_unaligned(ended(s))), {}, [&](const Stmt& x) -> Stmt {
    const For* f = as<For>(x);
    return f && f->kind == ForKind::Vector ? lower_loop(*f, kept) : Stmt();
  });
  kept.merge(mixed_registers(vectors));
  return kept.empty() ? vectors : settle_registers(vectors, kept);
}

}  // namespace tc
