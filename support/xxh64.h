// XXH64, seed 0, of a block of memory: the content hash of weights blobs, the same as tc_xxh64 in the support text.
#pragma once
#include <cstddef>
#include <cstdint>

namespace tc {
uint64_t xxh64(const void* data, size_t bytes);
}
