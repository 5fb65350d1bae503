#include "passes/program/plan_open_sizes.h"

#include <gtest/gtest.h>

#include "ir/loop/build.h"
#include "ir/open_size.h"
#include "support/error.h"

namespace tc {
namespace {

// A program whose only input is a size; `slots` are added by the tests.
Program program() {
  Program p;
  p.align = 64;
  IoTensor size;
  size.name = ModelText("batch");
  size.dtype = DType::I64;
  size.is_size = true;
  size.least = 1;
  size.most = kOpenSize;
  p.inputs.push_back(size);
  return p;
}

int add_slot(Program& p, int64_t rows, int64_t bytes, int first, int last) {
  Slot s;
  s.dtype = DType::F32;
  s.dims = {rows, bytes / 4};
  s.bytes = rows * bytes;
  s.first = first;
  s.last = last;
  p.slots.push_back(s);
  return int(p.slots.size()) - 1;
}

// A call that stores tiles of `tile` rows of `row` elements up to the size.
void add_call(Program& p, int slot, int64_t tile, int64_t row, int64_t stride) {
  const Buffer n = make_buffer("n0", DType::I64, {}), y = make_buffer("y", DType::F32, {Dim(kOpenSize * row)});
  const Var size = make_var("n"), m = make_var("m"), i = make_var("i");
  const Stmt rows = loop(i, tile * row, store(y, {Expr(m) * (tile * stride) + Expr(i)}, make_float(DType::F32, 0)));
  const Stmt body = let(size, max(min(load(n, {}), Expr(kOpenSize)), Expr(0)),
                        loop(m, floor_div(Expr(size) + Expr(tile - 1), Expr(tile)), rows));
  Kernel k;
  k.name = "fill";
  k.params = {{Param::Role::Input, n, {}, "", false}, {Param::Role::Output, y, {kOpenSize, row}, "", false}};
  k.body = body;
  p.kernels.push_back(k);
  Call c;
  c.kernel = int(p.kernels.size()) - 1;
  c.operands = {{Operand::Kind::Input, 0}, {Operand::Kind::Slot, slot}};
  p.steps.push_back({c});
}

// Whatever the size, tensors that live together stand apart, aligned, in the arena.
void expect_valid(const Program& p) {
  for (const int64_t room : {1, 2, 3, 7, 1000, 123'456'789})
    for (size_t i = 0; i < p.slots.size(); i++) {
      const auto begin = [&](size_t k) { return open_number(p.slots[k].offset).at(room); };
      const auto end = [&](size_t k) { return begin(k) + open_number(p.slots[k].bytes).at(room); };
      ASSERT_GE(begin(i), 0);
      ASSERT_EQ(begin(i) % 64, 0);
      ASSERT_LE(end(i), open_number(p.arena_bytes).at(room));
      for (size_t j = 0; j < i; j++) {
        const Slot &a = p.slots[i], &b = p.slots[j];
        if (a.first > b.last || b.first > a.last) continue;
        ASSERT_TRUE(end(i) <= begin(j) || end(j) <= begin(i)) << room << ": " << i << " " << j;
      }
    }
}

TEST(PlanOpenSizes, ATilesOverhangHasRoomOfItsOwn) {
  Program p = program();
  const int y = add_slot(p, kOpenSize, 40, 0, 1);
  add_call(p, y, 6, 10, 10);
  plan_open_sizes(p, {});
  EXPECT_EQ(open_number(p.slots[0].bytes).times, 40);
  EXPECT_EQ(open_number(p.slots[0].bytes).rest, 5 * 40);
  expect_valid(p);
}

// Of a list of processors each has tiles of its own, and the memory holds those of all.
TEST(PlanOpenSizes, EveryProcessorsTilesHaveRoom) {
  Program p = program();
  const int y = add_slot(p, kOpenSize, 40, 0, 1);
  add_call(p, y, 6, 10, 10);
  add_call(p, y, 14, 10, 10);
  p.steps.pop_back();
  std::get<Call>(p.steps[0].kind).by_variant = {1, 0};
  plan_open_sizes(p, {});
  EXPECT_EQ(open_number(p.slots[0].bytes).rest, 13 * 40);
  expect_valid(p);
}

// Large constant tensors, and gaps that only the largest size has, are no place for what grows.
TEST(PlanOpenSizes, TensorsStandApartForEverySize) {
  Program p = program();
  add_slot(p, 1, 1'000'000, 0, 5);
  for (int k = 0; k < 12; k++) {
    const int64_t row = 4 * (1 + k * 7 % 11);
    add_call(p, add_slot(p, kOpenSize, 4 * row, k, k + 1 + k % 3), 1 + k % 5, row, row);
  }
  add_slot(p, 1, 700, 2, 9);
  plan_open_sizes(p, {{3, 5000}});
  EXPECT_GE(p.scratch_bytes, 5000);
  expect_valid(p);
}

// Rows whose distance is the size's would lie outside of a smaller memory.
TEST(PlanOpenSizes, WhatDoesNotFollowFromTheSizeIsRefused) {
  Program p = program();
  add_call(p, add_slot(p, kOpenSize, 40, 0, 1), 1, 10, 4 * kOpenSize);
  try {
    plan_open_sizes(p, {});
    FAIL() << "not refused";
  } catch (const Error& e) {
    EXPECT_EQ(e.diagnostic().code, "TC3106");
    EXPECT_NE(e.diagnostic().message.find("size \"batch\" has no upper bound"), std::string::npos);
  }
}

TEST(PlanOpenSizes, NumbersReadAsTheyAreMeant) {
  EXPECT_EQ(open_text(4096, "room"), "4096");
  EXPECT_EQ(open_text(kOpenSize, "n"), "n");
  EXPECT_EQ(open_text(3 * kOpenSize + 64, "room"), "3 * room + 64");
  EXPECT_EQ(open_text(2 * kOpenSize - 4, "n"), "2 * n - 4");
}

}  // namespace
}  // namespace tc
