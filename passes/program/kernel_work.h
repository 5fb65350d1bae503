// What a call of a kernel has to do at least.
#pragma once
#include "ir/program.h"
#include "passes/schedule/schedule.h"

namespace tc {

/// The work of `fn` by the loops of `s`, all but its floor. `constant`: one flag per fn.inputs. `replaced`: the input whose
/// memory the result takes over, or -1.
///
/// An operand counts with the elements that are read, which are fewer than it has where some are picked (Gather, Slice):
/// as many as the formulas name, at most all. Of stages that are loops (sorting, scattering) all elements count.
KernelWork work_of(const TensorFn& fn, const Scheduled& s, const std::vector<bool>& constant, int replaced);

/// Of one run on one thread: the floors of its calls. Of an If, the branch that takes less; a loop counts as often as is
/// known, which may be never. 0 if any floor is not known.
double floor_ns(const Program& p);

}  // namespace tc
