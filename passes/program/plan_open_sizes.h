// Memory of programs with sizes that have no upper bound (ir/open_size.h).
#pragma once
#include "ir/open_size.h"
#include "passes/program/plan_memory.h"

namespace tc {

/// Bytes that tiles may reach beyond the last row.
inline constexpr int64_t kOverhangBytes = 65'536;

/// Program::naive_bytes where they are more than 64 bits count: of memory that nobody needs.
inline constexpr int64_t kMostForEach = INT64_MAX / kOpenSize - 1, kUncounted = kMostForEach * kOpenSize;

/// Has an input a size without an upper bound?
bool has_open_sizes(const Program& p);

/// What says that a size of the caller's, from `least` on, needs an upper bound at `where`, and why.
Error needs_upper_bound(const ModelText& size, int64_t least, Loc where, const std::string& why);

/// plan_memory for those: offsets and sizes become open numbers, which are no more than what kernels touch. Throws Error
/// (TC3106) where a kernel touches memory that does not follow from the size.
void plan_open_sizes(Program& p, const std::vector<ScratchUse>& uses);

}  // namespace tc
