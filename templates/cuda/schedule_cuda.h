// Schedules of fused functions for a GPU.
#pragma once
#include <string_view>
#include <vector>

#include "passes/schedule/schedule.h"
#include "templates/cuda/cuda_model.h"

namespace tc {

/// The loops of `fn` in the form that templates/cuda/template.h describes. `constant_input`: one flag per fn.inputs, known
/// at compile time. Every function has a schedule.
Scheduled schedule_cuda(const TensorFn& fn, const std::vector<bool>& constant_input, const CudaModel& gpu,
                        const ScheduleOptions& options = {});

/// The names of the templates, in the order in which they are asked.
std::vector<std::string_view> cuda_templates();

/// Whether a template computes the several contractions of `fn` in one kernel, and that is expected to beat a kernel for
/// each.
bool cuda_region_pays(const TensorFn& fn, const std::vector<bool>& constant_input, const CudaModel& gpu,
                      const ScheduleOptions& options = {});

}  // namespace tc
