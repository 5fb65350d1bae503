// measure.c, embedded.
#pragma once
#include <string_view>

namespace tc {

std::string_view measure_text();

}  // namespace tc
