// Blocks and threads in the interpreter: barriers, races, private memory.
#include <gtest/gtest.h>

#include "ir/interpreter/test_arrays.h"
#include "ir/loop/build.h"

namespace tc::threads_test {
namespace {

// Reverses 64 numbers in a block through shared memory.
Stmt reverse(const Floats& x, const Floats& y, bool with_barrier, bool global = false) {
  Buffer s = global ? x.buffer : make_buffer("tile", DType::F32, {Dim(64)}, Scope::Shared);
  Var b = make_var("b"), t = make_var("t");
  Expr at = Expr(b) * 64 + Expr(t);
  Stmt body = seq({store(s, {t}, load(x.buffer, {at})), with_barrier ? barrier(Scope::Shared) : Stmt(),
                   store(y.buffer, {at}, load(s, {Expr(63) - Expr(t)}))});
  return loop(b, 2, alloc(s, loop(t, 64, body, ForKind::ThreadX)), ForKind::BlockX);
}

TEST(Run, ThreadsMeetAtBarriers) {
  Floats x("x", {128}), y("y", {128});
  x.count();
  run(reverse(x, y, true), {x.bind(), y.bind()}, {.check_races = true});
  EXPECT_EQ(y.data[0], 63);
  EXPECT_EQ(y.data[64], 127);
  EXPECT_EQ(y.data[127], 64);
}

TEST(Run, RacesAreFound) {
  Floats x("x", {128}), y("y", {128});
  std::string m = message_of(reverse(x, y, false), {x.bind(), y.bind()}, {.check_races = true});
  EXPECT_NE(m.find("race on cell"), std::string::npos) << m;
  EXPECT_NE(m.find("buffer \"tile\""), std::string::npos) << m;
  EXPECT_NE(m.find("loop \"t\""), std::string::npos) << m;
  // two blocks write one element
  Var b = make_var("b"), t = make_var("t");
  Stmt s = loop(b, 2, loop(t, 32, store(y.buffer, {t}, make_float(DType::F32, 1)), ForKind::ThreadX), ForKind::BlockX);
  EXPECT_NE(message_of(s, {y.bind()}, {.check_races = true}), "");
  // every thread writes the same element
  s = loop(t, 32, store(y.buffer, {0}, make_float(DType::F32, 1)), ForKind::ThreadX);
  EXPECT_NE(message_of(s, {y.bind()}, {.check_races = true}), "");
  // one thread does
  s = loop(t, 32, if_then(eq(t, 0), store(y.buffer, {0}, make_float(DType::F32, 1))), ForKind::ThreadX);
  EXPECT_EQ(message_of(s, {y.bind()}, {.check_races = true}), "");
}

TEST(Run, ABarrierThatSomeThreadsMissIsRefused) {
  Var t = make_var("t");
  Stmt s = loop(t, 32, if_then(Expr(t) < 16, barrier(Scope::Shared)), ForKind::ThreadX);
  EXPECT_NE(message_of(s, {}).find("barrier"), std::string::npos);
}

TEST(Run, ThreadsOfTwoAxesWithPrivateSums) {
  // y[r, c] = 10 r + c, built in a register of each thread
  Floats y("y", {4, 8});
  Buffer acc = make_buffer("acc", DType::F32, {}, Scope::Register);
  Var r = make_var("r"), c = make_var("c"), k = make_var("k");
  Stmt body = alloc(
      acc, seq({store(acc, {}, cast(DType::F32, c)), loop(k, r, store(acc, {}, make_float(DType::F32, 10), Op::Add)),
                store(y.buffer, {r, c}, load(acc, {}))}));
  run(loop(r, 4, loop(c, 8, body, ForKind::ThreadX), ForKind::ThreadY), {y.bind()}, {.check_races = true});
  EXPECT_EQ(y.data[3 * 8 + 5], 35);
  EXPECT_EQ(y.data[0], 0);
}

}  // namespace
}  // namespace tc::threads_test
