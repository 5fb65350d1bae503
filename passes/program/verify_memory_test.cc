// Plans of memory that the steps contradict.
#include "passes/program/verify_memory.h"

#include <gtest/gtest.h>

#include "ir/loop/build.h"
#include "passes/program/test_program.h"

namespace tc::verify_memory_test {
namespace {

Operand slot(int k) { return {Operand::Kind::Slot, k}; }
Step copy(Operand from, Operand to, CopyStep::Part part = CopyStep::Part::None) {
  CopyStep c;
  c.from = from, c.to = to, c.part = part;
  return {c};
}
const Operand kInput = {Operand::Kind::Input, 0}, kOutput = {Operand::Kind::Output, 0};

// Slots of 64 bytes at these offsets.
Program program(const std::vector<int64_t>& offsets, std::vector<Step> steps) {
  Program p;
  for (const int64_t at : offsets) {
    Slot s;
    s.bytes = 64, s.offset = at;
    p.slots.push_back(std::move(s));
  }
  p.steps = std::move(steps);
  return p;
}
bool is_right(const Program& p) {
  try {
    verify_memory(p);
    return true;
  } catch (const InternalError&) {
    return false;
  }
}

TEST(VerifyMemory, ATensorIsAliveUntilItsLastReader) {
  const std::vector<Step> steps = {copy(kInput, slot(0)), copy(slot(0), slot(1)), copy(slot(1), kOutput)};
  EXPECT_TRUE(is_right(program({0, 64}, steps)));
  EXPECT_FALSE(is_right(program({0, 0}, steps))) << "the copy writes what it reads";
  EXPECT_FALSE(is_right(program({0, 32}, steps))) << "half of it";
  const std::vector<Step> apart = {copy(kInput, slot(0)), copy(slot(0), kOutput), copy(kInput, slot(1)),
                                   copy(slot(1), kOutput)};
  EXPECT_TRUE(is_right(program({0, 0}, apart))) << "one after the other";
  std::vector<Step> again = apart;
  again.push_back(copy(slot(0), kOutput));
  EXPECT_FALSE(is_right(program({0, 0}, again)));
}

// A tensor without elements has a place, which may be inside of another one's.
TEST(VerifyMemory, WhatHasNoBytesIsNotWrittenOver) {
  const std::vector<Step> steps = {copy(kInput, slot(0)), copy(kInput, slot(1)), copy(slot(0), kOutput),
                                   copy(slot(1), kOutput)};
  Program p = program({0, 32}, steps);
  EXPECT_FALSE(is_right(p));
  p.slots[1].bytes = 0;
  EXPECT_TRUE(is_right(p));
  std::swap(p.slots[0].bytes, p.slots[1].bytes);
  std::swap(p.slots[0].offset, p.slots[1].offset);
  EXPECT_TRUE(is_right(p));
}

TEST(VerifyMemory, WhatReplacesAnotherIsTheSame) {
  Program p = program({0, 0}, {copy(kInput, slot(0)), copy(slot(0), slot(1)), copy(slot(1), kOutput)});
  p.slots[1].alias_of = 0;
  EXPECT_TRUE(is_right(p));
  p.steps.push_back(copy(slot(0), kOutput));
  EXPECT_FALSE(is_right(p)) << "what has been replaced is read";
}

TEST(VerifyMemory, PartsAreThereWithTheWhole) {
  Program p = program({0, 0, 0},
                      {copy(kInput, slot(2)), copy(slot(2), kOutput), copy(kInput, slot(0)), copy(slot(1), kOutput)});
  p.slots[1].alias_of = 0, p.slots[1].within = 16, p.slots[1].offset = 16, p.slots[1].bytes = 16;
  EXPECT_TRUE(is_right(p)) << "what lay there before is read no more";
  p.steps.insert(p.steps.end() - 1, {copy(kInput, slot(2)), copy(slot(2), kOutput)});
  EXPECT_FALSE(is_right(p));
  // Made of parts, and read as a whole.
  Program whole = program({0, 0, 32, 0}, {copy(kInput, slot(3)), copy(slot(3), kOutput), copy(kInput, slot(1)),
                                          copy(kInput, slot(2)), copy(slot(0), kOutput)});
  for (const size_t k : {size_t(1), size_t(2)})
    whole.slots[k].alias_of = 0, whole.slots[k].within = int64_t(k - 1) * 32, whole.slots[k].bytes = 32;
  EXPECT_TRUE(is_right(whole));
  whole.steps.insert(whole.steps.end() - 1, {copy(kInput, slot(3)), copy(slot(3), kOutput)});
  EXPECT_FALSE(is_right(whole));
}

// s is the state, q a step in its memory, t the next state.
TEST(VerifyMemory, AStateIsReplacedBehindItsLastReader) {
  LoopStep loop;
  const auto of = [&](std::vector<Step> body) {
    loop.body = std::move(body);
    Program p = program({0, 0, 64}, {copy(kInput, slot(0)), {loop}, copy(slot(0), kOutput)});
    p.slots[1].alias_of = 0;
    return is_right(p);
  };
  EXPECT_TRUE(of({copy(slot(0), slot(1)), copy(slot(1), kOutput)})) << "the step is the next state";
  EXPECT_TRUE(of({copy(slot(0), slot(1)), copy(slot(1), slot(2)), copy(slot(1), kOutput), copy(slot(2), slot(0))}));
  EXPECT_FALSE(of({copy(slot(0), slot(1)), copy(slot(1), slot(2)), copy(slot(2), slot(0)), copy(slot(1), kOutput)}))
      << "the next state gets there too early";
}

TEST(VerifyMemory, AStateIsAliveBehindTheLastStep) {
  Program p = program({0, 0}, {copy(slot(0), kOutput), copy(kInput, slot(1)), copy(slot(1), kOutput)});
  EXPECT_TRUE(is_right(p));
  p.slots[0].kept = true;
  EXPECT_FALSE(is_right(p));
}

TEST(VerifyMemory, AnIterationMayReadWhatTheOneBeforeLeft) {
  LoopStep loop;
  loop.body = {copy(slot(0), slot(1)), copy(slot(1), kOutput), copy(kInput, slot(2)), copy(slot(2), slot(0))};
  EXPECT_TRUE(is_right(program({0, 64, 64}, {copy(kInput, slot(0)), {loop}})));
  EXPECT_FALSE(is_right(program({0, 64, 0}, {copy(kInput, slot(0)), {loop}})));
  loop.body = {copy(kInput, slot(1)), copy(slot(1), kOutput), copy(slot(0), kOutput)};
  EXPECT_FALSE(is_right(program({0, 0}, {copy(kInput, slot(0)), {loop}}))) << "the second iteration reads it again";
}

// A part that nobody reads lies where results are stacked: the second iteration's is written over the first result.
TEST(VerifyMemory, StackedResultsAreAliveInEveryIteration) {
  LoopStep loop;
  loop.body = {copy(kInput, slot(1), CopyStep::Part::From), copy(kInput, slot(0), CopyStep::Part::To)};
  EXPECT_FALSE(is_right(program({0, 0}, {{loop}, copy(slot(0), kOutput)})));
  EXPECT_TRUE(is_right(program({0, 64}, {{loop}, copy(slot(0), kOutput)})));
  EXPECT_TRUE(
      is_right(program({0, 64, 0}, {copy(kInput, slot(2)), copy(slot(2), kOutput), {loop}, copy(slot(0), kOutput)})))
      << "what lay there before the loop";
}

TEST(VerifyMemory, BothBranchesCount) {
  IfStep k;
  k.condition = slot(0);
  k.then = {copy(slot(1), kOutput)};
  EXPECT_TRUE(is_right(program({0, 64}, {copy(kInput, slot(1)), copy(kInput, slot(0)), {k}})));
  EXPECT_FALSE(is_right(program({0, 0}, {copy(kInput, slot(1)), copy(kInput, slot(0)), {k}})));
}

TEST(VerifyMemory, ProgramsThatAreBuiltAreRight) {
  verify_memory(testing::program_of(R"(g (float[2,7,5] w, float[2,7,2] z) => (float[7,2,2] y) {
    t, none = Scan (w, z) <num_scan_inputs = 2, body = b (float[7,5] p, float[7,2] a) => (float[7,2] c, float[7,5] q) { c = Identity(a)  q = Identity(p) }>
    y = Transpose <perm = [1, 2, 0]> (t) })",
                                    false));
}

}  // namespace
}  // namespace tc::verify_memory_test
