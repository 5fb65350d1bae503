// CUDA for an architecture, as the passes see it.
#pragma once
#include "passes/backend.h"
#include "templates/cuda/cuda_model.h"

namespace tc {

TargetTraits cuda_traits(const CudaModel& model);

class CudaBackend final : public Backend {
 public:
  explicit CudaBackend(CudaModel model) : model_(model) {}
  TargetTraits traits() const override { return cuda_traits(model_); }
  bool region_pays(const TensorFn& fn, const std::vector<bool>& constant_input,
                   const ScheduleOptions& options) const override;
  std::vector<std::string_view> templates() const override;
  Scheduled schedule(const TensorFn& fn, const std::vector<bool>& constant_input,
                     const ScheduleOptions& options) const override;
  Kernel lower(const Scheduled& s, const std::string& title, LoopPassRunner& passes) const override;
  double floor_ns(const KernelWork& work, int64_t run_bytes) const override;

 private:
  CudaModel model_;
};

}  // namespace tc
