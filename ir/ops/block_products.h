// Products of bytes in blocks, which multiply_blocks puts in the place of products of floats.
#pragma once
#include "ir/ops/op.h"

namespace tc {

OpFamily block_products_ops();

}  // namespace tc
