// Families that fill more than one file: what the family's own file collects.
#pragma once
#include "ir/ops/op.h"

namespace tc {

OpFamily activation_ops();   // elementwise
OpFamily cast_ops();         // elementwise
OpFamily softmax_ops();      // reduction
OpFamily search_ops();       // reduction: ArgMax, ArgMin, TopK
OpFamily loss_ops();         // reduction
OpFamily determinant_ops();  // reduction
OpFamily pad_ops();          // movement
OpFamily gather_ops();       // movement
OpFamily scatter_ops();      // movement
OpFamily signal_ops();       // generator
OpFamily random_ops();       // generator

/// The index (I64) of the largest or smallest element along `axis`: the first one, or the last one with `last`.
Tensor arg_extremum(OpBuilder& b, const Tensor& x, int axis, bool keepdims, bool largest, bool last);

}  // namespace tc
