// Vector forms: what a pointwise expression looks like when one axis of it runs over the lanes of vectors.
#pragma once
#include <functional>

#include "passes/loop/lower_lanes.h"
#include "passes/loop/vector_form.h"
#include "templates/canonical.h"

namespace tc {

/// Whether `e` (f32, i32, bytes or a mask) can be computed for neighbouring values of `lane` at once: loads step by 0 or 1
/// along it, and every operation that depends on it has a vector function. Loads of rank 0 (accumulators) count as
/// vectors.
bool has_vector_form(const Expr& e, const Var& lane);
/// The same for what is stored to a tensor of type `to`: a half, too, if it is rounded from f32.
bool has_stored_form(const Expr& e, DType to, const Var& lane);

/// Where a vector form is evaluated: lane = base .. base + VL - 1, the other axes at scalars.
struct LanePoint {
  std::vector<std::pair<Var, Expr>> at;
  Var lane;
  Expr base;
  Expr count;  // only so many lanes exist; null: all
  Expr acc;    // stands for the load of the reduced value (rank 0)
};
/// A vector, or a scalar where `e` does not depend on the lane.
Expr vector_form(const Expr& e, const LanePoint& p);
/// `e` at scalar points; `acc` as above.
Expr scalar_form(const Expr& e, const std::vector<std::pair<Var, Expr>>& at, const Expr& acc = {});

/// Stores vector_form(value) to `out[index]`, of which index is affine with coefficient 1 in the lane.
Stmt store_lanes(const Buffer& out, const Expr& index, const Expr& value, const LanePoint& p);

/// An index with the axes replaced; larger strides first where it is affine.
Expr index_at(const Expr& index, const std::vector<std::pair<Var, Expr>>& at);

/// The lanes of n from `column` of a panel on, as many as there are, in a row of `rows` (one axis at most).
LanePoint panel_point(const Axis& n, const std::vector<Axis>& rows, const Expr& panel, int64_t columns, const Expr& row,
                      const Expr& column, Expr acc = {});

/// Asks for what lies 8 KiB behind `count` elements of `b` from `begin` on, a line of the cache at a time: where
/// weights come from memory, each once, the processor waits for them if it is not told early. Null for less than a line.
Stmt fetch_ahead(const Buffer& b, const Expr& begin, int64_t count);

/// ceil(n / VL): a count of vectors.
Expr vectors(int64_t n);

/// Runs `body(offset, count)` over 0 .. n - 1 in steps of VL; count is null for whole vectors. Up to two statements:
/// the loop, and one partial vector where VL may not divide n.
Stmt over_lanes(const std::string& var, int64_t n,
                const std::function<Stmt(const Expr& offset, const Expr& count)>& body);

}  // namespace tc
