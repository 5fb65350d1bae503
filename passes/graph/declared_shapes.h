// Where a shape that the model declares also holds for values that it says nothing about.
#pragma once
#include "ir/graph/graph.h"

namespace tc {

/// Elementwise functions of one operand keep its shape, those of several keep the shape that their operands share,
/// numbers aside. Values tied together so have one shape: where the model declares it for one of them, all get it. What
/// decides such a shape may then come at run time: y = Cos(Range(0, n, 1) * step) with y declared as f32[10] makes the
/// Range one of 10 elements.
///
/// Slice(x, start, start + length), whose result the model declares, is as long as declared: `length` then is a constant.
void spread_declared_shapes(Graph& g);

}  // namespace tc
