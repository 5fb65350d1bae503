#include "templates/target.h"

#include "templates/cpu/backend.h"
#include "templates/cuda/backend.h"

namespace tc {

TargetTraits traits_of(const Target& target) {
  return target.is_cuda() ? cuda_traits(target.gpu) : cpu_traits(target.cpu);
}

std::unique_ptr<const Backend> make_backend(const Target& target) {
  if (target.is_cuda()) return std::make_unique<CudaBackend>(target.gpu);
  return std::make_unique<CpuBackend>(target.cpu);
}

std::vector<std::unique_ptr<const Backend>> other_backends(const Target& target) {
  std::vector<std::unique_ptr<const Backend>> list;
  for (const CpuModel& cpu : target.others) list.push_back(std::make_unique<CpuBackend>(cpu));
  return list;
}

}  // namespace tc
