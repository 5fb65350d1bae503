// Names that a model may not have: what the emitted text includes or defines itself has them already.
#pragma once
#include <string_view>

namespace tc {

/// Is `name` a function, type or macro of the C library's headers that packages include, or of the package's own text?
bool is_library_name(std::string_view name);

}  // namespace tc
