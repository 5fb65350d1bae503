// Differences of two texts in the form that diff -u has and patch reads.
#pragma once
#include <string>
#include <string_view>

namespace tc {

/// "" if the texts are equal; else a header with the two labels and hunks with three lines of context. Bytes that are
/// no text are not shown: one line says that they differ.
std::string unified_diff(std::string_view before, std::string_view after, const std::string& label_before,
                         const std::string& label_after);

}  // namespace tc
