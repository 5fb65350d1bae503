// What stands between the contractions of a region: the same for all targets.
#pragma once
#include "ir/tensor_fn.h"

namespace tc {

/// Whether a region may have `fn` between its contractions: the softmax of an attention, the filter of an inverted
/// residual. Quick, because most chains of three sums are no region; Backend::region_pays looks at all of it.
bool may_stand_between(const TensorFn& fn);

/// Whether the stage sums over rows and columns of a filter, and over nothing else.
bool sums_a_window(const Stage& s);

}  // namespace tc
