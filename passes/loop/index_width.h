// Is `int` wide enough for what a kernel counts?
#pragma once
#include "ir/program.h"

namespace tc {

/// True if a loop, a named index or an index expression of the body, or an element of a parameter, may lie beyond half
/// of int's range: then loops count in int64_t. The half leaves room for sums of an index and an offset.
bool needs_wide_index(const Kernel& k);

}  // namespace tc
