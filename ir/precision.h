// In which arithmetic a GPU may multiply what the model computes in single precision (--precision).
#pragma once
#include <cstdint>

namespace tc {

/// Sums stay single precision; factors are rounded: tf32 and f16 to 11 significant bits, bf16 to 8. F16 and Bf16 are also what
/// tensors between kernels are stored in (to_mixed_precision). Int8: what a model says in quantised form is multiplied in it
/// (realize_quantization).
enum class Precision : uint8_t { F32, Tf32, F16, Bf16, Int8 };

}  // namespace tc
