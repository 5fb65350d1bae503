#include "templates/cpu/tile.h"

#include <algorithm>
#include <functional>
#include <vector>

#include "ir/loop/max_lanes.h"
#include "templates/points.h"

namespace tc {
namespace {

int vectors_of(const CpuModel& cpu, int columns) { return std::max(1, columns / cpu.vector_lanes); }

// Rows that lie a multiple of 4096 bytes apart fall into one set of the first-level cache.
int most_rows(const CpuModel& cpu, int64_t stride) { return stride % 4096 == 0 ? std::min(cpu.l1_ways, 10) : 14; }

// What a tile costs on a processor.
struct TileCost {
  const CpuModel& cpu;
  std::function<bool(int rows, int columns)> fits;      // into the registers
  std::function<double(int rows, int columns)> cycles;  // of a step of the sum
};

TileCost cost_of_floats(const CpuModel& cpu) {
  return {cpu, [&](int rows, int columns) { return fits_registers(cpu, rows, columns); },
          [&](int rows, int columns) { return cycles_per_step(cpu, rows, columns); }};
}

// `row_sums`: see choose_byte_tile().
TileCost cost_of_bytes(const CpuModel& cpu, bool row_sums) {
  const int pairs = cpu.byte_dot ? 1 : 2, more = row_sums ? 1 : 0;
  auto fits = [&cpu, pairs, more](int rows, int columns) {
    const int nv = vectors_of(cpu, columns);
    return rows * (nv + more) + pairs * nv + 2 * pairs - 1 <= cpu.vector_registers;
  };
  // In pairs: two multiplications and two additions for each vector of sums, three shifts for each of the panel, two
  // for a quad of the left operand.
  auto cycles = [&cpu](int rows, int columns) {
    if (cpu.byte_dot) return cycles_per_step(cpu, rows, columns);
    const double nv = vectors_of(cpu, columns);
    return std::max((rows * nv * 4 + nv * 3 + rows * 3) / (1 + cpu.fma_per_cycle), 2.0 * cpu.fma_latency);
  };
  return {cpu, fits, cycles};
}

// Of all tiles of an m x n result, in cycles a step of the sum.
double cost_of(int64_t m, int64_t n, int rows, int columns, const TileCost& t) {
  const double panels = double(ceil_div(n, columns));
  const double whole = double(m / rows), tiles = double(ceil_div(m, rows));
  double cost = whole * t.cycles(rows, columns);
  if (m % rows != 0) cost += t.cycles(int(m % rows), columns);
  cost = panels * (cost + 0.5 * tiles);                                    // half a cycle of loop control
  return cost * (1 + 0.002 * vectors_of(t.cpu, columns) - 0.0005 * rows);  // of equals, the taller one
}

Tile choose(int64_t m, int64_t n, int most, const TileCost& t) {
  Tile best;
  double least = 0;
  for (int columns = 96; columns >= 16; columns -= 16) {
    for (int rows = 1; rows <= most; rows++) {
      if (!t.fits(rows, columns)) continue;
      const double cost = cost_of(m, n, rows, columns, t);
      if (least == 0 || cost < least) {
        least = cost;
        best = {rows, columns};
      }
    }
  }
  return best;
}

// On each processor a strip is so many vectors of that processor wide, and every panel is computed in full.
double cost_in_strips(int64_t m, int64_t n, int rows, int vectors, const TileCost& t) {
  return cost_of(m, round_up(n, vectors * kMaxLanes), rows, vectors * t.cpu.vector_lanes, t);
}

Tile choose_strips(int64_t m, int64_t n, int most, const TileCost& narrow, const TileCost& wide) {
  struct Choice {
    int rows, vectors;
    double on_narrow, on_wide;
  };
  std::vector<Choice> choices;
  double least_narrow = 0, least_wide = 0;
  for (int vectors = 1; vectors <= kMostVectors; vectors++)
    for (int rows = 1; rows <= most; rows++) {
      if (!narrow.fits(rows, vectors * narrow.cpu.vector_lanes)) continue;
      const Choice c{rows, vectors, cost_in_strips(m, n, rows, vectors, narrow),
                     cost_in_strips(m, n, rows, vectors, wide)};
      if (choices.empty() || c.on_narrow < least_narrow) least_narrow = c.on_narrow;
      if (choices.empty() || c.on_wide < least_wide) least_wide = c.on_wide;
      choices.push_back(c);
    }
  Tile best;
  double least = 0;
  for (const Choice& c : choices) {
    const double cost = c.on_narrow / least_narrow + c.on_wide / least_wide;
    if (least != 0 && cost >= least) continue;
    least = cost;
    best = {c.rows, c.vectors * int(kMaxLanes), c.vectors};
  }
  return best;
}

// What the other variant of a text with products of bytes is compiled for has an instruction for them.
CpuModel with_byte_dot(CpuModel cpu) {
  cpu.byte_dot = true;
  return cpu;
}

}  // namespace

bool fits_registers(const CpuModel& cpu, int rows, int columns) {
  const int nv = vectors_of(cpu, columns);
  return rows * nv + nv + 1 <= cpu.vector_registers;
}

double cycles_per_step(const CpuModel& cpu, int rows, int columns) {
  const double nv = vectors_of(cpu, columns);
  return std::max({rows * nv / cpu.fma_per_cycle, nv / cpu.loads_per_cycle + rows * 0.5, double(cpu.fma_latency)});
}

Tile choose_tile(const CpuModel& cpu, int64_t m, int64_t n, int64_t stride) {
  return choose(m, n, most_rows(cpu, stride * 4), cost_of_floats(cpu));
}

Tile choose_byte_tile(const CpuModel& cpu, int64_t m, int64_t n, int64_t stride, bool row_sums) {
  return choose(m, n, most_rows(cpu, stride), cost_of_bytes(cpu, row_sums));
}

Tile choose_strip_tile(const CpuModel& cpu, int64_t m, int64_t n, int64_t stride) {
  const CpuModel& best = *find_cpu(cpu.best_variant);
  return choose_strips(m, n, most_rows(cpu, stride * 4), cost_of_floats(cpu), cost_of_floats(best));
}

Tile choose_byte_strip_tile(const CpuModel& cpu, int64_t m, int64_t n, int64_t stride, bool row_sums) {
  const CpuModel best = with_byte_dot(*find_cpu(cpu.best_variant));
  return choose_strips(m, n, most_rows(cpu, stride), cost_of_bytes(cpu, row_sums), cost_of_bytes(best, row_sums));
}

Tile choose_strips_of_panel(const CpuModel& cpu, int64_t m, int columns, const PanelNumbers& numbers) {
  const TileCost t = numbers.bytes ? cost_of_bytes(cpu, numbers.row_sums) : cost_of_floats(cpu);
  const int most = most_rows(cpu, numbers.stride * (numbers.bytes ? 1 : 4));
  Tile best{1, columns, 1};
  double least = 0;
  for (int vectors = int(kMostVectors); vectors >= 1; vectors--) {
    if (columns % (vectors * kMaxLanes) != 0) continue;
    for (int rows = 1; rows <= most; rows++) {
      if (!t.fits(rows, vectors * numbers.vl)) continue;
      const double cost = cost_of(m, columns, rows, vectors * numbers.vl, t);
      if (least != 0 && cost >= least) continue;
      least = cost;
      best = {rows, columns, vectors};
    }
  }
  return best;
}

double tile_cycles(const CpuModel& cpu, int64_t m, int64_t n, Tile tile) {
  // A strip is what is in registers at a time, and so many of them are as wide as the panel.
  if (tile.vectors > 0) {
    n = round_up(n, tile.columns);
    tile.columns = tile.vectors * cpu.vector_lanes;
  }
  const double cost = cost_of(m, n, tile.rows, tile.columns, cost_of_floats(cpu));
  return fits_registers(cpu, tile.rows, tile.columns) ? cost : 3 * cost;  // sums are stored and loaded in every step
}

bool decide_parallel(const PlanEntry& plan, bool pays, int64_t chunks, int64_t runs) {
  return plan.number(
             "parallel", [&] { return pays ? 1 : 0; },
             chunks > 1 || runs > 1 ? KnobValues::flag(true) : KnobValues::only(pays ? 1 : 0, "there is one chunk")) ==
         1;
}

int64_t decide_row_blocks(const PlanEntry& plan, bool cuts, int64_t chunks, int64_t runs, int64_t wanted) {
  // A single chunk is shared by being cut.
  const int64_t most = cuts ? std::clamp<int64_t>(runs, 1, kMostRowBlocks) : 1,
                least = cuts && chunks == 1 ? std::min<int64_t>(2, most) : 1;
  return plan.in_range(
      "row_blocks", [&] { return cuts ? std::max(choose_row_blocks(chunks, runs), wanted) : 1; }, least, most);
}

int64_t choose_row_blocks(int64_t chunks, int64_t runs) {
  if (chunks >= 16 || (chunks >= 8 && chunks % 2 == 0)) return 1;
  int64_t best = 1;
  for (int64_t b = 1; b <= std::min<int64_t>(runs, 16); b++) {
    if (runs % b != 0 && runs < 4 * b) continue;  // uneven shares
    best = b;
    if (chunks * b >= 8 && chunks * b % 2 == 0) break;
  }
  return best;
}

}  // namespace tc
