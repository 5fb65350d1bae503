// Tiles of sums of products: the cheapest by an estimate of cycles. It knows numbers of the architecture, and what 2,509
// launches of 28 products with tiles drawn at random took on an H200 (docs/gpu_results.md); nothing is measured here.
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
#include "templates/narrowing.h"

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
    {128, 128, 64, 64, 32, kWarp}, {128, 64, 64, 32, 32, kWarp}, {64, 128, 64, 32, 32, kWarp},
    {64, 64, 64, 32, 32, kWarp},   {64, 32, 64, 16, 32, kWarp},  {32, 64, 64, 16, 32, kWarp},
    {32, 32, 64, 16, 16, kWarp},   {16, 64, 64, 16, 16, kWarp},
};
// and of four warps together
constexpr int64_t kGroup = kGroupWarps * kWarp;
constexpr CudaTile kGroupTiles[] = {
    {128, 256, 128, 64, 256, kGroup}, {256, 128, 128, 128, 128, kGroup}, {128, 128, 128, 64, 128, kGroup},
    {64, 256, 128, 64, 256, kGroup},  {128, 64, 128, 64, 64, kGroup},    {64, 128, 128, 64, 128, kGroup},
    {64, 64, 128, 64, 64, kGroup},
};

// What a step of a block takes, in cycles of a multiprocessor.
struct Costs {
  double busy_warps;  // of a multiprocessor, to hide the latency of its instructions
  double issue;       // for an issue slot of its four schedulers
  double l2_bytes;    // that come from L2 in a cycle
  double fixed;       // a step's barrier and its first reads
  double latency;     // from issuing the copies of a step to their arrival
  double launch;      // a second one, in a graph
  double partial;     // the share of partial sums' bytes that comes from memory, not from L2
};
constexpr Costs kCudaCores = {2.5, 0.9, 24, 272, 78, 206, 0.155}, kTensorCores = {1.7, 0.86, 145, 93, 537, 206, 0.155},
                kGroups = {4.23, 1.54, 93, 66, 1080, 527, 0.3};
constexpr double kGroupProducts = 4096;  // a multiprocessor's in a cycle, times the bytes of a factor
constexpr int64_t kMaxThreads = 512;     // of a block whose threads share sums: 128 registers each
constexpr int64_t kMostSums = 64;        // of a thread that multiplies itself
constexpr int64_t kMostPieces = 128;     // sums of a thread in the pieces of its warp
// Bytes of a block's shared memory that the model takes: what every machine from sm_80 on has by request. What is stated
// may have all that the row's machine has.
constexpr int64_t kMostShared = 99 << 10;

int64_t bytes_of(const CudaPlan& p) { return info(p.p_type).bytes; }  // both factors' elements have the same size

int64_t shared_bytes(const CudaPlan& p) {
  const CudaTile& t = p.tile;
  const int64_t bytes = bytes_of(p), sums = (p.k_groups - 1) * t.rows * t.columns * 4;
  const int64_t pad = t.in_groups() ? 0 : 16;
  const int64_t step =
      t.on_tensor_cores() ? (t.rows + t.columns) * (t.depth * bytes + pad) : t.depth * (t.rows + t.columns + 8) * bytes;
  return std::max(p.k_groups * p.stages * step, sums);  // the sums come last, where the tiles were
}

// Issue slots of one step of a block, per multiprocessor of four schedulers: products, reads of shared memory, copies.
double step_cycles(const CudaPlan& p) {
  const CudaTile& t = p.tile;
  const double warps = double(t.threads()) / 32, bytes = double(bytes_of(p));
  if (t.in_groups()) return double(t.rows * t.columns * t.depth) * bytes / kGroupProducts + 20;
  if (t.on_tensor_cores()) {
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
  const Costs& c = t.in_groups() ? kGroups : t.on_tensor_cores() ? kTensorCores : kCudaCores;
  const int64_t blocks = ceil_div(m.rows(), t.rows) * ceil_div(m.columns(), t.columns) * m.batches() * p.splits;
  const int64_t sums = t.tm * t.tn / t.together, registers = p.threads() * (sums + 56);
  const int64_t fit =
      std::max<int64_t>(1, std::min({gpu.registers_per_sm / registers, gpu.shared_per_sm / shared_bytes(p),
                                     gpu.threads_per_sm / p.threads()}));
  const int64_t per_sm = ceil_div(blocks, gpu.multiprocessors), together = std::min(per_sm, fit);
  const double busy = std::min(1.0, double(together * p.threads()) / (32 * c.busy_warps));
  const double groups = double(together * p.k_groups);
  const double work = groups * step_cycles(p) * c.issue / busy;
  const double read = groups * double((t.rows + t.columns) * t.depth * bytes_of(p)) / c.l2_bytes;
  const double step = std::max({work + c.fixed, read, c.latency / double(p.ahead())});
  double cycles = double(ceil_div(per_sm, together) * (p.steps + p.ahead())) * step;
  if (p.k_groups > 1) cycles += double(per_sm * (p.k_groups - 1) * t.rows * t.columns) / 32 + 100;
  if (p.splits > 1) {  // partial sums are written and read again
    const double bytes = 8.0 * double(p.splits * m.batches() * m.rows() * m.columns());
    cycles += c.launch + memory_cycles(gpu, bytes * c.partial);
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

// Do groups of warps multiply these factors? Both must lie along the sum.
bool multiplies_in_groups(const CudaContraction& m, const CudaModel& gpu, const Arithmetic* how) {
  if (!how || how->products > 1) return false;
  const std::string name = group_matrix_instruction(how->p, how->q, kGroupTiles[0].columns);
  if (name.empty() || !has(gpu, name)) return false;
  auto along_k = [&](const Factor& f, const std::vector<Axis>& axes, DType type) {
    TileCopy c;
    c.is_packed = f.packed;
    c.value = f.value;
    c.d = axes;
    c.k = m.k;
    c.d_tile = kGroupTiles[0].columns;
    c.k_tile = kSwizzledRow / info(type).bytes;
    c.type = type;
    return lies_along_k(c);
  };
  return along_k(m.p, m.m, how->p) && along_k(m.q, m.n, how->q);
}

// Tiles of warps and of threads that the model considers.
std::vector<CudaTile> own_tiles(const Arithmetic* how) {
  if (how) return {std::begin(kWarpTiles), std::end(kWarpTiles)};
  return {std::begin(kTiles), std::end(kTiles)};
}

// Others that may be stated.
std::vector<CudaTile> other_tiles(const Arithmetic* how) {
  const std::vector<CudaTile> own = own_tiles(how);
  const std::vector<int64_t> parts = how ? std::vector<int64_t>{16, 32, 64} : std::vector<int64_t>{4, 8};
  std::vector<CudaTile> list;
  auto add = [&](const CudaTile& t) {
    const bool whole = t.rows % t.tm == 0 && t.columns % t.tn == 0;
    if (!whole || t.tm * t.tn > (t.on_tensor_cores() ? kMostPieces * kWarp : kMostSums) || t.threads() < 32 ||
        t.threads() > kMaxThreads)
      return;
    const bool known = std::any_of(own.begin(), own.end(), [&](const CudaTile& o) {
      return o.rows == t.rows && o.columns == t.columns && o.tm == t.tm && o.tn == t.tn && o.depth == t.depth;
    });
    if (!known) list.push_back(t);
  };
  for (const int64_t rows : {16, 32, 64, 128, 256})
    for (const int64_t columns : {32, 64, 128, 256})
      for (const int64_t tm : parts)
        for (const int64_t tn : parts)
          for (const int64_t depth : how ? std::vector<int64_t>{64} : std::vector<int64_t>{8, 16, 32})
            add({rows, columns, depth, tm, tn, how ? int64_t(kWarp) : 1});
  return list;
}

// The candidates of tiles, of the type that is multiplied; `how`: on tensor cores, null: not.
std::vector<CudaPlan> candidates(const CudaContraction& m, const Arithmetic* how, const std::vector<CudaTile>& tiles) {
  std::vector<CudaPlan> list;
  for (const CudaTile& t : tiles) {
    CudaPlan p{.tile = t, .p_type = m.sum, .q_type = m.sum};
    if (how) p.p_type = how->p, p.q_type = how->q, p.products = how->products;
    for (const int64_t bytes_of_depth : {64, 128}) {
      if (bytes_of_depth > 64 && !how) break;
      if (bytes_of_depth != kSwizzledRow && t.in_groups()) continue;
      if (how) p.tile.depth = bytes_of_depth / bytes_of(p);
      for (const int64_t stages : {2, 3, 4, 5, 6}) {
        p.stages = stages;
        if (p.ahead() > 0) list.push_back(p);
      }
    }
  }
  return list;
}

using Choice = Narrowing<CudaPlan>::Candidate;

// Each with all ways to share its sums that fit into more than `least` and at most `most` bytes of shared memory.
std::vector<Choice> with_shares(const CudaContraction& m, const CudaModel& gpu, const ScheduleOptions& o,
                                const std::vector<CudaPlan>& list, int64_t least, int64_t most) {
  std::vector<Choice> choices;
  for (CudaPlan p : list) {
    const int64_t steps = ceil_div(m.depth(), p.tile.depth);
    for (const int64_t k_groups : {1, 2, 4, 8})
      for (const int64_t splits : {1, 2, 3, 4, 6, 8, 12, 16, 24, 32}) {
        const int64_t parts = k_groups * splits;
        if (parts > 1 && (o.strict_fp || steps < 2 * parts || m.batches() * splits > kMaxGridYz)) break;
        p.k_groups = k_groups;
        const int64_t bytes = shared_bytes(p);
        if (bytes > most || (k_groups > 1 && (p.threads() > kMaxThreads || p.tile.in_groups()))) break;
        if (bytes <= least) continue;
        p.splits = splits;
        p.steps = ceil_div(steps, parts);
        choices.push_back({p, estimate(m, gpu, p)});
      }
  }
  return choices;
}

// Those that the model chooses among.
std::vector<Choice> own_choices(const CudaContraction& m, const CudaModel& gpu, const ScheduleOptions& o,
                                const Arithmetic* how) {
  std::vector<Choice> list =
      with_shares(m, gpu, o, candidates(m, how, own_tiles(how)), 0, std::min(kMostShared, gpu.shared_bytes));
  // Swizzled tiles lie on 1024 bytes, which static shared memory does not promise.
  if (multiplies_in_groups(m, gpu, how))
    for (const Choice& c : with_shares(m, gpu, o, candidates(m, how, {std::begin(kGroupTiles), std::end(kGroupTiles)}),
                                       kStaticSharedBytes, gpu.shared_bytes))
      list.push_back(c);
  return list;
}

// Others that may be stated.
std::vector<Choice> other_choices(const CudaContraction& m, const CudaModel& gpu, const ScheduleOptions& o,
                                  const Arithmetic* how) {
  std::vector<Choice> list = with_shares(m, gpu, o, candidates(m, how, own_tiles(how)), kMostShared, gpu.shared_bytes);
  for (const Choice& c : with_shares(m, gpu, o, candidates(m, how, other_tiles(how)), 0, gpu.shared_bytes))
    list.push_back(c);
  for (Choice& c : list) c.is_own = false;
  return list;
}

Choice cheapest(const CudaContraction& m, const CudaModel& gpu, const ScheduleOptions& o, const Arithmetic* how) {
  return Narrowing<CudaPlan>(own_choices(m, gpu, o, how)).best();
}

// The most precise of the ways that takes no longer than the fastest; null: there is none but CUDA cores.
const Arithmetic* choose_arithmetic(const CudaContraction& m, const CudaModel& gpu, const ScheduleOptions& o,
                                    const std::vector<Arithmetic>& ways) {
  if (ways.empty()) return nullptr;
  // Products and copies overlap.
  auto cycles = [&](const Choice& c) { return std::max(c.cost, memory_cycles(gpu, moved_bytes(m, c.plan))); };
  const double fastest = cycles(cheapest(m, gpu, o, &ways[0]));
  const Arithmetic* best = &ways[0];
  for (const Arithmetic& w : ways)
    if (&w != &ways[0] && cycles(cheapest(m, gpu, o, &w)) <= fastest + kUnnoticedCycles) best = &w;
  return best;
}

// Whether and what tensor cores multiply, as numbers.
const Arithmetic* decide_arithmetic(const CudaContraction& m, const CudaModel& gpu, const ScheduleOptions& o,
                                    const std::vector<Arithmetic>& ways, const PlanEntry& plan) {
  const Arithmetic* const own = choose_arithmetic(m, gpu, o, ways);
  const std::string why = "as --precision allows";
  if (!plan.flag("tensor_cores", own != nullptr, own != nullptr, why)) {
    const std::string here = "on CUDA cores";
    plan.number(
        "bits", [&] { return info(m.sum).bits; }, KnobValues::only(info(m.sum).bits, here));
    plan.number(
        "products", [] { return 1; }, KnobValues::only(1, here));
    return nullptr;
  }
  std::vector<Narrowing<const Arithmetic*>::Candidate> list;
  for (const Arithmetic& w : ways) list.push_back({&w, &w == own ? 0.0 : 1.0});
  Narrowing<const Arithmetic*> left(std::move(list));
  left.decide(
      plan, "bits", [](const Arithmetic* w) { return info(w->p).bits; }, why);
  left.decide(
      plan, "products", [](const Arithmetic* w) { return w->products; }, why);
  return left.best().plan;
}

}  // namespace

CudaPlan plan_cuda_contraction(const CudaContraction& m, const CudaModel& gpu, const ScheduleOptions& o,
                               const PlanEntry& plan) {
  const std::vector<Arithmetic> ways = arithmetics(m, gpu, o.precision);
  const Arithmetic* const how = decide_arithmetic(m, gpu, o, ways, plan);
  std::vector<Choice> choices = own_choices(m, gpu, o, how);
  if (plan.listens())
    for (const Choice& c : other_choices(m, gpu, o, how)) choices.push_back(c);
  Narrowing<CudaPlan> left(std::move(choices));
  const std::string why = "what fits registers and shared memory beside the numbers before it";
  if (gpu.has_wgmma && how)
    left.decide(
        plan, "warps", [](const CudaPlan& p) { return p.tile.together / kWarp; },
        "4: products of warp groups, whose factors lie along the sum");
  left.decide(
      plan, "rows", [](const CudaPlan& p) { return p.tile.rows; }, why);
  left.decide(
      plan, "columns", [](const CudaPlan& p) { return p.tile.columns; }, why);
  left.decide(
      plan, how ? "warp_rows" : "thread_rows", [](const CudaPlan& p) { return p.tile.tm; }, why);
  left.decide(
      plan, how ? "warp_columns" : "thread_columns", [](const CudaPlan& p) { return p.tile.tn; }, why);
  left.decide(
      plan, "depth", [](const CudaPlan& p) { return p.tile.depth; }, why);
  left.decide(
      plan, "stages", [](const CudaPlan& p) { return p.stages; }, why);
  left.decide(
      plan, "groups", [](const CudaPlan& p) { return p.k_groups; }, "two steps of the sum for each, and " + why);
  left.decide(
      plan, "splits", [](const CudaPlan& p) { return p.splits; }, "two steps of the sum for each");
  plan.expect(left.best().cost);
  return left.best().plan;
}

}  // namespace tc
