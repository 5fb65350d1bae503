// The GPU cost model's parameters: one row per architecture (--arch). Tiles and launch bounds are chosen from these
// numbers alone, so the same command prints the same text on every machine.
#pragma once
#include <cstdint>
#include <string_view>
#include <vector>

#include "ir/loop/instruction.h"

namespace tc {

struct CudaModel {
  std::string_view name = "sm_80";
  int multiprocessors = 108;
  int64_t shared_bytes = 163 << 10;   // of one block at most, beyond 48 KiB by request
  int64_t shared_per_sm = 164 << 10;  // of all resident blocks
  int registers_per_sm = 65536;       // 32-bit
  int threads_per_sm = 2048;
  double dram_gbs = 1555;  // of the datasheet
  int sm = 80;             // the number in its name
  bool has_wgmma = false;  // products of warp groups: of sm_90a alone, as nvcc calls it
  bool has_tma = false;    // copies of whole tiles; no template uses them yet: docs/cuda.md
};

/// Does the machine have the instruction of that name itself? (Others do the same with older ones.)
inline bool has(const CudaModel& gpu, std::string_view name) {
  const Instruction& row = instruction(name);
  return row.is_wgmma ? gpu.has_wgmma : gpu.sm >= row.sm;
}

/// Cycles of a multiprocessor, at 1.4 GHz, while `bytes` are read or written.
inline double memory_cycles(const CudaModel& gpu, double bytes) { return bytes / (gpu.dram_gbs / 1.4); }

/// Half a microsecond: what more precise arithmetic may cost a launch, which takes several times that from one to the next.
inline constexpr double kUnnoticedCycles = 700;

const std::vector<CudaModel>& cuda_models();
/// Null if the name is unknown.
const CudaModel* find_arch(std::string_view name);

}  // namespace tc
