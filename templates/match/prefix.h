// Scans in which every result is the one before it joined with a value: CumSum, CumProd.
#pragma once
#include <optional>

#include "templates/canonical.h"

namespace tc {

/// out[0] = first, out[i] = op(out[i - 1], next(i)), for every point of the other axes of a stage.
struct Prefix {
  Op op;
  Expr first, next;
};
std::optional<Prefix> match_prefix(const Stage& s);

/// A scan as CumSum defines it, with its axis in front, and a stage that moves the axis to its place: sequences whose results are
/// written where they belong.
struct PrefixRows {
  Canonical c;  // of what joins; axes without that of the steps
  Op op = Op::Add;
  Expr first, next, out_index;  // over the axes and `step`
  Var step;
  int64_t steps = 0;
  std::vector<Axis> outer, inner;  // around the axis of the steps in the result, and inside of it
  Buffer sum;                      // rank 0
  Expr stored;                     // what is stored of it
};
/// `merges`: neighbouring axes may become one. Declines what has no canonical form, several results, one step.
std::optional<PrefixRows> match_prefix_rows(const TensorFn& fn, bool merges);

}  // namespace tc
