// See lane_conditions.cc.
#pragma once
#include <optional>

#include "ir/loop/ir.h"
#include "passes/loop/vector_room.h"

namespace tc {

/// The end of the lanes for which `condition` holds, if it holds for all before that one: `lane + c < n`.
std::optional<Expr> end_of(const Expr& condition, const Var& lane);
/// The first lane for which `condition` holds, if it holds for all behind that one: `n <= lane + c`.
std::optional<Expr> begin_of(const Expr& condition, const Var& lane);
/// `lane < n ? a : b`, whichever way it is written: a for the lanes before n, b behind.
struct Stairs {
  Expr end, before, behind;
};
std::optional<Stairs> stairs_of(const Expr& value, const Var& lane);

/// Each is null where the loop has no such condition.
Stmt end_at_condition(const For& f);
/// `written`: memory that the kernel writes, which is not overwritten before it is read.
Stmt cut_at_stairs(const For& f, const Buffers& written);

}  // namespace tc
