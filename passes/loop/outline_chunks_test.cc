#include "passes/loop/outline_chunks.h"

#include <gtest/gtest.h>

#include "ir/loop/build.h"
#include "passes/loop/vector_registers.h"

namespace tc::outline_chunks_test {
namespace {

const Buffer kX = make_buffer("x", DType::F32, {Dim(128)}), kY = make_buffer("y", DType::F32, {Dim(4)});

TEST(OutlineChunks, FindsWhatChunksNeed) {
  const Buffer rows = make_buffer("rows", DType::F32, {Dim(64)}), part = make_buffer("part", DType::F32, {Dim(8)}),
               first = make_buffer("first", DType::F32, {Dim(8)}), unused = make_buffer("unused", DType::F32, {Dim(8)});
  const Var m = make_var("m"), n = make_var("n"), other = make_var("other"), i = make_var("i");
  const Stmt chunks = loop(i, 4, store(kY, {i}, load(part, {Expr(i) * Expr(n)})), ForKind::Parallel);
  const Stmt once = store(kY, {0}, load(first, {1}));
  Kernel k;
  k.body = let(other, 7, alias(part, rows, 8, seq({chunks, once})));
  k.body = let(m, 2, let(n, Expr(m) + Expr(1), k.body));
  k.body = alias(unused, kX, 3, alias(first, kX, 0, alias(rows, kX, 64, k.body)));
  outline_chunks(k);
  ASSERT_EQ(k.parts.size(), 1u);
  EXPECT_EQ(k.parts[0].chunk, i);
  ASSERT_EQ(k.parts[0].around.size(), 4u);  // rows, m, n, part: what is needed needs others
  EXPECT_TRUE(as<Alias>(k.parts[0].around[0]) && as<Alias>(k.parts[0].around[0])->view == rows);
  EXPECT_TRUE(as<Let>(k.parts[0].around[1]) && as<Let>(k.parts[0].around[1])->var == m);
  EXPECT_TRUE(as<Let>(k.parts[0].around[2]) && as<Let>(k.parts[0].around[2])->var == n);
  EXPECT_TRUE(as<Alias>(k.parts[0].around[3]) && as<Alias>(k.parts[0].around[3])->view == part);
  EXPECT_EQ(k.part_views, (std::vector<Buffer>{part, rows, unused}));
  EXPECT_EQ(k.part_names, (std::vector<Var>{n, m}));
}

// A function is told the number of a loop around its own, also where a name needs it.
TEST(OutlineChunks, KnowsTheLoopsAroundChunks) {
  const Var image = make_var("image"), other = make_var("other"), first = make_var("first"), i = make_var("i"),
            j = make_var("j");
  const Stmt chunks = loop(i, 4, store(kY, {i}, load(kX, {first})), ForKind::Parallel),
             others = loop(j, 4, store(kY, {j}, load(kX, {j})), ForKind::Parallel);
  Kernel k;
  k.body = loop(other, 2, loop(image, 3, let(first, Expr(image) * 4, seq({chunks, others}))));
  outline_chunks(k);
  ASSERT_EQ(k.parts.size(), 2u);
  EXPECT_EQ(k.parts[0].counters, std::vector<Var>{image});
  EXPECT_EQ(k.parts[0].around.size(), 1u);
  EXPECT_TRUE(k.parts[1].counters.empty());
}

TEST(VectorRegisters, AreThoseThatHoldVectors) {
  const Buffer acc = make_buffer("acc", DType::F32, {Dim(4), Dim(32)}, Scope::Register),
               one = make_buffer("one", DType::F32, {Dim(16)}, Scope::Register),
               sum = make_buffer("sum", DType::F32, {}, Scope::Register);
  const Expr vector = load(kX, {ramp(0)});
  Kernel k;
  k.body = alloc(acc, alloc(one, alloc(sum, seq({store(acc, {1, ramp(lanes())}, vector), store(one, {ramp(0)}, vector),
                                                 store(sum, {}, load(kX, {3}))}))));
  find_vector_registers(k);
  EXPECT_EQ(k.vectors, (std::vector<Buffer>{acc, one}));
  EXPECT_EQ(k.single_vectors, std::vector<Buffer>{one});
}

}  // namespace
}  // namespace tc::outline_chunks_test
