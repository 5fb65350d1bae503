// Which integers are data? Loop variables, sizes and arithmetic on them count: they fit the type that a kernel counts
// in. Numbers that are read from tensors may be anything, wrap, and keep the width of their type.
#pragma once
#include <map>
#include <set>

#include "ir/loop/ir.h"

namespace tc {

inline constexpr int kAnyBits = 64;
/// What is known of integers that numbers in memory decide. Both are looked up only.
struct DataVars {
  std::map<const VarDef*, int> bits;  // of names: kAnyBits where nothing bounds them
  std::set<const BufferDef*> sizes;   // parameters that are a size of the caller's, which has been checked
};

/// Does the value come from memory, or from a name of `vars`, such that arithmetic on it may wrap, or from a name of another type than
/// integers that count? What Op::Index has checked is a count.
bool holds_data(const Expr& e, const DataVars& vars = {});
/// Notes a name for `value` if numbers in memory decide it. One that is clamped to constants has few bits, and so has one of 32 bits
/// that the kernel itself has stored: arithmetic on it does not wrap as long as these are not multiplied too often.
void note_name(DataVars& vars, const Var& name, const Expr& value);

/// All such names in `s`.
DataVars data_vars(const Stmt& s);

}  // namespace tc
