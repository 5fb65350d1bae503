#include "templates/cpu/tile.h"

#include <gtest/gtest.h>

#include <vector>

namespace tc {
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

}  // namespace
}  // namespace tc
