// The numbers of the places along an axis.
#pragma once
#include "passes/graph/rewrite.h"

namespace tc {

/// 0, step, 2 * step ...: `count` numbers, before `n`; a list, or operators where no memory holds it.
Value* numbers_in_steps(Graph& g, Node* n, int64_t count, int64_t step, const ModelText& name);

}  // namespace tc
