// Tiles of sums of products: the cheapest by an estimate of cycles. Numbers of the architecture only, nothing is
// measured.
#include <algorithm>

#include "templates/cuda/contraction.h"

namespace tc {
namespace {

// rows, columns, depth, and the part of a thread
constexpr CudaTile kTiles[] = {
    {128, 128, 16, 8, 8}, {128, 64, 16, 8, 4}, {64, 128, 16, 4, 8}, {64, 64, 16, 4, 4}, {128, 32, 16, 8, 4},
    {32, 128, 16, 4, 8},  {64, 32, 16, 4, 4},  {32, 64, 16, 4, 4},  {32, 32, 16, 4, 4}, {16, 64, 16, 4, 4},
};

constexpr double kStepCycles = 500;     // from issuing the copies of a step to their arrival
constexpr double kLaunchCycles = 4000;  // a second launch
constexpr int64_t kBusyWarps = 8;       // of a multiprocessor, to hide the latency of its instructions
constexpr int64_t kMaxGridYz = 65535;

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

// Issue slots of one step of a block, per multiprocessor of four schedulers: products, reads of shared memory, copies.
double step_cycles(const CudaTile& t) {
  const double products = double(t.tm * t.tn * t.depth);
  const double reads = double((t.tm + t.tn) / 4 * t.depth) * 2;
  const double copies = double(t.rows * t.depth + t.columns * t.depth / 4) / double(t.threads()) * 6;
  const double warps = double(t.threads()) / 32;
  return (products + reads + copies + 20) * warps / 4;
}

double estimate(const CudaContraction& m, const CudaModel& gpu, const CudaPlan& p) {
  const CudaTile& t = p.tile;
  const int64_t blocks = ceil_div(m.rows(), t.rows) * ceil_div(m.columns(), t.columns) * m.batches() * p.splits;
  const int64_t registers = t.threads() * (t.tm * t.tn + 56), shared = 2 * t.depth * (t.rows + t.columns + 4) * 4;
  const int64_t fit = std::max<int64_t>(
      1, std::min({gpu.registers_per_sm / registers, gpu.shared_per_sm / shared, gpu.threads_per_sm / t.threads()}));
  const int64_t per_sm = ceil_div(blocks, gpu.multiprocessors), together = std::min(per_sm, fit);
  const double busy = std::min(1.0, double(together * t.threads()) / double(32 * kBusyWarps));
  const double work = double(per_sm * p.steps) * step_cycles(t) / busy;
  const double latency = double(ceil_div(per_sm, together)) * double(p.steps + 1) * kStepCycles;
  double cycles = std::max(work, latency);
  if (p.splits > 1) {  // partial sums are written and read again
    const double bytes = 8.0 * double(p.splits * m.batches() * m.rows() * m.columns());
    cycles += kLaunchCycles + bytes / (gpu.dram_gbs / 1.4);
  }
  return cycles;
}

}  // namespace

CudaPlan plan_cuda_contraction(const CudaContraction& m, const CudaModel& gpu, const ScheduleOptions& o) {
  CudaPlan best;
  double least = 0;
  for (const CudaTile& t : kTiles) {
    const int64_t steps = ceil_div(m.depth(), t.depth);
    for (const int64_t splits : {1, 2, 3, 4, 6, 8, 12, 16, 24, 32}) {
      if (splits > 1 && (o.strict_fp || steps < 2 * splits || m.batches() * splits > kMaxGridYz)) break;
      const CudaPlan p{t, splits, ceil_div(steps, splits)};
      const double cycles = estimate(m, gpu, p);
      if (best.steps > 0 && least > 0 && cycles >= least) continue;
      best = p;
      least = cycles;
    }
  }
  return best;
}

}  // namespace tc
