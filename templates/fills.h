// What a size of the run guards, inside of the sums that read it: no memory holds it.
//   filled[i][j] = i < count ? x[i][j] : 0   sum = sum(i, j) filled[i][j]   ->   sum = sum(i, j) (i < count ? x[i][j] : 0)
// The sum then ends where the size does (end_sums).
#pragma once

#include "passes/schedule/schedule.h"

namespace tc {

/// The same function without those stages that only give a number for what lies behind a size, and which a reduction along the memory's
/// order reads as they are, it alone; conditions on the innermost axis stay, since they end rows within a vector.
TensorFn with_fills_inside(const TensorFn& fn);

}  // namespace tc
