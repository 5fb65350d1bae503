#include "templates/cpu/tile.h"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "templates/points.h"

namespace tc::tile_test {
namespace {

Tile on(const char* cpu, int64_t m, int64_t n, int64_t stride) { return choose_tile(*find_cpu(cpu), m, n, stride); }

TEST(Tile, FitsTheRegisters) {
  for (const CpuModel& cpu : cpu_models())
    for (const int64_t m : {1, 7, 14, 49, 196, 3136})
      for (const int64_t n : {16, 24, 64, 256, 1000}) {
        const Tile t = choose_tile(cpu, m, n, 1024);
        EXPECT_TRUE(fits_registers(cpu, t.rows, t.columns)) << cpu.name << " " << m << " " << n;
        EXPECT_LE(t.rows, 10);  // rows that share a set of the cache
      }
}

// The choices below are held against measurements of every legal tile (MR x NR, 512-bit vectors) on both processors.

struct Product {
  int64_t m, n, k;
};

TEST(Tile, OnBothZensFourteenRowsAreFastestForLargeProducts) {
  for (const char* cpu : {"znver4", "znver5"})
    for (const auto& [m, n, k] :
         std::vector<Product>{{3136, 64, 64}, {784, 128, 512}, {196, 1024, 256}, {49, 2048, 512}}) {
      EXPECT_EQ(on(cpu, m, n, k).rows, 14) << cpu << " " << n;
      EXPECT_EQ(on(cpu, m, n, k).columns, 32) << cpu << " " << n;
    }
}

// Rows that lie a multiple of 4096 bytes apart: 14 of them lose 25 % on Zen 4, whose first-level cache has 8 ways, and
// 8 % on Zen 5 with 12 ways; at most 8 and 10 lose nothing.
TEST(Tile, RowsOfOneCacheSetAreFew) {
  for (const int64_t stride : {1024, 2048, 3072})
    for (const int64_t m : {49, 128, 196}) {
      EXPECT_LE(on("znver4", m, 768, stride).rows, 8) << m << " " << stride;
      EXPECT_LE(on("znver5", m, 768, stride).rows, 10) << m << " " << stride;
    }
  EXPECT_EQ(on("znver5", 49, 512, 2048).rows, 10);
  EXPECT_EQ(on("znver5", 49, 512, 2048).columns, 32);
}

// 144 = 3 * 48: no lane computes what is thrown away.
TEST(Tile, ColumnsDivideTheResult) {
  for (const char* cpu : {"znver4", "znver5"}) EXPECT_EQ(on(cpu, 3136, 144, 24).columns, 48) << cpu;
}

// A k step of 8 x 48 waits for 24 multiply-adds: one 512-bit pipe on Zen 4, two on Zen 5. 1 x 16 waits for the latency.
TEST(Tile, StepsCostWhatThePortsAllow) {
  EXPECT_EQ(cycles_per_step(*find_cpu("znver4"), 8, 48), 24);
  EXPECT_EQ(cycles_per_step(*find_cpu("znver5"), 8, 48), 12);
  EXPECT_EQ(cycles_per_step(*find_cpu("znver5"), 1, 16), 4);
}

// One text for 16 registers of 8 lanes and 32 of 16: sums fill the registers of the first, and no step of the second waits
// for latency, as one vector of 6 rows would.
TEST(Tile, StripsSuitSeveralProcessors) {
  const CpuModel& narrow = any_cpu();
  const CpuModel& wide = *find_cpu(narrow.best_variant);
  for (const auto& [m, n] :
       std::vector<std::pair<int64_t, int64_t>>{{3136, 64}, {784, 128}, {128, 768}, {49, 2048}, {3136, 144}}) {
    const Tile t = choose_strip_tile(narrow, m, n, 500);
    EXPECT_EQ(t.columns, 16 * t.vectors);
    EXPECT_TRUE(fits_registers(narrow, t.rows, t.vectors * narrow.vector_lanes)) << m << " " << n;
    EXPECT_GE(t.rows * t.vectors, 10) << m << " " << n;
    EXPECT_LE(cycles_per_step(wide, t.rows, t.vectors * wide.vector_lanes), 0.55 * t.rows * t.vectors) << m << " " << n;
    EXPECT_EQ(round_up(n, t.columns), n) << m << ": lanes compute what is thrown away";
  }
}

// Panels of a processor with 32 registers of 16 lanes, walked by one with 16 of 8: its registers are full, and strips have no rest.
TEST(Tile, StripsOfGivenPanels) {
  const CpuModel& narrow = *find_cpu("x86-64-v3");
  for (const int columns : {16, 32, 48, 64, 80, 96})
    for (const int64_t m : {3136, 784, 49}) {
      const Tile t = choose_strips_of_panel(narrow, m, columns, {.stride = 500});
      EXPECT_EQ(t.columns, columns);
      EXPECT_EQ(columns % (16 * t.vectors), 0) << columns;
      EXPECT_TRUE(fits_registers(narrow, t.rows, t.vectors * 8)) << columns;
      EXPECT_GE(t.rows * t.vectors, 10) << columns << " " << m;
    }
  // A vector of doubles takes two registers.
  const Tile doubles = choose_strips_of_panel(with_lanes_of(narrow, DType::F64), 784, 48, {.stride = 500});
  EXPECT_LE(doubles.rows * 2 * doubles.vectors + 2 * doubles.vectors + 1, 16);
}

// A panel that is wider than the result costs what it computes for nothing.
TEST(Tile, StripsOfNarrowResults) {
  EXPECT_EQ(choose_strip_tile(any_cpu(), 3136, 16, 500).vectors, 1);
  EXPECT_EQ(choose_strip_tile(any_cpu(), 3136, 32, 500).vectors, 2);
}

TEST(Tile, StripsOfBytes) {
  for (const bool row_sums : {false, true})
    for (const auto& [m, n] : std::vector<std::pair<int64_t, int64_t>>{{3136, 64}, {49, 2048}, {1, 16}}) {
      const Tile t = choose_byte_strip_tile(any_cpu(), m, n, 500, row_sums);
      // As pairs of 16 bits, a vector of the panel and a quad of the left operand take two registers.
      EXPECT_LE(t.rows * (t.vectors + (row_sums ? 1 : 0)) + 2 * t.vectors + 3, 16) << m << " " << n;
      EXPECT_EQ(t.columns, 16 * t.vectors);
    }
}

}  // namespace
}  // namespace tc::tile_test
