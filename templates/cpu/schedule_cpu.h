// Picks the schedule template of a fused function on a CPU.
#pragma once
#include <string_view>
#include <vector>

#include "passes/schedule/schedule.h"
#include "templates/cpu/cpu_model.h"

namespace tc {

/// The loops that compute `fn`. `constant_input[i]` says that fn.inputs[i] is known at compile time, so that it may be
/// repacked by the prologue. Every function has a schedule: the last template is the plain loops. The same arguments
/// give the same text on every machine.
Scheduled schedule_cpu(const TensorFn& fn, const std::vector<bool>& constant_input, const CpuModel& cpu,
                       const ScheduleOptions& options = {});

/// The names of the templates, in the order in which they are asked.
std::vector<std::string_view> cpu_templates();

/// Whether schedule_few_bits takes it, or schedule_contraction with weights that are halves, on a processor that converts vectors of
/// them.
bool reads_few_bits(const TensorFn& fn, const std::vector<bool>& constant_input, const CpuModel& cpu,
                    const ScheduleOptions& options);

}  // namespace tc
