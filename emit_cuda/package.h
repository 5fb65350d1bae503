// The CUDA package: the same files as the C target's, with .cu for .c, and the headers that run them on a CPU.
#pragma once
#include "emit_c/package.h"

namespace tc {

std::vector<OutputFile> cuda_package(const Program& p, const PackageOptions& o);

}  // namespace tc
