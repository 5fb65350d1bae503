// Can an expression be computed for neighbouring values of a variable at once?
#pragma once
#include <optional>

#include "ir/loop/ir.h"

namespace tc {

/// 0: the index does not move with the lane; 1: by one element, in the last dimension; nullopt: in another way.
std::optional<int> lane_step(const Exprs& index, const Var& lane);
/// Loads move by 0 or 1 along the lane, and every operation that depends on it has a form on vectors (lower_lanes.h).
/// `accumulators`: loads of rank 0 are vectors, too.
bool has_vector_form(const Expr& e, const Var& lane, bool accumulators);
/// The same for what is stored to a tensor of type `to`, by a store that rounds f32 to halves and takes the low bits of
/// integers for bytes: such conversions may be the last operation.
bool has_stored_form(const Expr& e, DType to, const Var& lane, bool accumulators);
/// Calls a function that is more than a few instructions (exp, erf, sqrt, a rounding).
bool is_costly(const Expr& e);
/// So many neighbours are worth a vector, a part of whose lanes may be empty: a function of the C library takes longer for one of them
/// than a vector for all.
int64_t fewest_lanes(const Expr& value);

}  // namespace tc
