// How long a vector of VL lanes can be.
#pragma once
#include <cstdint>

namespace tc {

/// Lanes never exceed this number; what is a multiple of it needs no partial vectors.
inline constexpr int64_t kMaxLanes = 16;

}  // namespace tc
