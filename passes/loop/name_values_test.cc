#include "passes/loop/name_values.h"

#include <gtest/gtest.h>

#include "ir/loop/build.h"
#include "ir/loop/print.h"

namespace tc::name_values_test {
namespace {

Expr chain(Expr e, int length) {
  for (int i = 0; i < length; i++) e = apply(Op::Exp, {e + make_const(DType::F32, 1)});
  return e;
}

TEST(NameValues, AFunctionOfALongChainGetsALine) {
  const Buffer y = make_buffer("y", DType::F32, {4}), x = make_buffer("x", DType::F32, {4});
  const std::string s = to_text(name_values(store(y, {Expr(0)}, chain(load(x, {Expr(0)}), 6))));
  EXPECT_NE(s.find("let exp = exp(x[0] + "), std::string::npos) << s;
  EXPECT_NE(s.find("y[0] = exp("), std::string::npos) << s;  // what is stored has its destination
  const std::string few = to_text(name_values(store(y, {Expr(0)}, chain(load(x, {Expr(0)}), 3))));
  EXPECT_EQ(few.find("let"), std::string::npos) << few;
}

TEST(NameValues, WhatHasANameGetsNoOther) {
  const Buffer y = make_buffer("y", DType::F32, {4}), x = make_buffer("x", DType::F32, {4});
  const Var v = make_var("v", DType::F32);
  const std::string s =
      to_text(name_values(let(v, chain(load(x, {Expr(0)}), 6), store(y, {Expr(0)}, Expr(v) * Expr(v)))));
  EXPECT_NE(s.find("let v = exp("), std::string::npos) << s;
}

}  // namespace
}  // namespace tc::name_values_test
