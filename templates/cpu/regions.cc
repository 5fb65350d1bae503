#include "templates/cpu/regions.h"

#include "templates/cpu/streaming_attention.h"

namespace tc {

bool pays_as_region(const TensorFn& fn, const std::vector<bool>& constant_input, const CpuModel& cpu,
                    const ScheduleOptions& options) {
  const TemplateArgs args{fn, nullptr, constant_input, cpu, options};
  return match_streaming_attention(args) || attention_pays(args) || inverted_residual_pays(args);
}

}  // namespace tc
