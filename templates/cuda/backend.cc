#include "templates/cuda/backend.h"

#include "passes/loop/lower_kernel.h"
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

Scheduled CudaBackend::schedule(const TensorFn& fn, const std::vector<bool>& constant_input,
                                const ScheduleOptions& options) const {
  return schedule_cuda(fn, constant_input, model_, options);
}

Kernel CudaBackend::lower(const Scheduled& s, const std::string& title, LoopPassRunner& passes) const {
  return lower_cuda_kernel(spread_rows(s), title, passes);
}

// The table of architectures has no rates of tensor cores and no bandwidth of the L2 cache, without which there is no floor.
double CudaBackend::floor_ns(const KernelWork&, int64_t) const { return 0; }

}  // namespace tc
