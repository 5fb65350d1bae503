// C for a processor, as the passes see it.
#pragma once
#include "passes/backend.h"
#include "templates/cpu/cpu_model.h"

namespace tc {

TargetTraits cpu_traits(const CpuModel& model);

class CpuBackend final : public Backend {
 public:
  explicit CpuBackend(CpuModel model) : model_(model) {}
  TargetTraits traits() const override { return cpu_traits(model_); }
  bool region_pays(const TensorFn& fn, const std::vector<bool>& constant_input,
                   const ScheduleOptions& options) const override;
  bool reads_few_bits(const TensorFn& fn, const std::vector<bool>& constant_input,
                      const ScheduleOptions& options) const override;
  std::vector<std::string_view> templates() const override;
  bool takes_strides(const TensorFn& fn, bool result) const override;
  Scheduled schedule(const TensorFn& fn, const std::vector<bool>& constant_input,
                     const ScheduleOptions& options) const override;
  Kernel lower(const Scheduled& s, const std::string& title, LoopPassRunner& passes) const override;
  double floor_ns(const KernelWork& work, int64_t run_bytes) const override;

 private:
  CpuModel model_;
};

}  // namespace tc
