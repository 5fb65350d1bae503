#include "passes/loop/thread_sync.h"

#include <gtest/gtest.h>

#include "ir/interpreter.h"
#include "ir/loop/build.h"
#include "ir/loop/intrin.h"
#include "ir/loop/print.h"
#include "ir/loop/visit.h"
#include "passes/loop/lower_thread_allreduce.h"

namespace tc::thread_sync_test {
namespace {

struct Memory {
  Buffer buffer;
  std::vector<float> data;
  Memory(const char* name, int64_t n) : buffer(make_buffer(name, DType::F32, {Dim(n)})), data(size_t(n)) {
    for (size_t i = 0; i < data.size(); i++) data[i] = float(i * 7 % 23);
  }
  Binding bind() { return {buffer, reinterpret_cast<uint8_t*>(data.data())}; }
};

int barriers(const Stmt& s) {
  int n = 0;
  walk(s, [&](const Stmt& x) {
    n += as<Barrier>(x) != nullptr;
    return true;
  });
  return n;
}

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

class ThreadSync : public ::testing::Test {
 protected:
  Memory x{"x", 1024}, y{"y", 1024};
  Buffer tile = make_buffer("tile", DType::F32, {Dim(64)}, Scope::Shared);
  Buffer square = make_buffer("square", DType::F32, {Dim(8), Dim(8)}, Scope::Shared);
  Var t = make_var("t"), step = make_var("step"), i = make_var("i");

  Stmt block(const Stmt& code, int64_t threads = 64) {
    return alloc(tile, alloc(square, loop(t, threads, code, ForKind::ThreadX)));
  }
  // The race is there without barriers, and gone with those that the pass inserts, which are so many.
  void expect_barriers(const Stmt& s, int n, bool race = true) {
    if (race) {
      EXPECT_THROW(execute(s), InternalError) << to_text(s);
    }
    const Stmt r = thread_sync(s);
    EXPECT_EQ(barriers(r), n) << to_text(r);
    execute(r);
    EXPECT_EQ(to_text(thread_sync(r)), to_text(r)) << "one run places all";
  }
  void execute(const Stmt& s) { run(s, {x.bind(), y.bind()}, {.check_races = true}); }
};

TEST_F(ThreadSync, BetweenWritersAndReadersAndAroundLoops) {
  const Stmt reverse = store(y.buffer, {Expr(step) * 64 + Expr(t)}, load(tile, {Expr(63) - Expr(t)}));
  const Stmt code = loop(step, 4, seq({store(tile, {t}, load(x.buffer, {Expr(step) * 64 + Expr(t)})), reverse}));
  expect_barriers(block(code), 2);
  EXPECT_EQ(to_text(thread_sync(block(code))),
            "alloc tile: f32[64] shared\n"
            "alloc square: f32[8,8] shared\n"
            "thread.x t in 0 .. +64:\n"
            "  for step in 0 .. +4:\n"
            "    barrier shared\n"
            "    tile[t] = x[step * 64 + t]\n"
            "    barrier shared\n"
            "    y[step * 64 + t] = tile[63 - t]\n");
  EXPECT_EQ(y.data[64], x.data[127]);
}

TEST_F(ThreadSync, OwnElementsNeedNone) {
  const Expr own = load(tile, {t}) + Expr(load(square, {floor_div(t, 8), floor_mod(t, 8)}));
  expect_barriers(
      block(seq({store(tile, {t}, load(x.buffer, {t})),
                 store(square, {floor_div(t, 8), floor_mod(t, 8)}, load(x.buffer, {t})), store(y.buffer, {t}, own)})),
      0, false);
}

TEST_F(ThreadSync, IterationsOfAThreadsOwnLoopsStayApart) {
  const Buffer wide = make_buffer("wide", DType::F32, {Dim(256)}, Scope::Shared);
  const Expr at = Expr(i) * 64 + Expr(t);
  const Stmt code =
      seq({loop(i, 4, store(wide, {at}, load(x.buffer, {at}))), loop(i, 4, store(y.buffer, {at}, load(wide, {at})))});
  expect_barriers(alloc(wide, block(code)), 0, false);
}

TEST_F(ThreadSync, StagesTakeTurns) {
  const Buffer ring = make_buffer("ring", DType::F32, {Dim(2), Dim(64)}, Scope::Shared);
  const Expr stage = floor_mod(step, 2);
  const Stmt fill = if_then(Expr(step) < 4, store(ring, {stage, t}, load(x.buffer, {Expr(step) * 64 + Expr(t)})));
  const Stmt use =
      if_then(Expr(step) > 0, store(y.buffer, {t}, load(ring, {Expr(1) - stage, Expr(63) - Expr(t)}), Op::Add));
  expect_barriers(alloc(ring, block(loop(step, 5, seq({fill, use})))), 2);
  // what is there suffices
  expect_barriers(alloc(ring, block(loop(step, 5, seq({barrier(Scope::Shared), fill, use})))), 1, false);
}

TEST_F(ThreadSync, InFrontOfTheConditionThatThreadsDoNotShare) {
  const Stmt code = seq(
      {store(tile, {t}, load(x.buffer, {t})), if_then(Expr(t) < 32, store(y.buffer, {t}, load(tile, {Expr(t) + 32})))});
  expect_barriers(block(code), 1);
  const Stmt inside =
      if_then(Expr(t) < 32,
              seq({store(tile, {t}, load(x.buffer, {t})), store(y.buffer, {t}, load(tile, {Expr(31) - Expr(t)}))}));
  EXPECT_THROW(thread_sync(block(inside)), InternalError);
}

TEST_F(ThreadSync, LowerAndUpperHalf) {
  const Stmt code = if_then(Expr(t) < 32, store(tile, {t}, load(tile, {t}) + load(tile, {Expr(t) + 32})));
  expect_barriers(block(seq({store(tile, {t}, load(x.buffer, {t})), code})), 1);
}

TEST_F(ThreadSync, MemoryThatTheLaunchWrites) {
  const Stmt code = seq({store(y.buffer, {t}, load(x.buffer, {t})),
                         store(y.buffer, {Expr(t) + 64}, load(y.buffer, {Expr(63) - Expr(t)}))});
  expect_barriers(block(code), 1);
}

TEST_F(ThreadSync, ReadsOfMatricesAreMadeByTheWarp) {
  const Buffer r = make_buffer("r", DType::F32, {Dim(4)}, Scope::Register);
  const Stmt read = intrin("ldmatrix_x4", {{r, {}}, {tile, {Expr(t)}}});
  EXPECT_EQ(barriers(thread_sync(block(alloc(r, seq({store(tile, {t}, load(x.buffer, {t})), read}))))), 1);
}

TEST_F(ThreadSync, AllReduce) {
  const Buffer sum = make_buffer("sum", DType::F32, {}, Scope::Register);
  for (const int64_t n : {2, 8, 32, 64, 256}) {
    const Stmt code =
        alloc(sum, seq({store(sum, {}, load(x.buffer, {Expr(step) * 256 + Expr(t)})), allreduce(sum, Op::Add, n),
                        store(y.buffer, {Expr(step) * 256 + Expr(t)}, load(sum, {}))}));
    const Stmt s = loop(t, 256, loop(step, 4, code), ForKind::ThreadX),
               lowered = thread_sync(lower_thread_allreduce(s));
    EXPECT_EQ(barriers(lowered), n > 32 ? 2 : 0) << to_text(lowered);
    for (const Stmt& form : {s, lowered}) {
      execute(form);
      for (size_t k = 0; k < 1024; k++) {
        float expected = 0;
        for (size_t j = k / size_t(n) * size_t(n); j < (k / size_t(n) + 1) * size_t(n); j++) expected += x.data[j];
        ASSERT_EQ(y.data[k], expected) << n << " threads, element " << k << "\n" << to_text(form);
      }
    }
    if (n > 32) {
      EXPECT_THROW(execute(without_barriers(lowered)), InternalError);
    }
  }
}

TEST_F(ThreadSync, AWholeWarpExchanges) {
  const Buffer top = make_buffer("top", DType::F32, {}, Scope::Register);
  auto code = [&](int64_t threads) {
    return loop(
        t, 64,
        alloc(top, if_then(Expr(t) < threads, seq({store(top, {}, load(x.buffer, {t})), allreduce(top, Op::Max, 32),
                                                   store(y.buffer, {t}, load(top, {}))}))),
        ForKind::ThreadX);
  };
  execute(code(32));
  EXPECT_THROW(execute(code(40)), InternalError);
}

}  // namespace
}  // namespace tc::thread_sync_test
