// Families that fill more than one file: what the family's own file collects.
#pragma once
#include "ir/ops/op.h"

namespace tc {

OpFamily activation_ops();  // elementwise
OpFamily cast_ops();        // elementwise
OpFamily softmax_ops();     // reduction
OpFamily search_ops();      // reduction: ArgMax, ArgMin, TopK
OpFamily loss_ops();        // reduction
OpFamily gather_ops();      // movement
OpFamily signal_ops();      // generator

}  // namespace tc
