// The numbers of a sum of products: the tile in registers, the panels that follow from it, and how rows and panels are shared.
#include <algorithm>

#include "templates/cpu/contraction.h"
#include "templates/cpu/lanes.h"
#include "templates/cpu/row_blocks.h"

namespace tc {
namespace {

constexpr int64_t kPrefetchBytes = 100 << 10;          // smaller weights stay in the second-level cache
constexpr int64_t kMostRows = 32, kMostColumns = 256;  // of a tile that is stated

// Are the packed panels in the order of the chunks that read them?
bool has_panel_of_each_chunk(const Contraction& m) {
  return m.outer.size() == m.q_outer.size() && std::equal(m.outer.begin(), m.outer.end(), m.q_outer.begin(),
                                                          [](const Axis& a, const Axis& b) { return a.var == b.var; });
}

int64_t tiled_rows(const Contraction& m) { return m.rows.empty() ? 1 : m.rows.back().extent.value; }

// The columns of panels that another processor's schedule has chosen; 0: they are chosen here.
int64_t given_columns(const Contraction& m, const ScheduleOptions& o, const PlanEntry& plan) {
  if (!o.wide_panels || m.right != Contraction::Right::Packed) return 0;
  return std::min(plan.stated("columns").value_or(o.panel_columns), kMostColumns);
}

// Text for several processors, and panels of another's: they are walked in strips.
bool walks_strips(const Contraction& m, const CpuModel& cpu, int64_t given) {
  return (!cpu.best_variant.empty() || given > 0) && !m.rows.empty();
}

Tile best_tile(const Contraction& m, const CpuModel& cpu, const ScheduleOptions& o, int64_t given) {
  const int64_t n = m.n.extent.value, tiled = tiled_rows(m);
  const bool in_strips = walks_strips(m, cpu, given);
  Tile tile{1, std::max(16, 4 * cpu.vector_lanes)};
  if (!m.rows.empty()) {
    const int64_t stride = m.p_at.of(m.rows.back().var) * (m.type == DType::F64 ? 2 : 1);
    if (given > 0)
      tile = choose_strips_of_panel(
          cpu, tiled, int(given), {stride, cpu.vector_lanes * (m.type == DType::F64 ? 2 : 1), m.bytes, bool(m.q_zero)});
    else if (m.bytes)
      tile = (in_strips ? choose_byte_strip_tile : choose_byte_tile)(cpu, tiled, n, stride, bool(m.q_zero));
    else
      tile = (in_strips ? choose_strip_tile : choose_tile)(cpu, tiled, n, stride);
  }
  if (o.panel_columns > 0) tile.columns = int(std::min(o.panel_columns, kMostColumns));
  if (tile.vectors > 0 && tile.columns % (tile.vectors * kMaxLanes) != 0) tile.vectors = 1;
  return tile;
}

constexpr int64_t kTileColumns = 16, kMostTileColumns = 32;  // of products of tiles of bytes

// Tiles of bytes, if the processor has them and panels are nobody else's; false: vectors.
bool decide_byte_tiles(ContractionPlan& p, const Contraction& m, const CpuModel& cpu, const ScheduleOptions& o,
                       const PlanEntry& plan) {
  const int64_t given = o.panel_columns;
  const bool suit = given == 0 || given == kTileColumns || given == kMostTileColumns;
  const int64_t step = cpu.best_variant.empty() && !o.wide_panels && suit ? tile_step(m, cpu) : 0,
                tiled = tiled_rows(m), fitting = m.n.extent.value <= kTileColumns ? kTileColumns : kMostTileColumns;
  if (step == 0 || plan.number(
                       "byte_tiles", [] { return 1; }, KnobValues::flag(true)) == 0)
    return false;
  p.tile_step = step;
  p.row_pairs = has_row_pairs(m);
  if (p.row_pairs)
    p.tile.rows = int(tiled);
  else
    p.tile.rows = int(plan.in_range(
        "rows", [&] { return choose_tile_rows(tiled, points(m.k) / step); }, 1, std::min(tiled, kMostRows)));
  p.tile.columns = int(plan.packing(
      "columns", [&] { return given > 0 ? given : fitting; },
      KnobValues::range(kTileColumns, kMostTileColumns, kTileColumns)));
  p.panels = ceil_div(m.n.extent.value, p.tile.columns);
  return true;
}

// The tile in registers, and the panels that follow from it.
ContractionPlan decide_tile(const Contraction& m, const CpuModel& model, const ScheduleOptions& o,
                            const PlanEntry& plan) {
  const CpuModel cpu = with_lanes_of(model, m.type);
  ContractionPlan p;
  if (decide_byte_tiles(p, m, cpu, o, plan)) return p;
  const int64_t given = given_columns(m, o, plan);
  const Tile tile = best_tile(m, cpu, o, given);
  const int64_t tiled = tiled_rows(m);
  p.tile.rows = int(plan.in_range(
      "rows", [&] { return std::min<int64_t>(tile.rows, tiled); }, 1, std::min<int64_t>(tiled, kMostRows)));
  if (walks_strips(m, cpu, given))
    p.tile.vectors = int(plan.in_range(
        "vectors", [&] { return tile.vectors; }, 1, kMostVectors));
  const int64_t strip = kMaxLanes * std::max(p.tile.vectors, 1);
  p.tile.columns = int(plan.packing(
      "columns", [&] { return round_up(tile.columns, strip); },
      KnobValues::range(strip, kMostColumns / strip * strip, strip)));
  const bool splits_sum = m.rows.empty() && !m.bytes && !o.strict_fp && m.k.size() == 1 && m.k[0].extent.value >= 8;
  // A wide panel has sums enough to hide the latency of an addition, and fills the registers.
  const bool fills = given > 0 && 2 * given > cpu.vector_lanes * (cpu.vector_registers - 2);
  p.unroll_k = plan.in_range(
      "partial_sums", [&] { return splits_sum && !fills ? 2 : 1; }, 1, splits_sum ? 8 : 1);
  p.panels = ceil_div(m.n.extent.value, p.tile.columns);
  p.fetch_ahead = o.fetch_ahead && m.type == DType::F32 && m.right == Contraction::Right::Packed;
  return p;
}

}  // namespace

ContractionPlan plan_part(const Contraction& m, const CpuModel& model, const ScheduleOptions& o) {
  return decide_tile(m, model, o, PlanEntry(o.planner, "tile"));
}

ContractionPlan plan_contraction(const Contraction& matched, const CpuModel& model, const ScheduleOptions& o) {
  const CpuModel cpu = with_lanes_of(model, matched.type);
  const PlanEntry plan(o.planner, "tile");
  ContractionPlan p = decide_tile(matched, model, o, plan);
  const RowBlocks blocks = choose_cache_blocks(matched, cpu, p.panels, p.tile.rows);
  p.panels_inside = blocks.panels_inside;
  p.images_outside = blocks.images_outside;
  const Contraction m = p.images_outside ? with_images_outside(matched) : matched;
  const int64_t n = m.n.extent.value, tiled = tiled_rows(m);
  const int64_t work = points(m.outer) * points(m.rows) * p.panels * p.tile.columns * points(m.k);
  const bool pairs_outside = p.row_pairs && m.rows.size() == 2;
  const int64_t runs = m.rows.size() > 1 ? m.rows[0].extent.value / (pairs_outside ? 2 : 1) : tiled / p.tile.rows;
  const bool may_cut = !m.rows.empty() && m.right != Contraction::Right::Repacked;
  const int64_t chunks = points(m.outer) * p.panels;
  p.parallel = decide_parallel(plan, work >= kParallelThreshold, chunks, may_cut ? runs : 1);
  if (p.panels_inside)
    p.row_blocks = plan.in_range(
        "row_blocks", [&] { return std::clamp<int64_t>(blocks.count, 1, std::max<int64_t>(runs, 1)); }, 1,
        std::clamp<int64_t>(runs, 1, kMostRowBlocks));
  else
    p.row_blocks = decide_row_blocks(plan, p.parallel && may_cut, chunks, runs);
  const int64_t tiles = (m.rows.size() > 1 ? points(m.rows) / tiled : 1) * ceil_div(tiled, p.tile.rows) / p.row_blocks;
  const bool can_fetch = p.fetch_ahead && !p.panels_inside && has_panel_of_each_chunk(m) && !m.rows.empty() &&
                         chunks > 1 && !has_ranges_of_tiles(m);
  // Where one tile has all rows of a panel, there is no work during which the next one could come.
  const bool pays = points(m.k) * chunks * p.tile.columns * 4 >= kPrefetchBytes && tiles >= 2;
  p.prefetch = plan.in_range(
      "prefetch", [&] { return can_fetch && pays ? p.tile.columns / tiles : 0; }, 0, can_fetch ? p.tile.columns : 0);
  if (!m.bytes)
    plan.expect(tile_cycles(cpu, tiled, n, p.tile) * double(points(m.k)) * double(points(m.rows)) / double(tiled) *
                double(points(m.outer)));
  return p;
}

}  // namespace tc
