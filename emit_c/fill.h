// Whole-file templates (templates/text/*.in) and what goes into their holes.
#pragma once
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tc {

using Hole = std::pair<std::string, std::string>;

/// Puts values into the {{holes}} of a whole-file template. Throws InternalError if a hole is left.
std::string fill(std::string_view text, const std::vector<Hole>& holes);

}  // namespace tc
