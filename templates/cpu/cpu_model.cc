#include "templates/cpu/cpu_model.h"

#include <fstream>
#include <sstream>
#include <string>

#include "support/error.h"

namespace tc {
namespace {

// Per core. Ports and latencies: the vendors' optimisation guides. Bandwidths of znver4 and znver5 were measured on
// server parts, those of the other rows are round numbers for their class.
const std::vector<CpuModel>& rows() {
  static const std::vector<CpuModel> list = {
      {.name = "generic",
       .march = "",
       .vector_lanes = 8,
       .vector_registers = 16,
       .fma_per_cycle = 2,
       .loads_per_cycle = 2},
      {.name = "x86-64-v3",
       .march = "x86-64-v3",
       .vector_lanes = 8,
       .vector_registers = 16,
       .half_vectors = true,
       .fma_per_cycle = 2,
       .loads_per_cycle = 2},
      {.name = "x86-64-v4",
       .march = "x86-64-v4",
       .vector_lanes = 16,
       .vector_registers = 32,
       .half_vectors = true,
       .fma_per_cycle = 2,
       .loads_per_cycle = 2,
       .l1_bytes = 48 << 10,
       .l2_bytes = 1 << 20,
       .l3_bytes = 32 << 20,
       .l1_ways = 12},
      // 512-bit FMAs take both 256-bit pipes: one a cycle; one 512-bit load or two broadcasts a cycle.
      {.name = "znver4",
       .march = "x86-64-v4 -mavx512vnni",
       .vector_lanes = 16,
       .vector_registers = 32,
       .half_vectors = true,
       .byte_dot = true,
       .fma_per_cycle = 1,
       .loads_per_cycle = 1,
       .l2_bytes = 1 << 20,
       .l3_bytes = 32 << 20,
       .l2_gbs = 300,
       .l3_gbs = 160,
       .dram_gbs = 30,
       .ghz = 3.7},
      {.name = "znver5",
       .march = "x86-64-v4 -mavx512vnni",
       .vector_lanes = 16,
       .vector_registers = 32,
       .half_vectors = true,
       .byte_dot = true,
       .fma_per_cycle = 2,
       .loads_per_cycle = 2,
       .l1_bytes = 48 << 10,
       .l2_bytes = 1 << 20,
       .l3_bytes = 32 << 20,
       .l1_ways = 12,
       .l2_gbs = 200,
       .l3_gbs = 98,
       .dram_gbs = 38,
       .ghz = 3.9},
      {.name = "aarch64",
       .march = "armv8-a",
       .vector_lanes = 4,
       .vector_registers = 32,
       .half_vectors = true,
       .fma_per_cycle = 2,
       .loads_per_cycle = 2,
       .l1_bytes = 64 << 10,
       .l2_bytes = 1 << 20,
       .l1_ways = 4},
  };
  return list;
}

// The words of the line "flags : ..." and the line "cpu family : ..." of /proc/cpuinfo; empty where there is none.
struct CpuInfo {
  std::string flags;
  int family = 0;
  bool amd = false;
};
CpuInfo read_cpuinfo() {
  CpuInfo r;
  std::ifstream in("/proc/cpuinfo");
  for (std::string line; std::getline(in, line);) {
    const size_t colon = line.find(':');
    if (colon == std::string::npos) {
      if (!r.flags.empty()) break;  // the first processor is enough
      continue;
    }
    const std::string value = line.substr(colon + 1) + " ";
    if (line.starts_with("flags")) r.flags = value;
    if (line.starts_with("vendor_id")) r.amd = value.find("AuthenticAMD") != std::string::npos;
    if (line.starts_with("cpu family")) std::istringstream(value) >> r.family;
  }
  return r;
}

std::string_view native_name() {
#if defined(__aarch64__)
  return "aarch64";
#elif defined(__x86_64__)
  const CpuInfo info = read_cpuinfo();
  auto has = [&](const char* flag) { return info.flags.find(" " + std::string(flag) + " ") != std::string::npos; };
  const bool v4 = has("avx512f") && has("avx512bw") && has("avx512cd") && has("avx512dq") && has("avx512vl");
  if (info.amd && v4 && info.family >= 0x1a) return "znver5";
  if (info.amd && v4 && info.family == 0x19) return "znver4";
  if (v4) return "x86-64-v4";
  if (has("avx2") && has("fma") && has("bmi2")) return "x86-64-v3";
  return "generic";
#else
  return "generic";
#endif
}

}  // namespace

CpuModel with_lanes_of(CpuModel cpu, DType t) {
  if (t == DType::F64) cpu.vector_lanes = std::max(1, cpu.vector_lanes / 2);
  return cpu;
}

const std::vector<CpuModel>& cpu_models() { return rows(); }

const CpuModel* find_cpu(std::string_view name) {
  for (const CpuModel& m : rows())
    if (m.name == name) return &m;
  return nullptr;
}

const CpuModel& any_cpu() {
  static const CpuModel model = [] {
    CpuModel m = *find_cpu("generic");
    m.half_vectors = true;
    m.floors_of = "x86-64-v4";
    return m;
  }();
  return model;
}

const CpuModel& native_cpu() {
  const CpuModel* m = find_cpu(native_name());
  check(m != nullptr, "the native row exists");
  return *m;
}

}  // namespace tc
