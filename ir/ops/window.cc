#include "ir/ops/families.h"

namespace tc {

OpFamily window_ops() { return {}; }

}  // namespace tc
