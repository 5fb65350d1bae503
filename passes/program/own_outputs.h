// Functions whose outputs are all computed by themselves.
#pragma once
#include "ir/tensor_fn.h"

namespace tc {

/// A kernel writes every output itself: one that is an input, or an earlier output again, becomes a copy of it.
TensorFn own_outputs(TensorFn fn);

}  // namespace tc
