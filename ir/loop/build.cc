#include "ir/loop/build.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "ir/loop/op_rules.h"
#include "ir/loop/operand_mismatch.h"
#include "ir/loop/visit.h"
#include "support/text.h"

namespace tc {
namespace {

template <class K>
Expr make(DType t, bool vector, K kind) {
  return Expr(std::make_shared<const ExprNode>(ExprNode{t, vector, std::move(kind)}));
}
template <class K>
Stmt make(K kind) {
  return Stmt(std::make_shared<const StmtNode>(StmtNode{std::move(kind)}));
}

void check_same(std::string_view what, DType a, DType b) {
  if (a == b) return;
  throw OperandMismatch(std::string(what) + " " + std::string(info(a).name) + " and " + std::string(info(b).name));
}

void check_rank(const Buffer& b, const Exprs& index) {
  check(b != nullptr, "a buffer");
  if (index.size() != b->shape.size())
    throw OperandMismatch("\"" + b->name + "\" has " + to_text(int64_t(b->shape.size())) + " axes, its index " +
                          to_text(int64_t(index.size())));
}

// Strings are loaded, stored, selected and compared, and there are operations of their own; none on numbers takes them.
void refuse_string(std::string_view what, DType t) {
  if (t == DType::String) throw OperandMismatch(std::string(what) + " is of numbers, not of strings");
}

// The table of operations has its functions of floats in one piece, from the square root to the tests of NaN and inf, and
// those on bits in another.
void check_kind_of_number(Op op, DType t) {
  check_truth_values(op, t);
  const bool of_floats = (op >= Op::Sqrt && op <= Op::IsInf) || op == Op::Atan2 || op == Op::Quotient;
  const bool of_integers = op == Op::BitNot || (op >= Op::BitAnd && op <= Op::Shr) || op == Op::Index;
  if (is_float(t) ? of_integers : of_floats)
    throw OperandMismatch(std::string(info(op).name) + " is of " + (of_floats ? "floats" : "integers") + ", not of " +
                          std::string(info(t).name));
}

// A formula with fractions, or a number of elements, may be of a type that does not hold it.
Expr whole_number(DType t, double v) {
  const int bits = info(t).bits;
  const bool is_signed = is_signed_int(t);
  const double end = std::ldexp(1, is_signed ? bits - 1 : bits), begin = is_signed ? -end : 0;
  if (v != std::trunc(v) || !(v >= begin) || !(v < end))
    throw OperandMismatch("the formula has the number " + to_text(v) + ", which " + std::string(info(t).name) +
                          " does not hold");
  if (!is_signed && bits == 64) return make_int(t, int64_t(uint64_t(v)));
  return make_int(t, int64_t(v));
}

bool is_comparison(Op op) { return op >= Op::Eq && op <= Op::Ge; }

bool is_index_type(const Expr& e) { return e->dtype == DType::I64 && !e->vector; }

std::optional<int64_t> fold_index(Op op, int64_t a, int64_t b) {
  auto floor_quotient = [](int64_t x, int64_t y) { return x / y - ((x % y != 0 && (x < 0) != (y < 0)) ? 1 : 0); };
  int64_t r = 0;
  switch (op) {
    case Op::Add: return __builtin_add_overflow(a, b, &r) ? std::nullopt : std::optional(r);
    case Op::Sub: return __builtin_sub_overflow(a, b, &r) ? std::nullopt : std::optional(r);
    case Op::Mul: return __builtin_mul_overflow(a, b, &r) ? std::nullopt : std::optional(r);
    case Op::Div: return b == 0 || b == -1 ? std::nullopt : std::optional(a / b);
    case Op::Mod: return b == 0 || b == -1 ? std::nullopt : std::optional(a % b);
    case Op::FloorDiv: return b <= 0 ? std::nullopt : std::optional(floor_quotient(a, b));
    case Op::FloorMod: return b <= 0 ? std::nullopt : std::optional(a - floor_quotient(a, b) * b);
    case Op::Min: return std::min(a, b);
    case Op::Max: return std::max(a, b);
    case Op::Eq: return a == b;
    case Op::Ne: return a != b;
    case Op::Lt: return a < b;
    case Op::Le: return a <= b;
    case Op::Gt: return a > b;
    case Op::Ge: return a >= b;
    default: return std::nullopt;
  }
}

// x + 0, x - 0, x * 1, x * 0, x / 1 on I64 scalars; and/or/select of constants. Null: no identity applies.
Expr fold_identity(Op op, const Expr& a, const Expr& b) {
  if (op == Op::And) {
    if (const auto c = as_const_int(a)) return *c != 0 ? b : a;
    if (const auto c = as_const_int(b)) return *c != 0 ? a : b;
  }
  if (op == Op::Or) {
    if (const auto c = as_const_int(a)) return *c != 0 ? a : b;
    if (const auto c = as_const_int(b)) return *c != 0 ? b : a;
  }
  if (!is_index_type(a) || !is_index_type(b)) return {};
  switch (op) {
    case Op::Add:
      if (is_const(a, 0)) return b;
      if (is_const(b, 0)) return a;
      break;
    case Op::Sub:
      if (is_const(b, 0)) return a;
      if (a.same_as(b)) return 0;
      break;
    case Op::Mul:
      if (is_const(a, 0) || is_const(b, 0)) return 0;
      if (is_const(a, 1)) return b;
      if (is_const(b, 1)) return a;
      break;
    case Op::Div:
    case Op::FloorDiv:
      if (is_const(b, 1)) return a;
      break;
    case Op::Mod:
    case Op::FloorMod:
      if (is_const(b, 1)) return 0;
      break;
    default: break;
  }
  return {};
}

DType result_type(Op op, const Exprs& args) {
  if (op == Op::TextSize || op == Op::TextByte) return DType::I64;
  return info(op).compares ? DType::Bool : args[0]->dtype;
}

bool takes_position(Op op) { return op == Op::TextByte || op == Op::TextFrom || op == Op::TextFirst; }

void check_text(Op op, const Exprs& args) {
  check_same("the operand of " + std::string(info(op).name) + " is", args[0]->dtype, DType::String);
  if (takes_position(op))
    check_same("the position of " + std::string(info(op).name) + " is", args[1]->dtype, DType::I64);
}

bool is_whole(double v) { return v == std::trunc(v); }

// Has it no fraction? It may be infinite, or no number.
bool is_whole(const Expr& e) {
  if (const FloatImm* k = as<FloatImm>(e)) return is_whole(k->value);
  if (const Cast* c = as<Cast>(e)) return is_int(c->value->dtype);
  const Apply* a = as<Apply>(e);
  if (!a) return false;
  if (a->op == Op::Add || a->op == Op::Sub) return is_whole(a->args[0]) && is_whole(a->args[1]);
  return a->op == Op::Round || a->op == Op::Floor || a->op == Op::Ceil || a->op == Op::Trunc;
}

struct Bounds {
  double low, high;
};

// Of what is a whole number for sure; where(x > low, x, low) is low where x is no number.
std::optional<Bounds> bounds_of_whole(const Expr& e) {
  if (const FloatImm* k = as<FloatImm>(e); k && is_whole(k->value)) return Bounds{k->value, k->value};
  if (const Select* s = as<Select>(e)) {
    const Apply* above = as<Apply>(s->condition);
    const FloatImm* low = as<FloatImm>(s->no);
    const bool clamps = above && low && above->op == Op::Gt && structurally_equal(above->args[0], s->yes) &&
                        structurally_equal(above->args[1], s->no);
    if (!clamps || !is_whole(low->value) || !is_whole(s->yes)) return {};
    return Bounds{low->value, std::numeric_limits<double>::infinity()};
  }
  const Apply* a = as<Apply>(e);
  if (!a || (a->op != Op::Min && a->op != Op::Max)) return {};
  const auto x = bounds_of_whole(a->args[0]), y = bounds_of_whole(a->args[1]);
  if (!x || !y) return {};
  return a->op == Op::Min ? Bounds{std::min(x->low, y->low), std::min(x->high, y->high)}
                          : Bounds{std::max(x->low, y->low), std::max(x->high, y->high)};
}

// The float that `e` was converted from, if that is a whole number that e's type has; null if not.
Expr whole_source(const Expr& e) {
  const Cast* c = as<Cast>(e);
  if (!c || c->value->dtype != DType::F32 || !is_int(e->dtype) || info(e->dtype).bits > 32 || info(e->dtype).bits < 8)
    return {};
  constexpr double kExact = 1 << 24;  // of f32
  const double low = double(*as_const_int(lowest(e->dtype))), high = double(*as_const_int(highest(e->dtype)));
  const auto b = bounds_of_whole(c->value);
  return b && b->low >= std::max(low, -kExact) && b->high <= std::min(high, kExact) ? c->value : Expr();
}

// Integers have no -0.0.
Expr with_positive_zero(const Expr& v) { return bounds_of_whole(v)->low >= 0 ? v : v + make_float(v->dtype, 0); }

// Quantised and dequantised at once, a number takes a detour through bytes that changes nothing: f32(i32(u8(v)) - 3) is
// v - 3.0, and i32(u8(v)) is i32(v), where v is whole and in the range of u8. Null: it is none.
Expr without_detour(DType t, const Expr& e) {
  if (t != DType::I32 && t != DType::F32) return {};
  if (const Expr v = whole_source(e)) return t == DType::I32 ? cast(t, v) : with_positive_zero(v);
  if (t == DType::I32) return {};
  const Apply* a = as<Apply>(e);
  if (!a || a->op != Op::Sub || e->dtype != DType::I32) return {};
  const Cast* to_i32 = as<Cast>(a->args[1]);
  const auto taken = as_const_int(to_i32 ? to_i32->value : a->args[1]);
  const Expr v = whole_source(a->args[0]);
  const bool is_byte = taken && *taken >= -128 && *taken <= 255;
  if (!is_byte || v.get() == nullptr) return {};
  return *taken == 0 ? with_positive_zero(v) : v - make_float(t, double(*taken));
}

}  // namespace

Expr::Expr(int64_t v) : Expr(make_int(DType::I64, v)) {}
Expr::Expr(const Dim& d) {
  check(d.is_const(), "a symbolic size needs its variable");
  *this = make_int(DType::I64, d.value);
}
Expr::Expr(const Var& v) : Expr(make(v->dtype, false, VarRef{v})) {}

Var make_var(std::string name, DType dtype) { return std::make_shared<const VarDef>(VarDef{std::move(name), dtype}); }
Buffer make_buffer(std::string name, DType dtype, Shape shape, Scope scope) {
  return std::make_shared<const BufferDef>(BufferDef{std::move(name), dtype, std::move(shape), {}, 0, scope});
}

Expr make_int(DType t, int64_t v) { return make(t, false, IntImm{v}); }
Expr make_float(DType t, double v) { return make(t, false, FloatImm{v}); }
Expr make_const(DType t, double v) {
  if (v != 0) refuse_string("a constant", t);
  if (t == DType::F32) return make_float(t, double(float(v)));
  if (t == DType::F64) return make_float(t, v);
  if (is_narrow_float(t)) return make_float(t, narrow_float_to_double(t, double_to_narrow_float(t, v)));
  if (t == DType::Bool) return make_int(t, v != 0 ? 1 : 0);
  return whole_number(t, v);
}

Expr lowest(DType t) {
  refuse_string("the smallest number", t);
  if (is_float(t)) return make_float(t, -std::numeric_limits<double>::infinity());
  if (!is_signed_int(t)) return make_int(t, 0);
  const int bits = info(t).bits;
  return make_int(t, bits == 64 ? INT64_MIN : -(int64_t(1) << (bits - 1)));
}
Expr highest(DType t) {
  refuse_string("the largest number", t);
  if (is_float(t)) return make_float(t, std::numeric_limits<double>::infinity());
  const int bits = info(t).bits;
  if (t == DType::Bool) return make_int(t, 1);
  if (is_signed_int(t)) return make_int(t, bits == 64 ? INT64_MAX : (int64_t(1) << (bits - 1)) - 1);
  return make_int(t, bits == 64 ? -1 : (int64_t(1) << bits) - 1);
}
Expr zero(DType t) { return is_float(t) ? make_float(t, 0) : make_int(t, 0); }

Expr apply(Op op, Exprs args) {
  const OpInfo& row = info(op);
  check(int(args.size()) == row.arity, "operand count");
  for (const Expr& a : args) check(bool(a), "null operand");
  if (is_text_op(op))
    check_text(op, args);
  else if (!is_comparison(op))
    refuse_string(row.name, args[0]->dtype);
  check_kind_of_number(op, args[0]->dtype);
  bool vector = args[0]->vector;
  if (row.arity == 2) {
    Expr &a = args[0], &b = args[1];
    const bool mixed = op == Op::Shl || op == Op::Shr || op == Op::Pow || takes_position(op);
    if (!mixed && a->dtype != b->dtype) check_same("operands of " + std::string(row.name) + " are", a->dtype, b->dtype);
    if (is_index_type(a) && is_index_type(b)) {
      const auto x = as_const_int(a), y = as_const_int(b);
      if (x && y)
        if (const auto r = fold_index(op, *x, *y)) return make_int(row.compares ? DType::Bool : DType::I64, *r);
    }
    if (Expr e = fold_identity(op, a, b)) return e;
    if (a->vector != b->vector) (a->vector ? b : a) = broadcast(a->vector ? b : a);
    vector = args[0]->vector;
  }
  if (op == Op::Not)
    if (const auto c = as_const_int(args[0])) return make_int(DType::Bool, *c == 0);
  if (const auto* c = as<FloatImm>(args[0]); c && (op == Op::IsNan || op == Op::IsInf))
    return make_int(DType::Bool, op == Op::IsNan ? std::isnan(c->value) : std::isinf(c->value));
  if (op == Op::Neg && as_const_int(args[0]) && args[0]->dtype == DType::I64 && *as_const_int(args[0]) != INT64_MIN)
    return make_int(DType::I64, -*as_const_int(args[0]));
  if (op == Op::ReduceAdd || op == Op::ReduceMax || op == Op::ReduceMin) vector = false;
  const DType t = result_type(op, args);
  return make(t, vector, Apply{op, std::move(args)});
}

Expr select(Expr condition, Expr yes, Expr no) {
  check(condition->dtype == DType::Bool, "select: a condition that is no bool");
  check_same("sides of select are", yes->dtype, no->dtype);
  if (const auto c = as_const_int(condition)) return *c != 0 ? yes : no;
  if (yes.same_as(no)) return yes;
  const bool vector = condition->vector || yes->vector || no->vector;
  if (vector && !yes->vector) yes = broadcast(yes);
  if (vector && !no->vector) no = broadcast(no);
  const DType t = yes->dtype;
  return make(t, vector, Select{std::move(condition), std::move(yes), std::move(no)});
}

Expr cast(DType t, Expr e, bool saturate) {
  if (e->dtype == t) return e;
  if (const Expr r = without_detour(t, e)) return r;
  refuse_string("a conversion", t);
  refuse_string("a conversion", e->dtype);
  if (const auto i = as_const_int(e); i && is_int(t) && info(t).bits == 64 && e->dtype != DType::U64)
    return make_int(t, *i);
  if (const auto i = as_const_int(e); i && t == DType::Bool) return make_int(t, *i != 0);
  const bool vector = e->vector;
  return make(t, vector, Cast{std::move(e), saturate});
}

// The whole number that holds the bits of a float.
static DType bits_type(DType t) {
  switch (info(t).bits) {
    case 4: return DType::U4;
    case 8: return DType::U8;
    case 16: return DType::U16;
    case 32: return DType::U32;
    default: return DType::U64;
  }
}

Expr bitcast(DType t, Expr e) {
  if (e->dtype == t) return e;
  refuse_string("a conversion of bits", t);
  refuse_string("a conversion of bits", e->dtype);
  const bool from_float = is_float(e->dtype), to_float = is_float(t);
  // Whole numbers of one width are each other modulo a power of two, and true is whatever is not 0.
  if (!from_float && !to_float) return cast(t, e);
  if (from_float && !to_float && t != bits_type(e->dtype)) return cast(t, bitcast(bits_type(e->dtype), e));
  if (to_float && !from_float) e = cast(bits_type(t), e);
  const bool vector = e->vector;
  return make(t, vector, Bitcast{std::move(e)});
}

Expr load(Buffer b, Exprs index) {
  check_rank(b, index);
  bool vector = false;
  for (const Expr& i : index) vector = vector || i->vector;
  const DType t = b->dtype;
  return make(t, vector, Load{std::move(b), std::move(index)});
}

Expr ramp(Expr base) { return make(DType::I64, true, Ramp{std::move(base)}); }
Expr broadcast(Expr e) {
  const DType t = e->dtype;
  return e->vector ? e : make(t, true, Broadcast{std::move(e)});
}
Expr lanes() { return make(DType::I64, false, Lanes{}); }
Expr partial(Expr value, Expr count) {
  const DType t = value->dtype;
  return make(t, true, Partial{std::move(value), std::move(count)});
}

Stmt store(Buffer b, Exprs index, Expr value, std::optional<Op> reduce, Expr count) {
  check_rank(b, index);
  check_same("value and buffer of a store are", value->dtype, b->dtype);
  if (reduce) refuse_string(info(*reduce).name, b->dtype);
  return make(Store{std::move(b), std::move(index), std::move(value), reduce, std::move(count)});
}
Stmt loop(Var v, Expr extent, Stmt body, ForKind kind, Expr begin) {
  return make(For{std::move(v), std::move(begin), std::move(extent), kind, std::move(body)});
}
Stmt while_loop(Expr condition, Stmt body) { return make(While{std::move(condition), std::move(body)}); }
Stmt if_then(Expr condition, Stmt then, Stmt otherwise) {
  if (const auto c = as_const_int(condition)) return *c != 0 ? then : otherwise;
  return make(If{std::move(condition), std::move(then), std::move(otherwise)});
}
Stmt let(Var v, Expr value, Stmt body) { return make(Let{std::move(v), std::move(value), std::move(body)}); }
Stmt alloc(Buffer b, Stmt body) { return make(Alloc{std::move(b), std::move(body)}); }
Stmt alias(Buffer view, Buffer base, Expr offset, Stmt body) {
  return make(Alias{std::move(view), std::move(base), std::move(offset), std::move(body)});
}
Stmt seq(Stmts list) {
  Stmts flat;
  for (Stmt& s : list) {
    if (!s) continue;
    if (const Seq* q = as<Seq>(s))
      flat.insert(flat.end(), q->list.begin(), q->list.end());
    else
      flat.push_back(std::move(s));
  }
  if (flat.empty()) return {};
  if (flat.size() == 1) return flat[0];
  return make(Seq{std::move(flat)});
}
Stmt barrier(Scope s) { return make(Barrier{s}); }
Stmt prefetch(Buffer b, Exprs index, int64_t level) { return make(Prefetch{std::move(b), std::move(index), level}); }
Stmt comment(std::string text, Stmt body) { return make(Comment{std::move(text), std::move(body)}); }

std::optional<int64_t> as_const_int(const Expr& e) {
  const IntImm* i = as<IntImm>(e);
  return i ? std::optional(i->value) : std::nullopt;
}
bool is_const(const Expr& e, int64_t v) { return as_const_int(e) == v; }
std::optional<double> as_const_number(const Expr& e) {
  if (const IntImm* i = as<IntImm>(e)) return double(i->value);
  if (const FloatImm* f = as<FloatImm>(e)) return f->value;
  return std::nullopt;
}

}  // namespace tc
