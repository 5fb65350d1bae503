// Functions of several stages that no template knows as a whole: stage after stage, each scheduled on its own, with the
// values between them in scratch memory.
#pragma once
#include <cstdint>
#include <functional>

#include "passes/schedule/schedule.h"

namespace tc {

/// Schedules a part of a function: its operands are operands or stages of the whole; one flag per operand says whether
/// it is known at compile time.
using SchedulePart = std::function<Scheduled(const TensorFn& part, const std::vector<bool>& constant_input)>;

/// The parts of `fn` one after the other. Stages that advance together (scans) stay one part, and so do a reduction and the
/// pointwise stages that finish its results, unless that is all of fn. Null if fn is a single
/// part already, has run-time sizes, or has a Nest stage among others and `nests` is false. Stages from `tail` on, if there
/// are so many, are one part, too.
std::optional<Scheduled> join_stages(const TensorFn& fn, const std::vector<bool>& constant_input,
                                     const SchedulePart& part, bool nests, size_t tail = SIZE_MAX);

}  // namespace tc
