// Tables of which an If chooses one.
#pragma once
#include "ir/graph/graph.h"

namespace tc {

/// Gives the branches of `n`, an If, tables of as many rows, where they return constants that differ in their rows and whose users look
/// rows up in them: angles for short and for long texts. The rows that are new are NaN: nobody asks for them, since the other
/// table has no such rows.
void align_tables(const Node& n);

}  // namespace tc
