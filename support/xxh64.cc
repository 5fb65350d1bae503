#include "support/xxh64.h"

#include "templates/text/tc_rt.h"

namespace tc {

// One definition serves the tool and the emitted text.
uint64_t xxh64(const void* data, size_t bytes) { return tc_xxh64(data, bytes); }

}  // namespace tc
