// name_values: names for the steps of long expressions.
#pragma once
#include "ir/loop/ir.h"

namespace tc {

/// Long expressions are cut into named values, one step a line, so that a reader can follow and a diff stays small.
Stmt name_values(const Stmt& s);

}  // namespace tc
