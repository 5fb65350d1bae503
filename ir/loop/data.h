// Which integers are data? Loop variables, sizes and arithmetic on them count: they fit the type that a kernel counts
// in. Numbers that are read from tensors may be anything, wrap, and keep the width of their type.
#pragma once
#include <set>

#include "ir/loop/ir.h"

namespace tc {

/// Names of integers that hold data. Looked up only.
using DataVars = std::set<const VarDef*>;

/// Does the value come from memory, or from a name of `vars` or of another type than integers that count? What
/// Op::Index has checked is a count.
bool holds_data(const Expr& e, const DataVars& vars = {});
/// Does a name for `value` hold data? One that is clamped to constants counts: arithmetic on it does not wrap.
bool names_data(const Expr& value, const DataVars& vars);

/// All such names in `s`.
DataVars data_vars(const Stmt& s);

}  // namespace tc
