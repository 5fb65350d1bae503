// Reductions by a combiner of several values, as the position of an extreme is one: a state of its own for each lane of a vector.
#pragma once
#include "ir/loop/build.h"
#include "templates/cpu/lanes.h"
#include "templates/rows.h"

namespace tc {

/// One reduction of several values over one axis, whose positions fit 32 bits, and what follows from it: a value a row.
bool is_tuple_reduction(const Rows& r);

/// Binds the operands and the results of rows to those of the function.
void bind_rows(Scheduled& s, const Rows& r, const TensorFn& fn);

struct TupleLanes {
  std::vector<Buffer> state;  // the values that are joined, a vector each: f32 or i32
  Exprs start, next,
      value;  // of the state, scalars over `lane`; `next` loads the state and is what joins `value` to it
};

/// How two elements' positions are compared by `e`, a part of what a combiner computes: by `op`, that of the state in front of that of
/// what joins it. Null for what compares anything else.
std::optional<Op> compares_positions(const Combiner& c, const Expr& e);

/// Would any element win over what the reduction starts from, wherever it is? Then nobody sees where it starts.
bool starts_from_nothing(const RowStep& reduce);

/// The reduction over `along`, whose positions are counted in 32 bits, by `counter`: `along` itself, or, where lanes share
/// the axis (`lane` is `along` then), what counts the elements of a lane. `in_order`: the state is of an
/// element that comes before the one that joins it, which decides ties. Nothing where vectors lack an operation.
std::optional<TupleLanes> tuple_in_lanes(const RowStep& reduce, const Var& along, const Var& counter, const Var& lane,
                                         bool in_order);

/// Vector v of a row of them.
inline Exprs lanes_of(const Var& v) { return {ramp(Expr(v) * lanes())}; }

/// Joins the values at `point` to vector v of the accumulators.
Stmt join_lanes(const TupleLanes& t, const std::vector<Buffer>& acc, const Var& v, const LanePoint& point);

}  // namespace tc
