#include "templates/cuda/backend.h"

#include "passes/loop/lower_kernel.h"
#include "templates/cuda/floor.h"
#include "templates/cuda/schedule_cuda.h"
#include "templates/cuda/spread_rows.h"

namespace tc {

TargetTraits cuda_traits(const CudaModel& model) {
  return {.processor = model.name,
          .vector_lanes = 0,
          .align = 256,
          .device_memory = true,
          .strings = false,
          .padded_copies = false,
          .splits_axes = true,
          .picks_precision = true};
}

bool CudaBackend::region_pays(const TensorFn& fn, const std::vector<bool>& constant_input,
                              const ScheduleOptions& options) const {
  return cuda_region_pays(fn, constant_input, model_, options);
}

std::vector<std::string_view> CudaBackend::templates() const { return cuda_templates(); }

Scheduled CudaBackend::schedule(const TensorFn& fn, const std::vector<bool>& constant_input,
                                const ScheduleOptions& options) const {
  return schedule_cuda(fn, constant_input, model_, options);
}

Kernel CudaBackend::lower(const Scheduled& s, const std::string& title, LoopPassRunner& passes) const {
  return lower_cuda_kernel(spread_rows(s), title, passes);
}

double CudaBackend::floor_ns(const KernelWork& work, int64_t run_bytes) const {
  return tc::floor_ns(work, run_bytes, model_);
}

}  // namespace tc
