// Axes that indices take apart by division, as several axes.
#pragma once
#include "ir/tensor_fn.h"

namespace tc {

/// `fn` with an axis h as two, g and w with h = g * size + w, wherever a stage reads by h / size or h % size and size divides the axis:
/// indices become affine. A stage between follows those that read it or that it reads. Memory of inputs and outputs stays what it is;
/// outputs of other shapes are new buffers. Functions with nests, scans, run-time sizes or stages of several outputs stay as they are.
TensorFn split_axes(TensorFn fn);

}  // namespace tc
