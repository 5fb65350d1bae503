// A tile of sums whose terms lie side by side: a vector of partial sums for each, whose lanes are joined at the end.
#pragma once
#include "templates/canonical.h"

namespace tc {

struct LaneSums {
  const Canonical& c;  // where sums start, what becomes of them, and where they go
  const std::vector<Axis>& pieces;
  const Axis& lane;  // the innermost axis of the sum, along the lanes
  Expr term;         // over these, and the axes of a tile
};
/// Rows and columns from the first ones on; an axis that does not exist has no variable, and one position.
struct LaneTile {
  std::vector<std::pair<Var, Expr>> at;  // of the other axes
  Var row, column;
  Expr first_row, first_column;
  int64_t rows = 1, columns = 1;
};
/// Loops over the tile, all unrolled but those of the sum.
Stmt lane_sums(const LaneSums& s, const LaneTile& t);

}  // namespace tc
