// The cost model's parameters: one row per microarchitecture (--cpu). Tiles are chosen from these numbers alone, so the
// same command prints the same text on every machine.
#pragma once
#include <iosfwd>
#include <string>
#include <string_view>
#include <vector>

#include "ir/dtype.h"

namespace tc {

struct CpuModel {
  std::string_view name;   // "znver4"
  std::string_view march;  // for the emitted build files, after -march=; empty: none
  int vector_lanes = 8;    // f32 lanes that TC_VL will have
  int vector_registers = 16;
  bool half_vectors = false;   // converts vectors of f16
  bool byte_dot = false;       // one instruction adds four products of bytes to every lane
  bool byte_tiles = false;     // multiplies tiles of bytes (AMX): 16 rows by 16 columns, 64 bytes deep, in 16 cycles
  double fma_per_cycle = 2;    // vector FMAs of the full width
  double loads_per_cycle = 2;  // vector loads
  int fma_latency = 4;
  int l1_bytes = 32 << 10, l2_bytes = 512 << 10, l3_bytes = 16 << 20;
  int l1_ways = 8;
  double l2_gbs = 100, l3_gbs = 60, dram_gbs = 20;  // read bandwidth of one core
  double ghz = 3.0;
  /// The row of the best processor that the same text is compiled for as well (--cpu any): tiles suit both, and the floors
  /// are its. Empty: there is none.
  std::string_view best_variant = {};
};

/// For numbers of type `t`: a vector of doubles fills two registers, as if each had half of the lanes.
CpuModel with_lanes_of(CpuModel cpu, DType t);

const std::vector<CpuModel>& cpu_models();
/// Null if the name is unknown; "native" is resolved by the command line first.
const CpuModel* find_cpu(std::string_view name);
/// For text that is compiled for several processors (--cpu any): the row "generic", with what all but the baseline have
/// and the floors of the fastest.
const CpuModel& any_cpu();
/// The row that describes the x86-64 processor of a text in the form of Linux's /proc/cpuinfo; "generic" where it says
/// nothing.
const CpuModel& x86_cpu(std::istream& cpuinfo);
/// The row that describes this machine.
const CpuModel& native_cpu();

}  // namespace tc
