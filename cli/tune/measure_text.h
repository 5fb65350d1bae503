// measure.c and measure_cuda.cu, embedded.
#pragma once
#include <string_view>

namespace tc {

std::string_view measure_text();
std::string_view measure_cuda_text();

}  // namespace tc
