// Numbers that every CUDA machine has.
#pragma once
#include <cstdint>

namespace tc {

inline constexpr int64_t kWarp = 32;  // threads
inline constexpr int64_t kMaxBlockThreads = 1024, kMaxThreadsZ = 64;
inline constexpr int64_t kMaxGridX = (int64_t(1) << 31) - 1, kMaxGridYz = 65535;
/// Shared memory of a block that no launch has to ask for.
inline constexpr int64_t kStaticSharedBytes = 48 << 10;

}  // namespace tc
