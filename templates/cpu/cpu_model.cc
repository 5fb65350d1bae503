#include "templates/cpu/cpu_model.h"

#include <fstream>
#include <sstream>
#include <string>

#include "support/error.h"

namespace tc {
namespace {

// Per core. Ports and latencies: the vendors' optimisation guides. Bandwidths of znver4, znver5 and sapphirerapids were
// measured on server parts, those of the other rows are round numbers for their class.
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
      // AVX2 with the byte products of AVX-VNNI: client parts of Intel since 2021.
      {.name = "alderlake",
       .march = "x86-64-v3 -mavxvnni",
       .vector_lanes = 8,
       .vector_registers = 16,
       .half_vectors = true,
       .byte_dot = true,
       .fma_per_cycle = 2,
       .loads_per_cycle = 3,
       .l1_bytes = 48 << 10,
       .l2_bytes = 1280 << 10,
       .l1_ways = 12},
      {.name = "cascadelake",
       .march = "x86-64-v4 -mavx512vnni",
       .vector_lanes = 16,
       .vector_registers = 32,
       .half_vectors = true,
       .byte_dot = true,
       .fma_per_cycle = 2,
       .loads_per_cycle = 2,
       .l2_bytes = 1 << 20,
       .l3_bytes = 24 << 20},
      {.name = "icelake-server",
       .march = "x86-64-v4 -mavx512vnni",
       .vector_lanes = 16,
       .vector_registers = 32,
       .half_vectors = true,
       .byte_dot = true,
       .fma_per_cycle = 2,
       .loads_per_cycle = 2,
       .l1_bytes = 48 << 10,
       .l2_bytes = 1280 << 10,
       .l3_bytes = 32 << 20,
       .l1_ways = 12},
      {.name = "sapphirerapids",
       .march = "x86-64-v4 -mavx512vnni -mamx-tile -mamx-int8",
       .vector_lanes = 16,
       .vector_registers = 32,
       .half_vectors = true,
       .byte_dot = true,
       .byte_tiles = true,
       .fma_per_cycle = 2,
       .loads_per_cycle = 2,
       .l1_bytes = 48 << 10,
       .l2_bytes = 2 << 20,
       .l3_bytes = 64 << 20,
       .l1_ways = 12,
       .l2_gbs = 131,
       .l3_gbs = 29,
       .dram_gbs = 13,
       .ghz = 2.9},
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

// What the first processor of /proc/cpuinfo says: the words of "flags : ...", "cpu family : ..." and the vendor.
struct CpuInfo {
  std::string flags;
  int family = 0;
  bool amd = false;

  bool has(std::string_view flag) const { return flags.find(" " + std::string(flag) + " ") != std::string::npos; }
};
CpuInfo read_cpuinfo(std::istream& in) {
  CpuInfo r;
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

// The names are those of gcc's -march: the row has no instruction that the processor lacks.
std::string_view x86_name(const CpuInfo& info) {
  const bool v3 = info.has("avx2") && info.has("fma") && info.has("bmi2");
  const bool v4 = v3 && info.has("avx512f") && info.has("avx512bw") && info.has("avx512cd") && info.has("avx512dq") &&
                  info.has("avx512vl");
  const bool vnni = info.has("avx512_vnni");
  if (v4 && vnni && info.amd) return info.family >= 0x1a ? "znver5" : "znver4";
  if (v4 && vnni && info.has("amx_int8")) return "sapphirerapids";
  if (v4 && vnni) return info.has("avx512_vbmi2") ? "icelake-server" : "cascadelake";
  if (v4) return "x86-64-v4";
  if (v3) return info.has("avx_vnni") && info.has("f16c") ? "alderlake" : "x86-64-v3";
  return "generic";
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
    m.best_variant = "x86-64-v4";
    return m;
  }();
  return model;
}

const CpuModel& x86_cpu(std::istream& cpuinfo) {
  const CpuModel* m = find_cpu(x86_name(read_cpuinfo(cpuinfo)));
  check(m != nullptr, "the row of a processor exists");
  return *m;
}

const CpuModel& native_cpu() {
#if defined(__aarch64__)
  return *find_cpu("aarch64");
#elif defined(__x86_64__)
  std::ifstream cpuinfo("/proc/cpuinfo");
  return x86_cpu(cpuinfo);
#else
  return *find_cpu("generic");
#endif
}

}  // namespace tc
