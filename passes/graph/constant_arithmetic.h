// The arithmetic that rewrites do with constants, directly: a model of thousands of layers has thousands of small vectors to
// multiply, and a function compiled for each takes far longer than the numbers.
#pragma once
#include <string_view>
#include <vector>

#include "ir/graph/graph.h"

namespace tc {

/// The result of this operator of ai.onnx (the newest definition) on constants, the same to the bit as its formula gives it:
/// Add, Sub, Mul, Div, Reciprocal (f32, f64), Cast between these, Reshape, Expand of one element, ReduceSum (f64).
/// Null: not one of these, or of another type, or the operands do not fit.
Constant constant_arithmetic(std::string_view op, const std::vector<Constant>& operands, const Attrs& attrs);

/// The same bytes, shared, in another shape of as many elements.
Constant in_shape(const Constant& c, Dims dims);

}  // namespace tc
