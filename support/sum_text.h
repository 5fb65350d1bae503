// Sums as people write them: past + 2 * seq - 1.
#pragma once
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace tc {

/// Terms with their factors, which are not 0 and not written where they are 1 or -1, and what is added, unless that is 0.
std::string sum_text(const std::vector<std::pair<std::string, int64_t>>& terms, int64_t addend);

}  // namespace tc
