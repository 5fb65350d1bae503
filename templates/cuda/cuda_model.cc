#include "templates/cuda/cuda_model.h"

namespace tc {

const std::vector<CudaModel>& cuda_models() {
  static const std::vector<CudaModel> rows = {
      {"sm_75", 40, 64 << 10, 64 << 10, 65536, 1024, 320, 75},
      {"sm_80", 108, 163 << 10, 164 << 10, 65536, 2048, 1555, 80},
      {"sm_86", 82, 99 << 10, 100 << 10, 65536, 1536, 936, 86},
      {"sm_89", 128, 99 << 10, 100 << 10, 65536, 1536, 1008, 89},
      {"sm_90", 132, 227 << 10, 228 << 10, 65536, 2048, 3350, 90, false, true},
      {"sm_90a", 132, 227 << 10, 228 << 10, 65536, 2048, 3350, 90, true, true},
      {"sm_100", 148, 227 << 10, 228 << 10, 65536, 2048, 8000, 100, false, true},
      {"sm_120", 170, 99 << 10, 100 << 10, 65536, 1536, 1792, 120, false, true},
  };
  return rows;
}

const CudaModel* find_arch(std::string_view name) {
  for (const CudaModel& m : cuda_models())
    if (m.name == name) return &m;
  return nullptr;
}

}  // namespace tc
