#include "ir/verify_accesses.h"

#include <gtest/gtest.h>

#include "ir/loop/build.h"
#include "ir/loop/intrin.h"
#include "ir/loop/op.h"

namespace tc::verify_accesses_test {
namespace {

std::string message(const Stmt& s) {
  try {
    verify_accesses(s);
  } catch (const InternalError& e) {
    return e.what();
  }
  return "fine";
}

Buffer tensor(const char* name, int64_t n, Scope scope = Scope::Global) {
  return make_buffer(name, DType::F32, {Dim(n)}, scope);
}

TEST(VerifyAccesses, IndicesStayInsideTheirBuffers) {
  const Buffer x = tensor("x", 8), y = tensor("y", 7);
  const Var i = make_var("i"), j = make_var("j");
  const auto copy = [&](Expr from, Expr to) { return store(y, {to}, load(x, {from})); };
  EXPECT_EQ(message(loop(i, 7, copy(Expr(i) + 1, i))), "fine");
  EXPECT_EQ(message(loop(i, 7, copy(Expr(i) + 2, i))),
            "verify: load of buffer \"x\": index i + 2 reaches from 2 to 8 of 8");
  EXPECT_EQ(message(loop(i, 8, copy(i, i))), "verify: store to buffer \"y\": index i reaches from 0 to 7 of 7");
  EXPECT_EQ(message(loop(i, 2, loop(j, 4, copy(Expr(i) * 4 + j, j)))), "fine");
  EXPECT_NE(message(loop(i, 2, loop(j, 4, copy(Expr(i) * 5 + j, j)))), "fine");
  EXPECT_NE(message(loop(i, 3, copy(Expr(i) - 1, i))), "fine");
  EXPECT_EQ(message(loop(i, 0, copy(Expr(i) + 9, i))), "fine");  // never runs
}

TEST(VerifyAccesses, ConditionsOnTheIndexKeepItOut) {
  const Buffer x = tensor("x", 4), y = tensor("y", 8);
  const Var i = make_var("i"), j = make_var("j");
  const Stmt move = store(y, {i}, load(x, {i}));
  EXPECT_NE(message(loop(i, 8, move)), "fine");
  EXPECT_EQ(message(loop(i, 8, if_then(Expr(i) < 4, move))), "fine");
  EXPECT_NE(message(loop(j, 8, loop(i, 8, if_then(Expr(j) < 4, move)))), "fine");
  EXPECT_EQ(message(loop(i, 8, store(y, {i}, select(Expr(i) < 4, load(x, {i}), make_float(DType::F32, 0))))), "fine");
  const auto chosen = [&](int64_t at, const Expr& condition) {
    return message(store(y, {Expr(0)}, select(condition, load(x, {Expr(at)}), make_float(DType::F32, 0))));
  };
  const Expr never = Expr(-2) >= Expr(0) && Expr(-2) < Expr(4), always = Expr(0) < Expr(4);
  EXPECT_EQ(chosen(-2, never), "fine");  // it never runs
  EXPECT_NE(chosen(-2, always), "fine");
  const auto once = [&](const Expr& condition) {
    return message(loop(i, 1, store(y, {i}, select(condition, load(x, {Expr(i) - 2}), make_float(DType::F32, 0)))));
  };
  EXPECT_EQ(once(Expr(i) - 2 >= Expr(0)), "fine");
  EXPECT_NE(once(Expr(i) >= Expr(0)), "fine");
  const Expr both = (Expr(i) < 4) && (make_float(DType::F32, 0) < load(x, {i}));
  EXPECT_EQ(message(loop(i, 8, if_then(both, store(y, {i}, make_float(DType::F32, 1))))), "fine");
}

TEST(VerifyAccesses, LoopsBehindOneAnotherMayShareTheirVariable) {
  const Buffer y = tensor("y", 3), all = tensor("all", 8);
  const Var i = make_var("i"), j = make_var("j");
  const auto put = [&](const Buffer& to, const Expr& at) { return store(to, {at}, make_float(DType::F32, 1)); };
  const Stmt first = loop(i, 2, put(y, Expr(i) + 2), ForKind::Serial, -2);
  const Stmt second = loop(i, 3, put(y, Expr(i) - Expr(j) + 4), ForKind::Serial, Expr(j) - 4);
  EXPECT_EQ(message(loop(j, 2, seq({first, second}))), "fine");
  EXPECT_NE(message(seq({loop(i, 8, put(all, i)), loop(i, 4, put(y, i))})), "fine");
}

TEST(VerifyAccesses, ViewsAreLookedThrough) {
  const Buffer x = tensor("x", 8), y = tensor("y", 8), view = tensor("view", 8);
  const Var i = make_var("i");
  const auto through = [&](int64_t offset) {
    return alias(view, x, offset, loop(i, 4, store(y, {i}, load(view, {Expr(i) + 4})), ForKind::Serial));
  };
  EXPECT_EQ(message(through(0)), "fine");
  EXPECT_EQ(message(through(-4)), "fine");
  EXPECT_EQ(message(through(1)), "verify: load of buffer \"x\": index i + 5 reaches from 5 to 8 of 8");
  EXPECT_NE(message(through(-5)), "fine");
}

TEST(VerifyAccesses, TheFirstLaneCounts) {
  const Buffer x = tensor("x", 8), y = tensor("y", 8);
  const Var i = make_var("i");
  const auto vectors = [&](int64_t step) {
    return loop(i, 3, store(y, {ramp(Expr(i) * step)}, load(x, {ramp(Expr(i) * step)})));
  };
  EXPECT_EQ(message(vectors(3)), "fine");
  EXPECT_NE(message(vectors(4)), "fine");
}

TEST(VerifyAccesses, InstructionsTouchWhatTheyStandFor) {
  const Buffer x = tensor("x", 32), y = tensor("y", 32);
  const auto tile = [&](Expr from, Expr to) { return intrin("transpose_tile", {{y, {to}}, {x, {from}}}, {4, 8}); };
  EXPECT_EQ(message(tile(4, 16)), "fine");
  EXPECT_NE(message(tile(5, 16)).find("load of buffer \"x\""), std::string::npos);
  EXPECT_NE(message(tile(4, 17)).find("store to buffer \"y\""), std::string::npos);
  const Var i = make_var("i");
  EXPECT_EQ(message(loop(i, 2, tile(Expr(i) * 4, Expr(i) * 16))), "fine");
  EXPECT_NE(message(loop(i, 3, tile(Expr(i) * 4, Expr(i) * 16))), "fine");
}

TEST(VerifyAccesses, NoThreadPassesABarrierBy) {
  const Buffer kept = tensor("kept", 1, Scope::Register), y = tensor("y", 32);
  const Var b = make_var("b"), t = make_var("t"), i = make_var("i"), half = make_var("half");
  const auto launch = [&](const Stmt& body) {
    return loop(b, 2, loop(t, 32, body, ForKind::ThreadX), ForKind::BlockX);
  };
  const Stmt sync = barrier(Scope::Shared);
  const std::string passed = "verify: a barrier of scope shared that threads may pass by";
  EXPECT_EQ(message(launch(sync)), "fine");
  EXPECT_EQ(message(launch(if_then(Expr(b) < 1, sync))), "fine");
  EXPECT_EQ(message(launch(if_then(Expr(t) < 16, sync))), passed);
  EXPECT_EQ(message(launch(if_then(Expr(t) < 16, store(y, {t}, make_float(DType::F32, 1)), sync))), passed);
  EXPECT_EQ(message(launch(let(half, floor_div(t, 2), if_then(Expr(half) < 3, sync)))), passed);
  EXPECT_EQ(message(launch(loop(i, 4, sync))), "fine");
  EXPECT_EQ(message(launch(loop(i, Expr(t), sync))), passed);
  const Expr own = load(kept, {0}) < make_float(DType::F32, 1);
  EXPECT_EQ(message(launch(alloc(kept, while_loop(own, sync)))), passed);
}

}  // namespace
}  // namespace tc::verify_accesses_test
