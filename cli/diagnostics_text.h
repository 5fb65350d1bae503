// docs/diagnostics.md inside of the program: one table serves the page and `tc-emit explain`.
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace tc {

/// The page; written into the build folder by CMake.
std::string_view diagnostics_page();

/// The section of a code ("TC0301") as plain text, its heading first; empty if there is none.
std::string explanation_of(std::string_view code);

/// The codes that the page has, in its order.
std::vector<std::string> explained_codes();

}  // namespace tc
