// Tiles of attention: the cheapest by an estimate of cycles, as in contraction_plan.cc.
#include <algorithm>

#include "templates/cuda/attention.h"
#include "templates/narrowing.h"

namespace tc {
namespace {

constexpr int64_t kBusyWarps = 8, kMaxThreads = 256;
constexpr int64_t kMaxDepth = 256;       // of a head
constexpr int64_t kMaxRegisters = 168;   // of a thread
constexpr double kStepCycles = 800;      // two waits for copies
constexpr double kLaunchCycles = 12000;  // a second launch

int64_t shared_bytes(const CudaAttentionPlan& p) {
  const int64_t bytes = info(p.type).bytes, pad = 16 / bytes;
  const int64_t tiles = ((p.rows + p.keys) * (p.depth + pad) + p.keys * (p.width + pad)) * bytes;
  return p.warp ? tiles : tiles + 4 * p.rows * (p.keys + 4);
}

// Of a thread: scores, results, what it multiplies, tiles on their way through registers, and 40 for addresses.
int64_t registers(const CudaAttentionPlan& p) {
  const int64_t waiting = !p.converts ? 0 : p.keys * std::max(p.depth, p.width) / p.threads();
  if (p.warp) return p.keys / 2 + p.width / 2 + p.keys / 4 + 8 + waiting + 48;
  const int64_t tn = p.keys / p.tx, te = p.width / p.tx;
  return p.tm * (tn + te + 2) + std::max((p.tm + tn) * 4, p.tm * 4 + te) + 40;
}

// Issue slots of one tile of keys, per multiprocessor of four schedulers.
double step_cycles(const CudaAttentionPlan& p) {
  const double tn = double(p.keys) / double(p.tx), te = double(p.width) / double(p.tx), tm = double(p.tm);
  const double copies = double(p.keys * (p.depth + p.width)) / 4 / double(p.threads()) * (p.converts ? 12 : 6);
  const double exchange = p.tx == 4 ? 10 : p.tx == 8 ? 15 : p.tx == 16 ? 20 : 25;
  const double softmax = tm * (tn * 14 + te + exchange + 40);
  double products;
  if (p.warp) {
    const double piece = 32 / double(info(p.type).bytes), instruction = p.type == DType::F32 ? 14 : 11;
    const double pieces = double(p.keys) / 8 * double(p.depth) / piece + double(p.keys) / piece * double(p.width) / 8;
    products = pieces * instruction;
  } else {
    products =
        double(p.depth) / 4 * (tm * tn * 4 + (tm + tn) * 2) + double(p.keys) / 4 * (tm * te * 4 + tm * 2 + te * 2);
  }
  return (products + softmax + copies + 60) * double(p.threads()) / 32 / 4;
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
  return p.threads() >= 32 && p.threads() <= kMaxThreads && shared_bytes(p) <= kStaticSharedBytes &&
         registers(p) <= kMaxRegisters &&
         grid_kinds(ceil_div(points(m.rows), p.rows), points(m.batch), p.splits).has_value();
}

using Candidates = std::vector<CudaAttentionPlan>;

Candidates simt_candidates() {
  Candidates list;
  for (const int64_t tx : {4, 8, 16, 32})
    for (const int64_t tm : {1, 2, 4, 8})
      for (const int64_t ty : {1, 2, 4, 8, 16, 32, 64})
        for (const int64_t tn : {1, 2, 4, 8}) list.push_back({.rows = tm * ty, .keys = tn * tx, .tm = tm, .tx = tx});
  return list;
}

// Four lanes have two rows.
Candidates warp_candidates(DType type) {
  Candidates list;
  for (const int64_t warps : {1, 2, 4, 8})
    for (const int64_t keys : {16, 32, 64, 128})
      list.push_back({.rows = 16 * warps, .keys = keys, .tm = 2, .tx = 4, .warp = true, .type = type});
  return list;
}

// What tensor cores multiply: halves as they are, without a flag, and others rounded as --precision allows; f32: to tf32.
// Null: nothing.
std::optional<DType> tensor_core_type(const CudaAttention& m, const CudaModel& gpu, Precision allowed) {
  const bool rounds = allowed != Precision::F32 && allowed != Precision::Int8;
  if (m.type == DType::F32 && !rounds) return {};
  const DType type = m.type != DType::F32         ? m.type
                     : allowed == Precision::F16  ? DType::F16
                     : allowed == Precision::Bf16 ? DType::BF16
                                                  : DType::F32;
  return has(gpu, matrix_instruction(type, type)->name) ? std::optional(type) : std::nullopt;
}

using Choice = Narrowing<CudaAttentionPlan>::Candidate;

// Those that fit, each with the ways to share its keys.
std::vector<Choice> choices(const CudaAttention& m, const CudaModel& gpu, const Candidates& list) {
  const int64_t depth = points(m.depth), width = points(m.values), keys = m.keys.extent.value;
  std::vector<Choice> all;
  for (CudaAttentionPlan p : list) {
    p.converts = p.type != m.type;
    p.depth = round_up(depth, p.warp ? 32 / info(p.type).bytes : 4);
    p.width = round_up(width, p.warp ? 8 : 4 * p.tx);
    if (!is_possible(m, p)) continue;
    const int64_t steps = ceil_div(keys, p.keys);
    for (const int64_t splits : {1, 2, 4, 8, 16, 32}) {
      if (splits > 1 && steps < 2 * splits) break;
      p.steps = ceil_div(steps, splits);
      p.splits = ceil_div(steps, p.steps);
      all.push_back({p, estimate(m, gpu, p)});
    }
  }
  return all;
}

std::optional<CudaAttentionPlan> decide(std::vector<Choice> all, const PlanEntry& plan) {
  if (all.empty()) return {};
  Narrowing<CudaAttentionPlan> left(std::move(all));
  const std::string why = "what fits registers and shared memory beside the numbers before it";
  left.decide(
      plan, "rows", [](const CudaAttentionPlan& p) { return p.rows; }, why);
  left.decide(
      plan, "keys", [](const CudaAttentionPlan& p) { return p.keys; }, why);
  left.decide(
      plan, "thread_rows", [](const CudaAttentionPlan& p) { return p.tm; }, why);
  left.decide(
      plan, "threads_of_row", [](const CudaAttentionPlan& p) { return p.tx; }, why);
  left.decide(
      plan, "splits", [](const CudaAttentionPlan& p) { return p.splits; }, "two tiles of keys for each");
  plan.expect(left.best().cost);
  return left.best().plan;
}

}  // namespace

std::optional<CudaAttentionPlan> plan_cuda_attention(const CudaAttention& m, const CudaModel& gpu,
                                                     const ScheduleOptions& o, const PlanEntry& plan) {
  if (points(m.depth) > kMaxDepth || points(m.values) > kMaxDepth) return {};
  constexpr int64_t kFewRows = 4;  // the rest of a warp's 16 would be nothing
  const auto type = tensor_core_type(m, gpu, o.precision);
  std::vector<Choice> on_tensor_cores;
  if (type && points(m.rows) > kFewRows) on_tensor_cores = choices(m, gpu, warp_candidates(*type));
  const bool possible = !on_tensor_cores.empty();
  if (plan.flag("tensor_cores", possible, possible, "as --precision and the rows allow"))
    return decide(std::move(on_tensor_cores), plan);
  return decide(choices(m, gpu, simt_candidates()), plan);
}

}  // namespace tc
