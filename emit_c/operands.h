// What the executors of all targets say alike: operands of calls, tests of arguments.
#pragma once
#include <string>

#include "emit_c/names.h"

namespace tc {

/// "in->image", "AT(relu)", "WEIGHT_AS(int64_t, axes)". `member`: "->" or ".", how `in` and `out` are reached.
std::string operand_text(const Program& p, const ProgramNames& n, const Operand& o, const std::string& member);

/// " || !in->image || !out->probability": every tensor that has elements.
std::string null_tests(const Program& p, const ProgramNames& n);

/// Does any kernel raise the status word?
bool can_fail(const Program& p);

}  // namespace tc
