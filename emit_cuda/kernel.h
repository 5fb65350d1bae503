// One kernel as CUDA C++: its functions of the device, and the function of the host that launches them.
#pragma once
#include <string>

#include "emit_c/kernel_files.h"

namespace tc {

/// `prefix`: the model's identifier. Throws InternalError if the kernel is not in the form that lower_cuda_kernel leaves.
KernelText print_cuda_kernel(const Kernel& k, const std::string& prefix, const std::string& arch);

/// A whole .cu file: license line, includes, functions of the device; what only the host compiles is guarded, so that
/// NVRTC takes the text as it is. `jit`: the functions of the device are guarded, too, for builds that leave them to NVRTC.
std::string cuda_kernel_source(const KernelFile& f, const std::string& prefix, bool jit);

}  // namespace tc
