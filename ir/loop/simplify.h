// Simplifies integer index expressions with known ranges of their variables: affine normal form, div/mod of affine
// forms, min/max/comparisons/selects that the ranges decide. Float expressions are only folded where bits stay the
// same.
#pragma once
#include <map>

#include "ir/loop/ir.h"

namespace tc {

struct Range {
  int64_t min, max;  // inclusive
};
using Ranges = std::map<const VarDef*, Range>;

/// The interval of an integer expression, nullopt if nothing useful is known.
std::optional<Range> range_of(const Expr& e, const Ranges& ranges);
Expr simplify(const Expr& e, const Ranges& ranges = {});
/// Walks loops and lets to collect ranges; drops empty loops, unrolls loops of one trip, resolves decided ifs.
Stmt simplify(const Stmt& s, const Ranges& ranges = {});

}  // namespace tc
