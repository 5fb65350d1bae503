// What a package is made for: the rows of --target, --cpu and --arch.
#pragma once
#include <memory>

#include "passes/backend.h"
#include "templates/cpu/cpu_model.h"
#include "templates/cuda/cuda_model.h"

namespace tc {

struct Target {
  enum class Kind { C, Cuda } kind = Kind::C;
  CpuModel cpu;                       // the row of --cpu; of a list, that of the best
  CudaModel gpu;                      // the row of --arch
  std::vector<CpuModel> others = {};  // of a list: all but the best, in ascending order
  bool is_cuda() const { return kind == Kind::Cuda; }
};

/// What the passes have to know of the target without asking it for loops.
TargetTraits traits_of(const Target& target);
/// The target's way to make loops; never null.
std::unique_ptr<const Backend> make_backend(const Target& target);
/// Those of the other processors of a list.
std::vector<std::unique_ptr<const Backend>> other_backends(const Target& target);

}  // namespace tc
