#include "passes/program/plan_memory.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "ir/test_random.h"

namespace tc::plan_memory_test {
namespace {

Slot slot(int64_t bytes, int first, int last, int alias_of = -1) {
  Slot s;
  s.bytes = bytes, s.first = first, s.last = last, s.alias_of = alias_of;
  return s;
}

Program planned(std::vector<Slot> slots) {
  Program p;
  p.align = 64;
  p.slots = std::move(slots);
  plan_memory(p);
  return p;
}

// Tensors that live at the same time stand apart, on whole alignments and inside of the arena.
void expect_valid(const Program& p) {
  for (size_t i = 0; i < p.slots.size(); i++) {
    const Slot& a = p.slots[i];
    ASSERT_GE(a.offset, 0);
    ASSERT_EQ(a.offset % p.align, 0);
    ASSERT_LE(a.offset + a.bytes, p.arena_bytes);
    for (size_t j = 0; j < i; j++) {
      const Slot& b = p.slots[j];
      if (a.alias_of >= 0 || b.alias_of >= 0 || a.first > b.last || b.first > a.last) continue;
      ASSERT_TRUE(a.offset + a.bytes <= b.offset || b.offset + b.bytes <= a.offset) << i << " " << j;
    }
  }
}

TEST(PlanMemory, AChainNeedsItsTwoLargestNeighbours) {
  const Program p = planned({slot(100, 0, 1), slot(1000, 1, 2), slot(500, 2, 3), slot(100, 3, 4)});
  expect_valid(p);
  EXPECT_EQ(p.arena_bytes, 1024 + 512);
  EXPECT_EQ(p.lower_bound_bytes, 1024 + 512);
  EXPECT_EQ(p.naive_bytes, 128 + 1024 + 512 + 128);
}

// The root lives as long as what replaces it.
TEST(PlanMemory, AliasesShareTheirRootsMemory) {
  const Program p = planned({slot(256, 0, 1), slot(256, 1, 3, 0), slot(256, 2, 3)});
  EXPECT_EQ(p.slots[1].offset, p.slots[0].offset);
  EXPECT_NE(p.slots[2].offset, p.slots[0].offset);
  EXPECT_EQ(p.arena_bytes, 512);
}

// Parts lie inside of their root, which lives as long as they do.
TEST(PlanMemory, PartsLieInsideOfTheirRoot) {
  std::vector<Slot> slots = {slot(512, 4, 5), slot(256, 1, 4, 0), slot(256, 2, 4, 0), slot(512, 2, 3)};
  slots[1].within = 0, slots[2].within = 256;
  const Program p = planned(slots);
  EXPECT_EQ(p.slots[2].offset, p.slots[0].offset + 256);
  EXPECT_EQ(p.arena_bytes, 1024);
  EXPECT_EQ(p.naive_bytes, 1024);
}

// Scratch memory of a call may be where tensors lie that do not live during the call.
TEST(PlanMemory, ScratchLiesInDeadTensors) {
  Program p;
  p.slots = {slot(1000, 0, 1), slot(1000, 1, 2), slot(64, 2, 3)};
  plan_memory(p, {{3, 900}, {2, 64}});
  EXPECT_EQ(p.scratch_bytes, 900);
  EXPECT_EQ(p.lower_bound_bytes, 2048);
  EXPECT_LE(std::max(p.arena_bytes, p.scratch_offset + p.scratch_bytes), 2048 + 64);
  for (const Slot& s : p.slots) {
    const int64_t need = s.last >= 3 ? 900 : s.last >= 2 ? 64 : 0;
    EXPECT_TRUE(p.scratch_offset + need <= s.offset || s.offset + s.bytes <= p.scratch_offset || need == 0);
  }
}

TEST(PlanMemory, RandomLivesDoNotMeetInShortAndLongGraphs) {
  testing::Dice d(1);
  for (const int64_t count : {60, 4100}) {  // the longer one is planned in order of time
    std::vector<Slot> slots;
    for (int64_t i = 0; i < count; i++) slots.push_back(slot(d.below(5000), int(i), int(i + d.below(12))));
    const Program p = planned(slots);
    expect_valid(p);
    EXPECT_LE(p.arena_bytes, 2 * p.lower_bound_bytes);
  }
}

}  // namespace
}  // namespace tc::plan_memory_test
