// The linear maps of Winograd's minimal filtering, and how a row of one is written.
#pragma once
#include <vector>

#include "ir/loop/ir.h"

namespace tc {

/// Of m x m results from T x T inputs by filters of 3 x 3, T = m + 2: y = A^T [(G w G^T) * (B^T d B)] A. The constants are those of A. Lavin
/// and S. Gray, Fast Algorithms for Convolutional Neural Networks (2016).
struct WinogradTransform {
  using Row = std::vector<double>;
  int64_t m = 4;
  std::vector<Row> bt, g, at;  // T x T, T x 3, m x T
  int64_t size() const { return m + 2; }
};

/// m: 2 or 4.
const WinogradTransform& winograd_transform(int64_t m);

/// sum(row[i] * x[i]), written with as few factors as possible.
Expr combination(const WinogradTransform::Row& row, const Exprs& x);

}  // namespace tc
