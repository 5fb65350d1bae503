// Several stages over a size without an upper bound.
#pragma once
#include "templates/cpu/template.h"

namespace tc {

/// The axis is outermost in all operands and results that have it. Declines where a result depends on more than one element
/// along it, and where no memory lies between the stages.
std::optional<Scheduled> schedule_open_rows(const TemplateArgs& a);

}  // namespace tc
