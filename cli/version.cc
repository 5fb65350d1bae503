#include "cli/version.h"

namespace tc {

std::string_view version() { return TC_VERSION; }

}  // namespace tc
