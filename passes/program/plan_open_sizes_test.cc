#include "passes/program/plan_open_sizes.h"

#include <gtest/gtest.h>

#include <functional>

#include "ir/loop/build.h"
#include "ir/open_size.h"
#include "support/error.h"

namespace tc::plan_open_sizes_test {
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

// A kernel over `rows` rows (an expression over the sizes batch and seq) of 10 elements; what `body` stores for each.
Program rows_of(const std::function<Expr(const Expr& batch, const Expr& seq)>& rows,
                const std::function<Stmt(const Buffer& x, const Buffer& y, const Expr& row, const Expr& batch)>& body) {
  Program p = program();
  IoTensor seq = p.inputs[0];
  seq.name = ModelText("seq");
  seq.most = 6;
  p.inputs.push_back(seq);
  const Buffer batch = make_buffer("batch", DType::I64, {}), length = make_buffer("seq", DType::I64, {});
  const Buffer x = make_buffer("x", DType::I64, {Dim(kOpenSize * 10)}),
               y = make_buffer("y", DType::F32, {Dim(kOpenSize * 10)});
  const Var i = make_var("i");
  Kernel k;
  k.name = "rows";
  k.params = {{Param::Role::Input, x, {kOpenSize, 10}, "", false},
              {Param::Role::Input, batch, {}, "", false},
              {Param::Role::Input, length, {}, "", false},
              {Param::Role::Output, y, {kOpenSize, 10}, "", false}};
  k.body = loop(i, rows(load(batch, {}), load(length, {})), body(x, y, i, load(batch, {})));
  p.kernels.push_back(k);
  const int from = add_slot(p, kOpenSize, 80, 0, 1), to = add_slot(p, kOpenSize, 40, 0, 1);
  Call c;
  c.kernel = 0;
  c.operands = {
      {Operand::Kind::Slot, from}, {Operand::Kind::Input, 0}, {Operand::Kind::Input, 1}, {Operand::Kind::Slot, to}};
  p.steps.push_back({c});
  return p;
}

// y[0] = .. in front of the loop over the others: also where there are none.
TEST(PlanOpenSizes, AnElementThatIsAlwaysStoredHasRoomInARunOfNone) {
  for (const int64_t least : {0, 1}) {
    Program p = program();
    p.inputs[0].least = least;
    const int y = add_slot(p, kOpenSize, 4, 0, 1);
    add_call(p, y, 1, 1, 1);
    Kernel& k = p.kernels[0];
    k.body = seq({store(k.params[1].buffer, {Expr(0)}, make_float(DType::F32, 0)), k.body});
    plan_open_sizes(p, {});
    EXPECT_EQ(open_number(p.slots[0].bytes).rest, least == 0 ? 4 : 0);
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

// Nine rows of each of the size, in tiles of 14: at one size in 14 the last tile has one row.
TEST(PlanOpenSizes, TheLastTileMayBeAsEmptyAsItGets) {
  const auto rows = [](const Expr& batch, const Expr&) { return floor_div(batch * 9 + 13, 14); };
  const auto tile = [](const Buffer&, const Buffer& y, const Expr& row, const Expr&) {
    const Var i = make_var("i");
    return loop(i, 14, store(y, {row * 14 + Expr(i)}, make_float(DType::F32, 0)));
  };
  Program p = rows_of(rows, tile);
  p.slots[1].bytes = kOpenSize * 36;
  plan_open_sizes(p, {});
  EXPECT_EQ(open_number(p.slots[1].bytes).rest, 13 * 4);
}

// y[row] = 0 of a thread for each row, 256 in a block, in as many blocks as the size needs, or in all. `guarded`: threads behind
// the last row do nothing.
Program launched(bool trimmed, bool guarded) {
  Program p = program();
  const int slot = add_slot(p, kOpenSize, 40, 0, 1);
  const Buffer n = make_buffer("n0", DType::I64, {}), y = make_buffer("y", DType::F32, {Dim(kOpenSize * 10)});
  const Var block = make_var("block"), thread = make_var("thread"), i = make_var("i");
  const Expr row = Expr(block) * 256 + Expr(thread);
  Stmt body = loop(i, 10, store(y, {row * 10 + Expr(i)}, zero(DType::F32)));
  if (guarded) body = if_then(row < load(n, {}), body);
  DeviceFunction f;
  f.name = "kernel";
  f.params = {n, y};
  f.body = loop(block, kOpenSize / 256, loop(thread, 256, body, ForKind::ThreadX), ForKind::BlockX);
  Kernel k;
  k.name = "clear";
  k.params = {{Param::Role::Input, n, {}, "", false}, {Param::Role::Output, y, {kOpenSize, 10}, "", false}};
  const Expr blocks = max(min(floor_div(load(n, {}) + 255, 256), Expr(kOpenSize / 256)), Expr(1));
  k.body = Stmt(std::make_shared<const StmtNode>(
      StmtNode{Launch{"kernel", {trimmed ? blocks : Expr(kOpenSize / 256), 1, 1}, {256, 1, 1}, {n, y}, {}}}));
  k.device = {f};
  p.kernels.push_back(k);
  Call c;
  c.operands = {{Operand::Kind::Input, 0}, {Operand::Kind::Slot, slot}};
  p.steps.push_back({c});
  return p;
}

TEST(PlanOpenSizes, OfALaunchTheLastBlockIsRoomFor) {
  Program p = launched(true, true);
  plan_open_sizes(p, {});
  EXPECT_EQ(open_number(p.slots[0].bytes).rest, 0);
  p = launched(true, false);
  plan_open_sizes(p, {});
  EXPECT_EQ(open_number(p.slots[0].bytes).rest, 255 * 40);
}

TEST(PlanOpenSizes, LaunchesOfTheLargestSizeAreRefused) {
  for (const bool guarded : {true, false}) {
    Program p = launched(false, guarded);
    EXPECT_THROW(plan_open_sizes(p, {}), Error) << guarded;
  }
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

// What they would take without reuse is a number that nobody needs: memory is what there is at a time.
TEST(PlanOpenSizes, ManyLargeTensorsOneAfterTheOther) {
  Program p = program();
  constexpr int64_t kRow = 30'000'000;
  for (int k = 0; k < 9; k++) add_call(p, add_slot(p, kOpenSize, kRow, k, k + 1), 1, 10, kRow / 4);
  plan_open_sizes(p, {});
  EXPECT_EQ(p.naive_bytes, kUncounted);
  EXPECT_LT(open_number(p.arena_bytes).times, 3 * kRow);
}

std::string refusal(Program p) {
  try {
    plan_open_sizes(p, {});
  } catch (const Error& e) {
    return e.diagnostic().code + " " + e.diagnostic().message;
  }
  return "";
}

// Rows that lie densely in two sizes, one of them with a bound, which the caller's sizes are known to keep.
TEST(PlanOpenSizes, OtherSizesAreWithinTheirBounds) {
  const auto copy = [](const Buffer& x, const Buffer& y, const Expr& row, const Expr&) {
    return store(y, {row * 10}, cast(DType::F32, load(x, {row * 10})));
  };
  const auto rows = [](const Expr& batch, const Expr& seq) { return floor_div(batch * seq + 5, 6); };
  EXPECT_EQ(refusal(rows_of(rows, copy)), "");
  const auto more = [](const Expr& batch, const Expr& seq) { return batch * seq; };
  EXPECT_NE(refusal(rows_of(more, copy)).find("TC3106"), std::string::npos);
}

// A condition says how far a quotient goes that intervals do not bound; without it, too far.
TEST(PlanOpenSizes, ConditionsBoundWhatTheyCompare) {
  const auto pack = [](bool tested) {
    return [=](const Buffer& x, const Buffer& y, const Expr& row, const Expr& batch) {
      const Var at = make_var("at");
      const Expr quotient = floor_div(row * 7, 3), value = cast(DType::F32, load(x, {quotient * 10}));
      const Expr zero = make_float(DType::F32, 0);
      return let(at, quotient, store(y, {row * 10}, tested ? select(Expr(at) < batch, value, zero) : value));
    };
  };
  const auto rows = [](const Expr& batch, const Expr&) { return batch; };
  EXPECT_EQ(refusal(rows_of(rows, pack(true))), "");
  EXPECT_NE(refusal(rows_of(rows, pack(false))).find("would touch all of the largest \"x\""), std::string::npos);
}

// What lies behind the last index could be anything, and the run would fail by it; behind an input stand copies of what there is.
TEST(PlanOpenSizes, WhatMayFailTestsNothingBehindTheLastIndex) {
  const auto gather = [](const Buffer& x, const Buffer& y, const Expr& row, const Expr&) {
    return store(y, {row * 10}, cast(DType::F32, apply(Op::Index, {load(x, {row * 10 + 9}), Expr(40)})));
  };
  const auto exact = [](const Expr& batch, const Expr&) { return batch; };
  const auto tiles = [](const Expr& batch, const Expr&) { return floor_div(batch + 3, 4) * 4; };
  EXPECT_EQ(refusal(rows_of(exact, gather)), "");
  Program p = rows_of(tiles, gather);
  EXPECT_NE(refusal(p).find("would test what lies behind the last index in \"x\""), std::string::npos);
  CopyStep input;
  input.from = {Operand::Kind::Input, 0};
  input.to = {Operand::Kind::Slot, 0};
  input.bytes = 80;
  input.times = {SizeSum()};
  input.room = 80;
  p.steps.insert(p.steps.begin(), Step{input});
  EXPECT_EQ(refusal(p), "");
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
  EXPECT_EQ(axis_text(9 * kOpenSize + 2), "9 * n + 2");
  EXPECT_EQ(axis_text(100'000'000'000'000'000), "100000000000000000");
  EXPECT_EQ(axis_text(4096), "4096");
  EXPECT_EQ(axis_text(INT64_MAX), "9223372036854775807");
  EXPECT_EQ(with_open_sizes("x7: sizes " + to_text(3 * kOpenSize - 1) + " and 48 meet 99999999999999999999"),
            "x7: sizes 3 * n - 1 and 48 meet 99999999999999999999");
  for (const int64_t n : {kOpenSize, 9 * kOpenSize, kOpenSize + 3, 2 * kOpenSize - 4})
    EXPECT_EQ(open_axis(axis_text(n)), n);
  for (const char* text : {"", "4096", "0 * n", "n * 9", "9 * m", "n + x", "99999999999 * n", "n + 3 "})
    EXPECT_EQ(open_axis(text), std::nullopt) << text;
}

}  // namespace
}  // namespace tc::plan_open_sizes_test
