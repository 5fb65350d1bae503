// Picks the schedule template of a fused function on a CPU.
#pragma once
#include <vector>

#include "passes/schedule/schedule.h"
#include "templates/cpu/cpu_model.h"

namespace tc {

/// The loops that compute `fn`. `constant_input[i]` says that fn.inputs[i] is known at compile time, so that it may be
/// repacked by the prologue. Every function has a schedule: the last template is the plain loops. The same arguments
/// give the same text on every machine.
Scheduled schedule_cpu(const TensorFn& fn, const std::vector<bool>& constant_input, const CpuModel& cpu,
                       const ScheduleOptions& options = {});

/// Whether schedule_few_bits takes it.
bool reads_few_bits(const TensorFn& fn, const std::vector<bool>& constant_input, const CpuModel& cpu,
                    const ScheduleOptions& options);

}  // namespace tc
