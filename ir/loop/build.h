// Builders of Loop IR. They fold constants and trivial identities (x + 0, x * 1, 0 * i for integers), check types, and
// insert nothing else. Float identities that change NaN, -0.0 or infinities are not folded here.
#pragma once
#include "ir/loop/ir.h"

namespace tc {

Var make_var(std::string name, DType dtype = DType::I64);
Buffer make_buffer(std::string name, DType dtype, Shape shape, Scope scope = Scope::Global);

Expr make_int(DType t, int64_t v);
Expr make_float(DType t, double v);
/// A constant of any numeric type, rounded to it.
Expr make_const(DType t, double v);
Expr lowest(DType t);   // -inf for floats
Expr highest(DType t);  // +inf for floats
Expr zero(DType t);     // of strings: the empty one

/// One application. Operands must have one dtype (shifts and Index excepted); a scalar beside a vector is broadcast.
Expr apply(Op op, Exprs args);
Expr select(Expr condition, Expr yes, Expr no);
Expr cast(DType t, Expr e, bool saturate = true);
Expr bitcast(DType t, Expr e);
Expr load(Buffer b, Exprs index);
Expr ramp(Expr base);
Expr broadcast(Expr e);
Expr lanes();
Expr partial(Expr value, Expr count);

Stmt store(Buffer b, Exprs index, Expr value, std::optional<Op> reduce = std::nullopt, Expr count = {});
Stmt loop(Var v, Expr extent, Stmt body, ForKind kind = ForKind::Serial, Expr begin = 0);
Stmt while_loop(Expr condition, Stmt body);
Stmt if_then(Expr condition, Stmt then, Stmt otherwise = {});
Stmt let(Var v, Expr value, Stmt body);
Stmt alloc(Buffer b, Stmt body);
Stmt alias(Buffer view, Buffer base, Expr offset, Stmt body);
Stmt seq(Stmts list);  // flattens, drops nulls; one statement stays itself
Stmt barrier(Scope s);
Stmt prefetch(Buffer b, Exprs index, int64_t level = 1);
Stmt comment(std::string text, Stmt body);

inline Expr operator+(Expr a, Expr b) { return apply(Op::Add, {std::move(a), std::move(b)}); }
inline Expr operator-(Expr a, Expr b) { return apply(Op::Sub, {std::move(a), std::move(b)}); }
inline Expr operator*(Expr a, Expr b) { return apply(Op::Mul, {std::move(a), std::move(b)}); }
inline Expr operator/(Expr a, Expr b) { return apply(Op::Div, {std::move(a), std::move(b)}); }
inline Expr operator-(Expr a) { return apply(Op::Neg, {std::move(a)}); }
inline Expr operator<(Expr a, Expr b) { return apply(Op::Lt, {std::move(a), std::move(b)}); }
inline Expr operator<=(Expr a, Expr b) { return apply(Op::Le, {std::move(a), std::move(b)}); }
inline Expr operator>(Expr a, Expr b) { return apply(Op::Gt, {std::move(a), std::move(b)}); }
inline Expr operator>=(Expr a, Expr b) { return apply(Op::Ge, {std::move(a), std::move(b)}); }
inline Expr operator&&(Expr a, Expr b) { return apply(Op::And, {std::move(a), std::move(b)}); }
inline Expr operator||(Expr a, Expr b) { return apply(Op::Or, {std::move(a), std::move(b)}); }
/// Not an operator: `!e` asks whether the handle is null.
inline Expr logical_not(Expr a) { return apply(Op::Not, {std::move(a)}); }
inline Expr eq(Expr a, Expr b) { return apply(Op::Eq, {std::move(a), std::move(b)}); }
inline Expr ne(Expr a, Expr b) { return apply(Op::Ne, {std::move(a), std::move(b)}); }
inline Expr min(Expr a, Expr b) { return apply(Op::Min, {std::move(a), std::move(b)}); }
inline Expr max(Expr a, Expr b) { return apply(Op::Max, {std::move(a), std::move(b)}); }
inline Expr floor_div(Expr a, Expr b) { return apply(Op::FloorDiv, {std::move(a), std::move(b)}); }
inline Expr floor_mod(Expr a, Expr b) { return apply(Op::FloorMod, {std::move(a), std::move(b)}); }
inline Expr exp(Expr a) { return apply(Op::Exp, {std::move(a)}); }
inline Expr log(Expr a) { return apply(Op::Log, {std::move(a)}); }
inline Expr sqrt(Expr a) { return apply(Op::Sqrt, {std::move(a)}); }
inline Expr tanh(Expr a) { return apply(Op::Tanh, {std::move(a)}); }
inline Expr abs(Expr a) { return apply(Op::Abs, {std::move(a)}); }

/// The value of an integer constant (IntImm), else nullopt.
std::optional<int64_t> as_const_int(const Expr& e);
bool is_const(const Expr& e, int64_t v);
/// The value of an IntImm or a FloatImm.
std::optional<double> as_const_number(const Expr& e);

}  // namespace tc
