// Tiles of attention: the cheapest by an estimate of cycles, as in contraction_plan.cc.
#include <algorithm>

#include "templates/cuda/attention.h"

namespace tc {
namespace {

constexpr int64_t kStaticShared = 48 << 10;  // bytes of a block that need no request
constexpr int64_t kMaxGridYz = 65535, kBusyWarps = 8, kMaxThreads = 256;
constexpr int64_t kMaxDepth = 256;       // of a head
constexpr int64_t kMaxRegisters = 168;   // of a thread
constexpr double kStepCycles = 800;      // two waits for copies
constexpr double kLaunchCycles = 12000;  // a second launch

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }
int64_t round_up(int64_t n, int64_t by) { return ceil_div(n, by) * by; }

int64_t shared_bytes(const CudaAttentionPlan& p) {
  const int64_t line = p.depth / 4 % 2 == 0 ? p.depth + 4 : p.depth;
  return 4 * ((p.rows + p.keys) * line + p.keys * p.width + p.rows * (p.keys + 4));
}

// Of a thread: scores, results, what it multiplies, and 40 for addresses.
int64_t registers(const CudaAttentionPlan& p) {
  const int64_t tn = p.keys / p.tx, te = p.width / p.tx;
  return p.tm * (tn + te + 2) + std::max((p.tm + tn) * 4, p.tm * 4 + te) + 40;
}

// Issue slots of one tile of keys, per multiprocessor of four schedulers.
double step_cycles(const CudaAttentionPlan& p) {
  const double tn = double(p.keys / p.tx), te = double(p.width / p.tx), tm = double(p.tm);
  const double scores = double(p.depth) / 4 * (tm * tn * 4 + (tm + tn) * 2);
  double exchange = 0;
  for (int64_t lanes = p.tx; lanes > 1; lanes /= 2) exchange += 5;
  const double softmax = tm * (tn * 14 + te + exchange + 40);
  const double values = double(p.keys) / 4 * (tm * te * 4 + tm * 2 + te * 2);
  const double copies = double(p.keys * (p.depth + p.width)) / 4 / double(p.threads()) * 6;
  return (scores + softmax + values + copies + 60) * double(p.threads()) / 32 / 4;
}

double estimate(const CudaAttention& m, const CudaModel& gpu, const CudaAttentionPlan& p) {
  const int64_t blocks = ceil_div(points(m.rows), p.rows) * points(m.batch) * p.splits;
  const int64_t fit = std::max<int64_t>(
      1, std::min({gpu.registers_per_sm / (p.threads() * registers(p)), gpu.shared_per_sm / (shared_bytes(p) + 1024),
                   gpu.threads_per_sm / p.threads(), int64_t(32)}));
  const int64_t per_sm = ceil_div(blocks, gpu.multiprocessors), together = std::min(per_sm, fit);
  const double busy = std::min(1.0, double(together * p.threads()) / double(32 * kBusyWarps));
  const double work = double(per_sm * p.steps) * step_cycles(p) / busy;
  const double latency = double(ceil_div(per_sm, together)) * double(p.steps + 1) * kStepCycles;
  double cycles = std::max(work, latency);
  if (p.splits > 1) {  // sums are written and read again
    const double bytes = 8.0 * double(p.splits * points(m.batch) * points(m.rows) * points(m.values));
    cycles += kLaunchCycles + bytes / (gpu.dram_gbs / 1.4);
  }
  return cycles;
}

bool is_possible(const CudaAttention& m, const CudaAttentionPlan& p) {
  return p.threads() >= 32 && p.threads() <= kMaxThreads && shared_bytes(p) <= kStaticShared &&
         registers(p) <= kMaxRegisters && ceil_div(points(m.rows), p.rows) <= INT32_MAX;
}

}  // namespace

std::optional<CudaAttentionPlan> plan_cuda_attention(const CudaAttention& m, const CudaModel& gpu) {
  const int64_t depth = points(m.depth), width = points(m.values), keys = m.keys.extent.value;
  if (depth > kMaxDepth || width > kMaxDepth || points(m.batch) > kMaxGridYz) return {};
  std::optional<CudaAttentionPlan> best;
  double least = 0;
  for (const int64_t tx : {4, 8, 16, 32})
    for (const int64_t tm : {1, 2, 4, 8})
      for (const int64_t ty : {1, 2, 4, 8, 16, 32, 64})
        for (const int64_t tn : {1, 2, 4, 8}) {
          CudaAttentionPlan p{.rows = tm * ty, .keys = tn * tx, .tm = tm, .tx = tx};
          p.depth = round_up(depth, 4);
          p.width = round_up(width, 4 * tx);
          if (!is_possible(m, p)) continue;
          const int64_t steps = ceil_div(keys, p.keys);
          for (const int64_t splits : {1, 2, 4, 8, 16, 32}) {
            if (splits > 1 && steps < 2 * splits) break;
            p.steps = ceil_div(steps, splits);
            p.splits = ceil_div(steps, p.steps);
            const double cycles = estimate(m, gpu, p);
            if (best && cycles >= least) continue;
            best = p;
            least = cycles;
          }
        }
  return best;
}

}  // namespace tc
