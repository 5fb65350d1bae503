// See lower_lanes.cc.
#pragma once
#include "ir/loop/ir.h"
#include "ir/loop/max_lanes.h"

namespace tc {

/// Leaves: no loop of kind Vector.
Stmt lower_lanes(const Stmt& s);

/// Whether a loop would be one over vectors if it were of kind Vector; whether its iterations are independent is not asked.
bool runs_on_vectors(const For& f);

/// `e` for lane = base .. base + VL - 1. Needs: a vector form of loads that step by 0 or 1.
Expr in_lanes(const Expr& e, const Var& lane, const Expr& base);

/// Whether the operation has a form on vectors of VL lanes for operands of that type.
bool op_has_lanes(Op op, DType operand);

/// Types whose values lie in lanes of 32 bits and are integers: i32, i8, u8.
bool has_integer_lanes(DType t);
/// Types that vectors are loaded and stored as; one of f64 fills two registers. Vectors of bool are loaded and stored,
/// too, as masks, and those of halves as the f32 that they become at once (vector_form.h).
inline bool has_lanes(DType t) { return t == DType::F32 || t == DType::F64 || has_integer_lanes(t); }
/// Whether the conversion of `value` to a type has a form on vectors. To bytes it has one where the value lies in their
/// range, which a clamp with constant bounds says.
bool cast_has_lanes(const Expr& value, DType to);

}  // namespace tc
