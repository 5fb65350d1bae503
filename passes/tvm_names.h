// What the docs say of graph passes beside their table.
#pragma once
#include <string_view>

namespace tc {

/// What TVM calls a graph pass that does the same, or most of it; empty: nothing.
std::string_view tvm_name(std::string_view graph_pass);

}  // namespace tc
