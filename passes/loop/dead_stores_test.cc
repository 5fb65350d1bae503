#include "passes/loop/dead_stores.h"

#include <gtest/gtest.h>

#include "ir/loop/build.h"
#include "ir/loop/intrin.h"
#include "ir/loop/print.h"

namespace tc::dead_stores_test {
namespace {

// alloc acc: acc = 0; for i: acc += x[i]; y[0] = value
Stmt sum_beside(const Buffer& acc, Expr value, Expr at = {}) {
  const Buffer x = make_buffer("x", DType::F32, {Dim(4)}), y = make_buffer("y", DType::F32, {Dim(1)});
  const Var i = make_var("i");
  const Stmt sum = loop(i, 4, store(acc, {0}, load(x, {at ? at : Expr(i)}), Op::Add));
  return alloc(acc, seq({store(acc, {0}, make_float(DType::F32, 0)), sum, store(y, {0}, value)}));
}

Buffer accumulator(Scope scope = Scope::Register) { return make_buffer("acc", DType::F32, {Dim(1)}, scope); }

TEST(DeadStores, ASumThatNobodyReadsGoes) {
  const Stmt s = sum_beside(accumulator(), make_float(DType::F32, 1));
  EXPECT_EQ(to_text(dead_stores(s)), "y[0] = 1.0f\n");
  const Stmt scratch = sum_beside(accumulator(Scope::Workspace), make_float(DType::F32, 1));
  EXPECT_EQ(to_text(dead_stores(scratch)), "y[0] = 1.0f\n");
}

TEST(DeadStores, WhatChangesNothingGoes) {
  const Buffer y = make_buffer("y", DType::Bool, {Dim(4)});
  const Var i = make_var("i");
  const Stmt one = store(y, {0}, make_int(DType::Bool, 1));
  EXPECT_EQ(to_text(dead_stores(seq({one, loop(i, 4, store(y, {i}, make_int(DType::Bool, 0), Op::Or))}))),
            to_text(one));
  EXPECT_EQ(to_text(dead_stores(seq({one, store(y, {i}, load(y, {i}))}))), to_text(one));
  const Stmt other = store(y, {i}, make_int(DType::Bool, 1), Op::Or);
  EXPECT_EQ(to_text(dead_stores(other)), to_text(other));
}

TEST(DeadStores, WhatOnlyADeadBufferReadsGoes) {
  const Buffer acc = accumulator(), sums = make_buffer("sums", DType::F32, {Dim(2)}, Scope::Workspace);
  const Buffer x = make_buffer("x", DType::F32, {Dim(4)}), y = make_buffer("y", DType::F32, {Dim(1)});
  const Var g = make_var("g"), i = make_var("i");
  const Stmt sum = loop(i, 4, store(acc, {0}, load(x, {i}), Op::Add));
  const Stmt kept =
      alloc(acc, seq({store(acc, {0}, make_float(DType::F32, 0)), sum, store(sums, {g}, load(acc, {0}))}));
  const Stmt s = alloc(sums, seq({loop(g, 2, kept), store(y, {0}, make_float(DType::F32, 1))}));
  EXPECT_EQ(to_text(dead_stores(s)), "y[0] = 1.0f\n");
}

// A loop that does nothing else goes with it: behind a guard a tile is filled that nobody reads.
TEST(DeadStores, ALoopThatOnlyFillsATileGoes) {
  const Buffer tile = make_buffer("tile", DType::F32, {Dim(1)}, Scope::Stack);
  const Buffer x = make_buffer("x", DType::F32, {Dim(4)}), y = make_buffer("y", DType::F32, {Dim(1)});
  const Var j = make_var("j");
  const Stmt fills = loop(j, 3, alloc(tile, store(tile, {0}, load(x, {j}))));
  EXPECT_EQ(to_text(dead_stores(seq({store(y, {0}, load(x, {0})), fills}))), "y[0] = x[0]\n");
}

// Where a part of a result is padding alone, its tiles need not be loaded, in memory that may not be there.
TEST(DeadStores, ATileThatNobodyReadsIsNotLoaded) {
  const Buffer tile = make_buffer("tile", DType::F32, {Dim(16), Dim(16)}, Scope::Register);
  const Buffer x = make_buffer("x", DType::F32, {Dim(400)}), y = make_buffer("y", DType::F32, {Dim(16)});
  const Stmt filled = intrin("load_transposed", {{tile, {0}}, {x, {0}}}, {Expr(20)});
  const auto tiled = [&](const Expr& value) { return alloc(tile, seq({filled, store(y, {ramp(0)}, value)})); };
  EXPECT_EQ(to_text(dead_stores(tiled(broadcast(make_float(DType::F32, 1))))),
            to_text(store(y, {ramp(0)}, broadcast(make_float(DType::F32, 1)))));
  const Stmt read = tiled(load(tile, {Expr(0), ramp(0)}));
  EXPECT_TRUE(dead_stores(read).same_as(read));
  const Stmt stored = alloc(tile, intrin("store_riffled", {{y, {0}}, {tile, {0}}}, {Expr(3)}));
  EXPECT_TRUE(dead_stores(stored).same_as(stored));
}

TEST(DeadStores, WhatIsReadOrMayFailOrRepeatsStays) {
  const Buffer acc = accumulator();
  const Stmt read = sum_beside(acc, load(acc, {0}));
  EXPECT_TRUE(dead_stores(read).same_as(read));
  const Stmt checked = sum_beside(acc, make_float(DType::F32, 1), apply(Op::Index, {Expr(make_var("n")), Expr(4)}));
  EXPECT_TRUE(dead_stores(checked).same_as(checked));
  const Stmt memory = sum_beside(accumulator(Scope::Global), make_float(DType::F32, 1));
  EXPECT_TRUE(dead_stores(memory).same_as(memory));
  const Stmt repeats = alloc(acc, while_loop(Expr(make_var("n")) < 4, store(acc, {0}, make_float(DType::F32, 0))));
  EXPECT_TRUE(dead_stores(repeats).same_as(repeats));
}

}  // namespace
}  // namespace tc::dead_stores_test
