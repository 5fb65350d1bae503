// Several contractions in one kernel. form_regions asks here before it joins them: a function of several contractions
// that no such template takes would run stage by stage, which is no gain.
#pragma once
#include "templates/cpu/template.h"

namespace tc {

/// Decline what is none, and sums in an order that strict_fp does not allow.
std::optional<Scheduled> schedule_attention(const TemplateArgs& a);
std::optional<Scheduled> schedule_inverted_residual(const TemplateArgs& a);

/// Whether the template knows the function, and one kernel is expected to beat a kernel for each of its contractions.
bool attention_pays(const TemplateArgs& a);
bool inverted_residual_pays(const TemplateArgs& a);

/// The same for any of the templates.
bool pays_as_region(const TensorFn& fn, const std::vector<bool>& constant_input, const CpuModel& cpu,
                    const ScheduleOptions& options);

}  // namespace tc
