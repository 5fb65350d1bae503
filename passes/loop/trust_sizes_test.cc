#include "passes/loop/trust_sizes.h"

#include <gtest/gtest.h>

#include "ir/loop/build.h"
#include "ir/loop/print.h"
#include "passes/program/checked_sizes.h"

namespace tc::trust_sizes_test {
namespace {

struct SizedLoop {
  Buffer count = make_buffer("count", DType::I64, {Dim(1)}), y = make_buffer("y", DType::F32, {Dim(64)});
  Var i = make_var("i"), n = make_var("n"), m = make_var("m");
  Expr size() const { return load(count, {Expr(0)}); }
  static Expr held(const Expr& e, int64_t least, int64_t most) { return max(min(e, Expr(most)), Expr(least)); }

  /// let n = count within 0 .. 64: let m = count within 1 .. 64: for i in 0 .. +n: y[i] = m
  Stmt body() const {
    const Stmt nest = loop(i, Expr(n), store(y, {Expr(i)}, cast(DType::F32, Expr(m))));
    return let(n, held(size(), 0, 64), let(m, held(size(), 1, 64), nest));
  }
  std::string text(int64_t least, int64_t most, bool by_value = false) const {
    Kernel k;
    k.params = {{Param::Role::Input, count, {1}, ""}};
    k.params[0].by_value = by_value;
    k.checked_sizes = {{count, least, most}};
    return to_text(trust_sizes(body(), k));
  }
};

TEST(TrustSizes, WhatTheRunHasCheckedIsNotAskedAgain) {
  EXPECT_EQ(SizedLoop().text(1, 64),
            "let n = count[0]\n"
            "for i in 0 .. +n:\n"
            "  y[i] = f32(n)\n");
  EXPECT_EQ(SizedLoop().text(0, 64),  // may be 0
            "let n = count[0]\n"
            "let m = max(n, 1)\n"
            "for i in 0 .. +n:\n"
            "  y[i] = f32(m)\n");
  EXPECT_EQ(SizedLoop().text(1, 64, true),  // a number has a name
            "for i in 0 .. +count[0]:\n"
            "  y[i] = f32(count[0])\n");
}

TEST(TrustSizes, ALargerSizeKeepsItsBound) {
  EXPECT_NE(SizedLoop().text(1, 65).find("min(count[0], 64)"), std::string::npos);
}

TEST(TrustSizes, OnlyWhatEveryCallPassesAsASizeIsChecked) {
  Program p;
  IoTensor size, tensor;
  size.is_size = true, size.least = 1, size.most = 9;
  p.inputs = {size, size, tensor};
  p.inputs[1].most = 20;
  Kernel k;
  k.params = {{Param::Role::Input, SizedLoop().count, {1}, ""}};
  p.kernels = {k, k};
  const auto call = [&](int kernel, int input) {
    Call c;
    c.kernel = kernel;
    c.operands = {{Operand::Kind::Input, input}};
    p.steps.push_back({c});
  };
  call(0, 0), call(0, 1), call(1, 0), call(1, 2);
  find_checked_sizes(p);
  ASSERT_EQ(p.kernels[0].checked_sizes.size(), 1U);
  EXPECT_EQ(p.kernels[0].checked_sizes[0].most, 20);
  EXPECT_TRUE(p.kernels[1].checked_sizes.empty());
}

}  // namespace
}  // namespace tc::trust_sizes_test
