// In which arithmetic a GPU may multiply what the model computes in single precision (--precision).
#pragma once
#include <cstdint>

namespace tc {

/// Sums stay single precision; factors are rounded: tf32 and f16 to 11 significant bits, bf16 to 8.
enum class Precision : uint8_t { F32, Tf32, F16, Bf16 };

}  // namespace tc
