// Functions that may end a run with the status E_RANGE.
#pragma once
#include "ir/tensor_fn.h"

namespace tc {

/// Does the function test indices? A nest (scatter, sort) may, and is not looked into.
bool tests_indices(const TensorFn& fn);

}  // namespace tc
