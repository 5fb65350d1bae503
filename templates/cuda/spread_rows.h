// Rows that are as many as a run brings, in threads of their own.
#pragma once
#include "passes/schedule/schedule.h"

namespace tc {

/// What is left of a function whose result takes over an operand, of which it began as a copy: a thread for some rows,
///   thread i in 0 .. +4:  row in 0 .. +n:  j in 0 .. +128:  y[..] = x[..]
///     ->  thread p in 0 .. +4 * 16 * 128:  turn in 0 .. +(n - lane + 15) / 16:  y[..] = x[..]   with i, lane and j of p
/// Loops of another form, and those that are not independent, stay as they are.
Scheduled spread_rows(Scheduled s);

}  // namespace tc
