#include "templates/cpu/template.h"

namespace tc {

std::optional<Scheduled> schedule_window(const TemplateArgs&) { return {}; }

}  // namespace tc
