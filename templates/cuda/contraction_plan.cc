// Tiles of sums of products: the cheapest by an estimate of cycles. Numbers of the architecture only, nothing is
// measured.
#include <algorithm>

#include "ir/loop/matrix_instruction.h"
#include "templates/cuda/contraction.h"

namespace tc {
namespace {

// rows, columns, depth, and the part of a thread
constexpr CudaTile kTiles[] = {
    {128, 128, 16, 8, 8}, {128, 64, 16, 8, 4}, {64, 128, 16, 4, 8}, {64, 64, 16, 4, 4}, {128, 32, 16, 8, 4},
    {32, 128, 16, 4, 8},  {64, 32, 16, 4, 4},  {32, 64, 16, 4, 4},  {32, 32, 16, 4, 4}, {16, 64, 16, 4, 4},  {16, 32, 16, 4, 4},
    {16, 64, 8, 4, 4},    {16, 32, 8, 4, 4},
};
// rows, columns, bytes of depth, and the part of a warp on tensor cores
constexpr CudaTile kWarpTiles[] = {
    {128, 128, 64, 64, 32, true}, {128, 64, 64, 32, 32, true}, {64, 128, 64, 32, 32, true}, {64, 64, 64, 32, 32, true},
    {64, 32, 64, 16, 32, true},   {32, 64, 64, 16, 32, true},  {32, 32, 64, 16, 16, true},  {16, 64, 64, 16, 16, true},
};

constexpr double kStepCycles = 500;     // from issuing the copies of a step to their arrival
constexpr double kLaunchCycles = 12000; // a second launch
constexpr int64_t kBusyWarps = 8;       // of a multiprocessor, to hide the latency of its instructions
constexpr int64_t kMaxThreads = 512;  // of a block whose threads share sums: 128 registers each
constexpr int64_t kMostShared = 99 << 10;  // bytes of a block: what every machine from sm_80 on has by request

int64_t bytes_of(const CudaPlan& p) { return info(p.p_type).bytes; }  // both factors' elements have the same size

int64_t shared_bytes(const CudaPlan& p) {
  const CudaTile& t = p.tile;
  const int64_t bytes = bytes_of(p), sums = (p.members - 1) * t.rows * t.columns * 4;
  const int64_t step = t.warp ? (t.rows + t.columns) * (t.depth * bytes + 16) : t.depth * (t.rows + t.columns + 8) * bytes;
  return std::max(p.members * p.stages * step, sums);  // the sums come last, where the tiles were
}

// Issue slots of one step of a block, per multiprocessor of four schedulers: products, reads of shared memory, copies.
double step_cycles(const CudaPlan& p) {
  const CudaTile& t = p.tile;
  const double warps = double(t.threads()) / 32, bytes = double(bytes_of(p));
  if (t.warp) {
    const double products = double(t.rows * t.columns * t.depth) / (bytes == 1 ? 2048 : bytes == 2 ? 1024 : 512);
    const double reads = warps * double(t.tm + t.tn) * double(t.depth) * bytes / 128;
    const double copies = double((t.rows + t.columns) * t.depth) * bytes / 64;
    return std::max(products, reads) + copies + 20;
  }
  const double products = double(t.tm * t.tn * t.depth);
  const double reads = double((t.tm + t.tn) / 4 * t.depth) * 2;
  const double copies = double(t.rows * t.depth + t.columns * t.depth / 4) / double(t.threads()) * 6;
  return (products + reads + copies + 20) * warps / 4;
}

double estimate(const CudaContraction& m, const CudaModel& gpu, const CudaPlan& p) {
  const CudaTile& t = p.tile;
  const int64_t blocks = ceil_div(m.rows(), t.rows) * ceil_div(m.columns(), t.columns) * m.batches() * p.splits;
  const int64_t sums = t.tm * t.tn / (t.warp ? 32 : 1), registers = p.threads() * (sums + 56);
  const int64_t fit =
      std::max<int64_t>(1, std::min({gpu.registers_per_sm / registers, gpu.shared_per_sm / shared_bytes(p),
                                     gpu.threads_per_sm / p.threads()}));
  const int64_t per_sm = ceil_div(blocks, gpu.multiprocessors), together = std::min(per_sm, fit);
  const double busy = std::min(1.0, double(together * p.threads()) / double(32 * kBusyWarps));
  const double work = double(per_sm * p.members * p.steps) * step_cycles(p) / busy;
  const double latency = double(ceil_div(per_sm, together)) * double(p.steps + 1) * kStepCycles / double(p.stages - 1);
  double cycles = std::max(work, latency);
  if (p.members > 1) cycles += double(per_sm) * double((p.members - 1) * t.rows * t.columns) / 32 + 100;
  if (p.splits > 1) {  // partial sums are written and read again
    const double bytes = 8.0 * double(p.splits * m.batches() * m.rows() * m.columns());
    cycles += kLaunchCycles + bytes / (gpu.dram_gbs / 1.4);
  }
  return cycles;
}

// What tensor cores multiply: the factors as they are, or rounded as --precision allows. Null types: nothing.
struct TileTypes {
  DType p = DType::Undefined, q = DType::Undefined;
};
TileTypes tensor_core_types(const CudaContraction& m, const CudaModel& gpu, Precision allowed) {
  if (m.depth() < 8) return {};
  const DType p = m.p.type, q = m.q.type;
  auto narrow = [](DType t) { return t == DType::F16 || t == DType::BF16; };
  TileTypes t;
  if ((narrow(p) && p == q) || (m.sum == DType::I32 && matrix_instruction(p, q))) t = {p, q};
  else if (m.sum == DType::F32 && allowed == Precision::F16) t = {DType::F16, DType::F16};
  else if (m.sum == DType::F32 && allowed == Precision::Bf16) t = {DType::BF16, DType::BF16};
  else if (m.sum == DType::F32 && allowed == Precision::Tf32) t = {DType::F32, DType::F32};
  const bool old = t.p == DType::F16 || m.sum == DType::I32;  // the others came with sm_80
  return gpu.async_copy || old ? t : TileTypes{};
}

// The candidates: tiles of the type that is multiplied.
std::vector<CudaPlan> candidates(const CudaContraction& m, const CudaModel& gpu, const ScheduleOptions& o) {
  std::vector<CudaPlan> list;
  const TileTypes types = tensor_core_types(m, gpu, o.precision);
  if (types.p != DType::Undefined) {
    for (const CudaTile& t : kWarpTiles) {
      CudaPlan p{.tile = t, .p_type = types.p, .q_type = types.q};
      p.tile.depth /= bytes_of(p);
      for (const int64_t stages : {2, 3, 4}) {
        p.stages = stages;
        list.push_back(p);
      }
    }
    return list;
  }
  for (const CudaTile& t : kTiles)
    for (const int64_t stages : {2, 3, 4}) list.push_back({.tile = t, .stages = stages, .p_type = m.sum, .q_type = m.sum});
  return list;
}

}  // namespace

CudaPlan plan_cuda_contraction(const CudaContraction& m, const CudaModel& gpu, const ScheduleOptions& o) {
  CudaPlan best;
  double least = -1;
  for (CudaPlan p : candidates(m, gpu, o)) {
    const int64_t steps = ceil_div(m.depth(), p.tile.depth);
    for (const int64_t members : {1, 2, 4, 8})
      for (const int64_t splits : {1, 2, 3, 4, 6, 8, 12, 16, 24, 32}) {
        const int64_t parts = members * splits;
        if (parts > 1 && (o.strict_fp || steps < 2 * parts || m.batches() * splits > kMaxGridYz)) break;
        p.members = members;
        if (shared_bytes(p) > std::min(kMostShared, gpu.shared_bytes) || (members > 1 && p.threads() > kMaxThreads)) break;
        p.splits = splits;
        p.steps = ceil_div(steps, parts);
        const double cycles = estimate(m, gpu, p);
        if (least >= 0 && cycles >= least) continue;
        best = p;
        least = cycles;
      }
  }
  return best;
}

}  // namespace tc
