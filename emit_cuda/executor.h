// NAME.cu: the graph as calls of kernels, the instance's memory on the device, capture and replay. NAME_cuda.h: what the
// CUDA build offers beside NAME.h.
#pragma once
#include <string>

#include "emit_c/names.h"

namespace tc {

/// Where the executor finds its kernels and the plan of its memory: in files of their own, or in its own text.
struct ExecutorParts {
  std::string includes;  // lines with the other includes of the package
  std::string text;      // behind all includes
};

/// `graph_sets`: of how many choices of sizes an instance keeps its graphs, where the caller chooses sizes.
std::string cuda_executor_source(const Program& p, const ProgramNames& n, uint64_t layout_id, bool jit,
                                 const ExecutorParts& parts, int64_t graph_sets);
std::string cuda_header(const Program& p, const ProgramNames& n);

/// --jit: NAME_jit.cc lists the kernels' text for NVRTC, NAME_kernels.S holds it.
std::string jit_source(const Program& p, const ProgramNames& n, const std::vector<std::string>& kernel_files,
                       const std::vector<std::string>& headers);
std::string jit_assembly(const ProgramNames& n, const std::vector<std::string>& files);

}  // namespace tc
