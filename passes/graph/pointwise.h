// Which nodes make each element of their result of the elements at the same index.
#pragma once
#include "ir/graph/graph.h"

namespace tc {

/// Are elements of the result made from elements at the same index (or a broadcast one), whatever that index is? Then the axes of
/// operands and result may be exchanged, joined or cut together. Not so where attributes say which axis is meant: they would
/// still say the old ones.
bool is_pointwise(Node& n);

}  // namespace tc
