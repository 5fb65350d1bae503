// Reductions over windows: the terms that can be more than the identity.
#pragma once
#include "ir/tensor_fn.h"

namespace tc {

/// What a reduction by a plain combiner starts from, if that is the identity; null for others.
Expr identity_at_start(const Stage& s);

/// Of select(condition, x, identity) joined over axes of a reduction: leaves the part of each axis in which the condition holds for
/// some result. A pool whose window is far larger than its image (2560 x 2560 on 2 x 2, as means of the whole image are
/// written) reads four elements then, and a window's taps that lie in the padding for every result are gone. Other stages stay.
void cut_reduction(Stage& s);

}  // namespace tc
