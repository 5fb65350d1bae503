// Register tiles of sums of products, chosen in closed form from a CPU's row.
#pragma once
#include <cstdint>

#include "passes/schedule/planner.h"
#include "templates/cpu/cpu_model.h"

namespace tc {

inline constexpr int64_t kMostVectors = 4;  // of a strip

struct Tile {
  int rows = 1;      // MR
  int columns = 16;  // NR, floats: a multiple of 16, so that every vector length divides it
  /// Of a strip: text for several vector lengths walks the panel in strips of so many vectors, whatever their length is, so that
  /// rows * vectors sums fill the registers of each. 0: the panel is one strip.
  int vectors = 0;
};

/// Vectors of accumulators, one row of the panel and one broadcast must fit: rows * nv + nv + 1 <= registers.
bool fits_registers(const CpuModel& cpu, int rows, int columns);

/// Cycles of one k step of a tile: FMA ports, load ports (a panel vector each, half a port per broadcast), latency.
double cycles_per_step(const CpuModel& cpu, int rows, int columns);

/// The cheapest tile for an m x n result whose rows of the left operand lie `stride` floats apart. Every row run of m
/// is cut into full tiles and one smaller tail; every panel is computed in full.
Tile choose_tile(const CpuModel& cpu, int64_t m, int64_t n, int64_t stride);
/// For a text that is compiled for another processor as well (cpu.best_variant): the tile, in strips, that is least far from the
/// best on both.
Tile choose_strip_tile(const CpuModel& cpu, int64_t m, int64_t n, int64_t stride);
Tile choose_byte_strip_tile(const CpuModel& cpu, int64_t m, int64_t n, int64_t stride, bool row_sums);
/// The best strips of panels of so many columns, a multiple of 16, of such numbers.
struct PanelNumbers {
  int64_t stride = 0;  // of the left operand, in units of choose_tile() or choose_byte_tile()
  int vl = 8;          // numbers of a vector, which may fill two registers
  bool bytes = false, row_sums = false;
};
Tile choose_strips_of_panel(const CpuModel& cpu, int64_t m, int columns, const PanelNumbers& numbers);
/// choose_tile() for sums of bytes, four products a step (dot4); `stride` in bytes. Where the processor has no instruction
/// for it, every vector of the panel and every quad of the left operand take two registers each, as pairs of 16 bits.
/// `row_sums`: every row has one sum more.
Tile choose_byte_tile(const CpuModel& cpu, int64_t m, int64_t n, int64_t stride, bool row_sums);

/// What choose_tile expects a tile to cost, in cycles a step of the sum; more where it does not fit the registers.
double tile_cycles(const CpuModel& cpu, int64_t m, int64_t n, Tile tile);

/// Whether threads share `chunks` chunks, each of which may be cut into `runs` runs, as the number "parallel" of a plan.
bool decide_parallel(const PlanEntry& plan, bool pays, int64_t chunks, int64_t runs);
inline constexpr int64_t kMostRowBlocks = 65'536;  // times any number of rows they are numbers of 64 bits
/// Into how many blocks each chunk is cut, if `cuts`, as its number "row_blocks"; the model wants `wanted` at least.
int64_t decide_row_blocks(const PlanEntry& plan, bool cuts, int64_t chunks, int64_t runs, int64_t wanted = 1);

/// Into how many blocks a chunk of `runs` equal runs is cut, so that two threads, and more, get equal shares of
/// chunks * blocks pieces; 1 where there are chunks enough.
int64_t choose_row_blocks(int64_t chunks, int64_t runs);

}  // namespace tc
