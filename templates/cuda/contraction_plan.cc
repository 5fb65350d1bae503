// Tiles of sums of products: the cheapest by an estimate of cycles. Numbers of the architecture only, nothing is
// measured.
//
// --precision says how far factors may be rounded, not that they must be: rounding is for speed, and where memory or
// the launch takes the time there is none to win. So of the ways to multiply, from one product of bf16 over one of tf32
// to three of tf32 (tensor_cores.cc), the most precise is taken that takes no longer, within what goes unnoticed. These
// are the products of few operations a byte: the first convolutions of a network, narrow and 1 x 1 ones, projections of
// few columns. They are also the ones where rounding does most harm, since an error in a weight is the same for all
// pixels, and few terms do not average it.
#include <algorithm>

#include "ir/loop/instruction.h"
#include "templates/cuda/contraction.h"

namespace tc {
namespace {

// rows, columns, depth, and the part of a thread
constexpr CudaTile kTiles[] = {
    {128, 128, 16, 8, 8}, {128, 64, 16, 8, 4}, {64, 128, 16, 4, 8}, {64, 64, 16, 4, 4}, {128, 32, 16, 8, 4},
    {32, 128, 16, 4, 8},  {64, 32, 16, 4, 4},  {32, 64, 16, 4, 4},  {32, 32, 16, 4, 4}, {16, 64, 16, 4, 4},
    {16, 32, 16, 4, 4},   {16, 64, 8, 4, 4},   {16, 32, 8, 4, 4},
};
// rows, columns, bytes of depth, and the part of a warp on tensor cores
constexpr CudaTile kWarpTiles[] = {
    {128, 128, 64, 64, 32, true}, {128, 64, 64, 32, 32, true}, {64, 128, 64, 32, 32, true}, {64, 64, 64, 32, 32, true},
    {64, 32, 64, 16, 32, true},   {32, 64, 64, 16, 32, true},  {32, 32, 64, 16, 16, true},  {16, 64, 64, 16, 16, true},
};

constexpr double kStepCycles = 500;        // from issuing the copies of a step to their arrival
constexpr double kLaunchCycles = 12000;    // a second launch
constexpr int64_t kBusyWarps = 8;          // of a multiprocessor, to hide the latency of its instructions
constexpr int64_t kMaxThreads = 512;       // of a block whose threads share sums: 128 registers each
constexpr int64_t kMostShared = 99 << 10;  // bytes of a block: what every machine from sm_80 on has by request

int64_t bytes_of(const CudaPlan& p) { return info(p.p_type).bytes; }  // both factors' elements have the same size

int64_t shared_bytes(const CudaPlan& p) {
  const CudaTile& t = p.tile;
  const int64_t bytes = bytes_of(p), sums = (p.k_groups - 1) * t.rows * t.columns * 4;
  const int64_t step =
      t.warp ? (t.rows + t.columns) * (t.depth * bytes + 16) : t.depth * (t.rows + t.columns + 8) * bytes;
  return std::max(p.k_groups * p.stages * step, sums);  // the sums come last, where the tiles were
}

// Issue slots of one step of a block, per multiprocessor of four schedulers: products, reads of shared memory, copies.
double step_cycles(const CudaPlan& p) {
  const CudaTile& t = p.tile;
  const double warps = double(t.threads()) / 32, bytes = double(bytes_of(p));
  if (t.warp) {
    const MatrixInstruction& mma = *matrix_instruction(p.p_type, p.q_type);
    auto cycles = [](std::string_view name) { return instruction(name).cycles; };
    const double products = double(p.products * t.rows * t.columns * t.depth) /
                            double(kTileRows * kTileColumns * mma.depth) * cycles(mma.name);
    const double reads = warps * double(t.tm + t.tn) * double(t.depth) * bytes / 512 * cycles("ldmatrix_x4");
    const double copies = double((t.rows + t.columns) * t.depth) * bytes / 512 * cycles("cp_async16");
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
  const double work = double(per_sm * p.k_groups * p.steps) * step_cycles(p) / busy;
  const double latency = double(ceil_div(per_sm, together)) * double(p.steps + 1) * kStepCycles / double(p.stages - 1);
  double cycles = std::max(work, latency);
  if (p.k_groups > 1) cycles += double(per_sm) * double((p.k_groups - 1) * t.rows * t.columns) / 32 + 100;
  if (p.splits > 1) {  // partial sums are written and read again
    const double bytes = 8.0 * double(p.splits * m.batches() * m.rows() * m.columns());
    cycles += kLaunchCycles + bytes / (gpu.dram_gbs / 1.4);
  }
  return cycles;
}

// Bytes of the factors and of the result, each once. Of a factor that is computed from operands: theirs.
double moved_bytes(const CudaContraction& m, const CudaPlan& p) {
  auto factor = [&](const Factor& f, int64_t elements, DType type) {
    if (f.packed) return double(points(f.batch) * elements * m.depth() * info(type).bytes);
    const double most = double(m.batches() * elements * m.depth());
    double bytes = 0;
    walk(f.value, [&](const Expr& e) {
      if (const Load* l = as<Load>(e))
        bytes += double(num_elements(static_dims(l->buffer->shape))) * info(l->buffer->dtype).bytes;
      return true;
    });
    return std::min(bytes, most * info(f.type).bytes);
  };
  const double results = double(m.batches() * m.rows() * m.columns()) * info(m.c.out->dtype).bytes;
  return factor(m.p, m.rows(), p.p_type) + factor(m.q, m.columns(), p.q_type) + results;
}

// What tensor cores multiply: the factors as they are, or rounded as --precision allows; from the fastest to the most
// precise. Empty: nothing.
struct Arithmetic {
  DType p, q;
  int64_t products = 1;
};
std::vector<Arithmetic> arithmetics(const CudaContraction& m, const CudaModel& gpu, Precision allowed) {
  if (m.depth() < 8) return {};
  const DType p = m.p.type, q = m.q.type;
  auto narrow = [](DType t) { return t == DType::F16 || t == DType::BF16; };
  if (narrow(p) && p == q)
    return has(gpu, matrix_instruction(p, q)->name) ? std::vector<Arithmetic>{{p, q}} : std::vector<Arithmetic>{};
  if (m.sum == DType::I32 && matrix_instruction(p, q)) return {{p, q}};
  if (m.sum != DType::F32) return {};
  if (allowed == Precision::F16) return {{DType::F16, DType::F16}};
  if (!has(gpu, matrix_instruction(DType::F32, DType::F32)->name)) return {};  // bf16 came with it
  const Arithmetic tf32{DType::F32, DType::F32}, parts{DType::F32, DType::F32, 3};
  if (allowed == Precision::Bf16) return {{DType::BF16, DType::BF16}, tf32, parts};
  if (allowed == Precision::Tf32) return {tf32, parts};
  return {};
}

// The candidates: tiles of the type that is multiplied.
std::vector<CudaPlan> candidates(const Arithmetic& how) {
  std::vector<CudaPlan> list;
  for (const CudaTile& t : kWarpTiles) {
    CudaPlan p{.tile = t, .p_type = how.p, .q_type = how.q, .products = how.products};
    for (const int64_t bytes_of_depth : {64, 128}) {
      if (bytes_of_depth > 64 && how.p != DType::F32) break;
      p.tile.depth = bytes_of_depth / bytes_of(p);
      for (const int64_t stages : {2, 3, 4}) {
        p.stages = stages;
        list.push_back(p);
      }
    }
  }
  return list;
}
std::vector<CudaPlan> candidates(const CudaContraction& m) {
  std::vector<CudaPlan> list;
  for (const CudaTile& t : kTiles)
    for (const int64_t stages : {2, 3, 4})
      list.push_back({.tile = t, .stages = stages, .p_type = m.sum, .q_type = m.sum});
  return list;
}

struct Choice {
  CudaPlan plan;
  double cycles = -1;  // none
};
Choice cheapest(const CudaContraction& m, const CudaModel& gpu, const ScheduleOptions& o,
                const std::vector<CudaPlan>& list) {
  Choice best;
  for (CudaPlan p : list) {
    const int64_t steps = ceil_div(m.depth(), p.tile.depth);
    for (const int64_t k_groups : {1, 2, 4, 8})
      for (const int64_t splits : {1, 2, 3, 4, 6, 8, 12, 16, 24, 32}) {
        const int64_t parts = k_groups * splits;
        if (parts > 1 && (o.strict_fp || steps < 2 * parts || m.batches() * splits > kMaxGridYz)) break;
        p.k_groups = k_groups;
        if (shared_bytes(p) > std::min(kMostShared, gpu.shared_bytes) || (k_groups > 1 && p.threads() > kMaxThreads))
          break;
        p.splits = splits;
        p.steps = ceil_div(steps, parts);
        const double cycles = estimate(m, gpu, p);
        if (best.cycles < 0 || cycles < best.cycles) best = {p, cycles};
      }
  }
  return best;
}

}  // namespace

CudaPlan plan_cuda_contraction(const CudaContraction& m, const CudaModel& gpu, const ScheduleOptions& o) {
  const std::vector<Arithmetic> ways = arithmetics(m, gpu, o.precision);
  if (ways.empty()) return cheapest(m, gpu, o, candidates(m)).plan;
  // Products and copies overlap.
  auto cycles = [&](const Choice& c) { return std::max(c.cycles, memory_cycles(gpu, moved_bytes(m, c.plan))); };
  const Choice fastest = cheapest(m, gpu, o, candidates(ways[0]));
  Choice best = fastest;
  for (size_t i = 1; i < ways.size(); i++) {
    const Choice c = cheapest(m, gpu, o, candidates(ways[i]));
    if (cycles(c) <= cycles(fastest) + kUnnoticedCycles) best = c;
  }
  return best.plan;
}

}  // namespace tc
