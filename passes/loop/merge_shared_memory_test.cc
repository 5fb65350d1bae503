#include "passes/loop/merge_shared_memory.h"

#include <gtest/gtest.h>

#include <cmath>

#include "ir/interpreter.h"
#include "ir/loop/build.h"
#include "ir/loop/intrin.h"
#include "ir/loop/print.h"
#include "ir/loop/visit.h"
#include "support/error.h"

namespace tc::merge_shared_memory_test {
namespace {

constexpr int64_t kThreads = 64;

Stmt without_barriers(const Stmt& s) {
  return rewrite(s, {}, [](const Stmt& x) -> Stmt {
    const Seq* k = as<Seq>(x);
    if (!k) return {};
    Stmts list;
    for (const Stmt& y : k->list)
      if (!as<Barrier>(y)) list.push_back(y);
    return seq(std::move(list));
  });
}

// A launch of two blocks. Each phase writes an array of its own and reads it from the other end.
class MergeSharedMemory : public ::testing::Test {
 protected:
  Var block = make_var("block"), t = make_var("t"), i = make_var("i");
  Buffer x = make_buffer("x", DType::F32, {Dim(2), Dim(kThreads)}),
         y = make_buffer("y", DType::F32, {Dim(2), Dim(kThreads)});

  static Buffer array(const char* name, int64_t rows) {
    return make_buffer(name, DType::F32, {Dim(rows), Dim(kThreads)}, Scope::Shared);
  }
  // a[i, t] = x[block, t] * factor
  Stmt fill(const Buffer& a, double factor) const {
    const Expr value = load(x, {Expr(block), Expr(t)}) * make_float(DType::F32, factor);
    return loop(i, a->shape[0].value, store(a, {Expr(i), Expr(t)}, value));
  }
  // y[block, t] += a[last, 63 - t]
  Stmt add(const Buffer& a) const {
    const Expr other = Expr(kThreads - 1) - Expr(t);
    return store(y, {Expr(block), Expr(t)}, load(a, {Expr(a->shape[0].value - 1), other}), Op::Add);
  }
  Stmt launch(const std::vector<Buffer>& arrays, Stmt code) const {
    Stmt s = loop(t, kThreads, std::move(code), ForKind::ThreadX);
    for (size_t k = arrays.size(); k-- > 0;) s = alloc(arrays[k], s);
    return loop(block, 2, s, ForKind::BlockX);
  }
  std::vector<float> run(const Stmt& s) const {
    std::vector<float> in(2 * kThreads), out(2 * kThreads);
    for (size_t k = 0; k < in.size(); k++) in[k] = float(k % 37);
    RunOptions o;
    o.check_races = true;
    tc::run(s, {{x, reinterpret_cast<uint8_t*>(in.data())}, {y, reinterpret_cast<uint8_t*>(out.data())}}, o);
    return out;
  }
  MergedShared expect_same(const Stmt& before) const {
    MergedShared r = merge_shared_memory(before);
    EXPECT_EQ(run(r.body), run(before)) << to_text(r.body);
    return r;
  }
};

const Stmt kBarrier = barrier(Scope::Shared);

TEST_F(MergeSharedMemory, arrays_of_different_phases_share_bytes) {
  const Buffer a = array("a", 32), b = array("b", 16);
  const Stmt s = launch({a, b}, seq({fill(a, 1), kBarrier, add(a), fill(b, 2), kBarrier, add(b)}));
  const MergedShared r = expect_same(s);
  EXPECT_EQ(r.dynamic_bytes, 0);
  EXPECT_EQ(to_text(r.body),
            "block.x block in 0 .. +2:\n"
            "  alloc shared: u8[8192] shared\n"
            "  alias a: f32 = &shared[0]\n"
            "  thread.x t in 0 .. +64:\n"
            "    for i in 0 .. +32:\n"
            "      a[i, t] = x[block, t] * 1.0f\n"
            "    barrier shared\n"
            "    y[block, t] += a[31, 63 - t]\n"
            "    barrier shared\n"
            "    alias b: f32 = &shared[0]\n"
            "    for i in 0 .. +16:\n"
            "      b[i, t] = x[block, t] * 2.0f\n"
            "    barrier shared\n"
            "    y[block, t] += b[15, 63 - t]\n");
}

// The loop of threads in which the array stood has one iteration, and is gone.
TEST_F(MergeSharedMemory, an_array_of_a_plain_loop_is_one_of_the_launch) {
  const Buffer a = array("a", 1);
  const Stmt code = alloc(a, seq({fill(a, 1), kBarrier, add(a), kBarrier}));
  const Stmt inside =
      loop(block, 2, loop(t, kThreads, loop(make_var("j"), 3, code), ForKind::ThreadX), ForKind::BlockX);
  const Stmt outside =
      loop(block, 2, alloc(a, loop(t, kThreads, loop(make_var("j"), 3, as<Alloc>(code)->body), ForKind::ThreadX)),
           ForKind::BlockX);
  const MergedShared r = merge_shared_memory(inside);
  EXPECT_EQ(to_text(r.body).find("block.x block in 0 .. +2:\n  alloc a: f32[1,64] shared\n"), 0u) << to_text(r.body);
  EXPECT_EQ(run(r.body), run(outside));
}

TEST_F(MergeSharedMemory, a_missing_barrier_is_found) {
  const Buffer a = array("a", 32), b = array("b", 32);
  // The first phase needs no barrier, since every thread reads what it wrote; the second begins on its bytes.
  const Stmt own = store(y, {Expr(block), Expr(t)}, load(a, {Expr(3), Expr(t)}), Op::Add);
  const Stmt s = launch({a, b}, seq({fill(a, 1), own, fill(b, 2),
                                     store(y, {Expr(block), Expr(t)}, load(b, {Expr(0), Expr(t)}), Op::Add)}));
  const MergedShared r = expect_same(s);
  EXPECT_FALSE(without_barriers(r.body).same_as(r.body));
  try {
    run(without_barriers(r.body));
    FAIL() << "nothing found";
  } catch (const InternalError& e) {
    EXPECT_NE(std::string(e.what()).find("\"b\" begins on bytes"), std::string::npos) << e.what();
  }
}

TEST_F(MergeSharedMemory, races_name_the_array) {
  const Buffer a = array("a", 32), b = array("b", 32);
  const Stmt s = launch({a, b}, seq({fill(a, 1), kBarrier, add(a), fill(b, 2), add(b)}));
  try {
    run(merge_shared_memory(s).body);
    FAIL() << "nothing found";
  } catch (const InternalError& e) {
    EXPECT_NE(std::string(e.what()).find("buffer \"b\""), std::string::npos) << e.what();
  }
}

TEST_F(MergeSharedMemory, what_another_array_left_is_no_value) {
  const Buffer a = array("a", 32), b = array("b", 32);
  const Stmt s =
      launch({a, b}, seq({fill(a, 1), kBarrier, add(a), kBarrier, add(b), store(b, {0, Expr(t)}, load(x, {0, 0}))}));
  for (const float v : run(merge_shared_memory(s).body)) EXPECT_TRUE(std::isnan(v));
}

TEST_F(MergeSharedMemory, a_barrier_that_is_there_is_enough) {
  const Buffer a = array("a", 32), b = array("b", 32);
  const Stmt s = launch({a, b}, seq({fill(a, 1), kBarrier, add(a), kBarrier, fill(b, 2), kBarrier, add(b)}));
  int barriers = 0;
  walk(expect_same(s).body, [&](const Stmt& k) {
    barriers += as<Barrier>(k) != nullptr;
    return true;
  });
  EXPECT_EQ(barriers, 3);
}

TEST_F(MergeSharedMemory, arrays_of_one_loop_keep_their_bytes) {
  const Buffer a = array("a", 32), b = array("b", 32);
  const Var iteration = make_var("turn");
  const Stmt phases = seq({fill(a, 1), kBarrier, add(a), fill(b, 2), kBarrier, add(b), kBarrier});
  const Stmt s = launch({a, b}, loop(iteration, 3, phases));
  EXPECT_TRUE(merge_shared_memory(s).body.same_as(s));
}

TEST_F(MergeSharedMemory, a_few_bytes_are_not_worth_it) {
  const Buffer a = array("a", 2), b = array("b", 2);
  const Stmt s = launch({a, b}, seq({fill(a, 1), kBarrier, add(a), fill(b, 2), kBarrier, add(b)}));
  EXPECT_TRUE(merge_shared_memory(s).body.same_as(s));
}

TEST_F(MergeSharedMemory, more_than_every_block_has_is_dynamic) {
  const Buffer a = array("a", 128), b = array("b", 128), c = array("c", 96);
  const Stmt s =
      launch({a, b, c}, seq({fill(a, 1), fill(b, 2), kBarrier, add(a), add(b), fill(c, 3), kBarrier, add(c)}));
  const MergedShared r = expect_same(s);
  EXPECT_EQ(r.dynamic_bytes, 65536);  // c on the bytes of a or b
  const Buffer one = array("one", 200);
  EXPECT_EQ(expect_same(launch({one}, seq({fill(one, 1), kBarrier, add(one)}))).dynamic_bytes, 51200);
}

TEST_F(MergeSharedMemory, copies_arrive_before_their_bytes_change_hands) {
  const Buffer a = array("a", 32), b = array("b", 32);
  const Stmt copy = intrin("cp_async4", {{a, {0, Expr(t)}}, {x, {Expr(block), Expr(t)}}});
  const Stmt wait = intrin("cp_async_wait", {}, {Expr(0)});
  const Stmt s =
      launch({a, b}, seq({fill(a, 1), copy, wait, kBarrier, add(a), kBarrier, fill(b, 2), kBarrier, add(b)}));
  int waits = 0;
  walk(expect_same(s).body, [&](const Stmt& k) {
    const Intrin* n = as<Intrin>(k);
    waits += n && n->name == "cp_async_wait";
    return true;
  });
  EXPECT_EQ(waits, 2);
}

}  // namespace
}  // namespace tc::merge_shared_memory_test
