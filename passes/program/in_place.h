// Results that take over the memory of an operand.
#pragma once
#include "passes/schedule/schedule.h"

namespace tc {

/// May the only output of `s` lie where its operand s.inputs[k] lies, if nobody needs that afterwards? Yes, if every
/// element of the operand is read only by the statement that writes the same element of the output, and no element is
/// written twice; or if the loops begin with a copy of the operand and never look at it again. A proof from the loops, so some
/// that could are refused. `guards`: conditions that there is an element for a thread are understood.
bool may_be_in_place(const Scheduled& s, size_t k, bool guards = false);

/// The same loops with the output in place of s.inputs[k], which is a parameter no longer. Needs: may_be_in_place().
Scheduled in_place(Scheduled s, size_t k, bool guards = false);

}  // namespace tc
