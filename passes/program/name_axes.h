// Names of axes for loops and formulas.
#pragma once
#include "ir/tensor_fn.h"

namespace tc {

/// The same function with telling axis names: a stage that reads another one point by point takes over its names.
TensorFn name_axes(const TensorFn& fn);

}  // namespace tc
