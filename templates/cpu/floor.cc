#include "templates/cpu/floor.h"

#include <algorithm>

namespace tc {
namespace {

/// Products a nanosecond. Bytes are multiplied four at a time, or in tiles, where there is an instruction for it, halves
/// as f32.
double macs_per_ns(const KernelWork& work, const CpuModel& cpu) {
  const double of_floats = cpu.vector_lanes * cpu.fma_per_cycle * cpu.ghz;
  if (work.products == 8) return of_floats / 2;
  if (work.products == 1 && cpu.byte_tiles) return 16 * 64 * cpu.ghz;
  return work.products == 1 && cpu.byte_dot ? of_floats * 4 : of_floats;
}

/// Bytes a nanosecond out of the smallest level that holds `bytes`.
double bytes_per_ns(int64_t bytes, const CpuModel& cpu) {
  if (bytes <= cpu.l1_bytes) return cpu.loads_per_cycle * cpu.vector_lanes * 4 * cpu.ghz;
  return bytes <= cpu.l2_bytes ? cpu.l2_gbs : bytes <= cpu.l3_bytes ? cpu.l3_gbs : cpu.dram_gbs;
}

}  // namespace

double floor_ns(const KernelWork& work, int64_t run_bytes, const CpuModel& cpu) {
  if (!cpu.best_variant.empty()) return floor_ns(work, run_bytes, *find_cpu(cpu.best_variant));
  if (cpu.march.empty()) return 0;
  const double products = double(work.macs) / macs_per_ns(work, cpu);
  const double operands = double(work.bytes - work.weight_bytes) / bytes_per_ns(work.bytes, cpu) +
                          double(work.weight_bytes) / bytes_per_ns(std::max(run_bytes, work.bytes), cpu);
  return std::max(products, operands);
}

}  // namespace tc
