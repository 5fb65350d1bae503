// What must be computed although nobody needs its value.
#pragma once
#include "ir/loop/ir.h"

namespace tc {

/// Does computing the expression check an index, which raises a status where it is out of range? Such an expression must not be
/// dropped, not even where only one index is right: of an axis of one element.
bool raises_status(const Expr& e);
/// Is it an index that depends on memory, or that is tested? Where a condition stands in front of it, it means nothing elsewhere.
bool depends_on_data(const Expr& index);

}  // namespace tc
