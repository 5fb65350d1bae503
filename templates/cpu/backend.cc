#include "templates/cpu/backend.h"

#include "passes/loop/lower_kernel.h"
#include "templates/canonical.h"
#include "templates/cpu/floor.h"
#include "templates/cpu/regions.h"
#include "templates/cpu/schedule_cpu.h"
#include "templates/rows.h"

namespace tc {

TargetTraits cpu_traits(const CpuModel& model) {
  return {.processor = model.name, .march = model.march, .vector_lanes = model.vector_lanes};
}

bool CpuBackend::region_pays(const TensorFn& fn, const std::vector<bool>& constant_input,
                             const ScheduleOptions& options) const {
  return pays_as_region(fn, constant_input, model_, options);
}

bool CpuBackend::reads_few_bits(const TensorFn& fn, const std::vector<bool>& constant_input,
                                const ScheduleOptions& options) const {
  return tc::reads_few_bits(fn, constant_input, model_, options);
}

std::vector<std::string_view> CpuBackend::templates() const { return cpu_templates(); }

// Templates of a canonical form know memory by the coefficients of its indices alone, but for borders; so do rows.
bool CpuBackend::takes_strides(const TensorFn& fn, bool result) const {
  if (const auto c = canonicalize(fn)) return !(result && c->border);
  return match_rows(fn, KeptRows::Nowhere, RowForm::Strict).has_value();
}

Scheduled CpuBackend::schedule(const TensorFn& fn, const std::vector<bool>& constant_input,
                               const ScheduleOptions& options) const {
  return schedule_cpu(fn, constant_input, model_, options);
}

Kernel CpuBackend::lower(const Scheduled& s, const std::string& title, LoopPassRunner& passes) const {
  return lower_kernel(s, title, passes);
}

double CpuBackend::floor_ns(const KernelWork& work, int64_t run_bytes) const {
  return tc::floor_ns(work, run_bytes, model_);
}

}  // namespace tc
