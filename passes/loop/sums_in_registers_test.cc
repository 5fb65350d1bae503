#include "passes/loop/sums_in_registers.h"

#include <gtest/gtest.h>

#include "ir/loop/build.h"
#include "ir/loop/print.h"

namespace tc::sums_in_registers_test {
namespace {

struct Row {
  Buffer sums = make_buffer("sums", DType::F32, {Dim(32)}, Scope::Workspace);
  Buffer x = make_buffer("x", DType::F32, {Dim(64), Dim(32)}), y = make_buffer("y", DType::F32, {Dim(32)});

  /// for v in 32 / VL: body(v * VL)
  static Stmt over(const char* name, const std::function<Stmt(const Expr& vector)>& body, int64_t n = 32) {
    const Var v = make_var(name);
    return loop(v, Expr(n) / lanes(), body(ramp(Expr(v) * lanes())));
  }
  Stmt cleared() const {
    return over("v", [&](const Expr& at) { return store(sums, {at}, broadcast(make_float(DType::F32, 0))); });
  }
  Stmt summed() const {
    const Var i = make_var("i");
    return loop(i, 64, over("u", [&](const Expr& at) {
                  return store(sums, {at}, load(sums, {at}) + load(x, {Expr(i), at}));
                }));
  }
  Stmt written() const {
    return over("w", [&](const Expr& at) { return store(y, {at}, load(sums, {at})); });
  }
  Stmt all() const { return alloc(sums, seq({cleared(), summed(), written()})); }
};

TEST(SumsInRegisters, AShortRowThatALoopAddsTo) {
  const Row row;
  const std::string text = to_text(sums_in_registers(row.all()));
  EXPECT_NE(text.find("alloc sums: f32[32] register"), std::string::npos) << text;
  EXPECT_NE(text.find("unroll u in 0 .. +32 / VL"), std::string::npos) << text;
  EXPECT_NE(text.find("sums[(u * VL):VL] += x[i, (u * VL):VL]"), std::string::npos) << text;
}

TEST(SumsInRegisters, WhatIsReachedInAnotherWayStays) {
  const Row row;
  const auto stays = [](const Stmt& s) { return sums_in_registers(s).same_as(s); };
  const Stmt one = store(row.y, {Expr(0)}, load(row.sums, {Expr(3)}));  // an element
  EXPECT_TRUE(stays(alloc(row.sums, seq({row.cleared(), row.summed(), one}))));
  const Stmt half = Row::over(
      "w", [&](const Expr& at) { return store(row.y, {at}, load(row.sums, {at})); }, 16);
  EXPECT_TRUE(stays(alloc(row.sums, seq({row.cleared(), row.summed(), half}))));
  const Var v = make_var("v");
  const Stmt tail = loop(v, Expr(32) / lanes(),
                         store(row.sums, {ramp(Expr(v) * lanes())}, broadcast(make_float(DType::F32, 0)), {}, Expr(3)));
  EXPECT_TRUE(stays(alloc(row.sums, seq({tail, row.summed(), row.written()}))));
  EXPECT_TRUE(stays(alloc(row.sums, seq({row.cleared(), row.written()}))));  // nothing is added to it
  Row large;
  large.sums = make_buffer("sums", DType::F32, {Dim(256)}, Scope::Workspace);
  EXPECT_TRUE(stays(large.all()));
}

}  // namespace
}  // namespace tc::sums_in_registers_test
