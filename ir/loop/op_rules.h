// Facts of scalar operations that several parts of the compiler rely on.
#pragma once
#include "ir/loop/ir.h"

namespace tc {

/// The comparison that holds exactly when `op` does not. Of integers: with NaN, neither may hold.
Op opposite(Op op);
/// The comparison with its operands exchanged: a < b is b > a.
Op mirrored(Op op);
/// May the exact result on integers of a type lie outside of the type? Who computes in a wider one then wraps it.
bool may_leave_type(Op op);
/// Is this operation, as far as truth values go, one on type `t`? They have an order, hence comparisons, a minimum and a
/// maximum, but no sum or product; and only they have a logical not, and, or.
bool suits_truth_values(Op op, DType t);
/// Throws OperandMismatch unless suits_truth_values().
void check_truth_values(Op op, DType t);
/// What joins with a value to that value (0.0 for float sums, though it turns -0.0 into 0.0); null: nothing is known.
Expr identity_of(Op op, DType t);

}  // namespace tc
