#include "ir/loop/data.h"

#include <gtest/gtest.h>

#include "ir/loop/build.h"
#include "ir/open_size.h"

namespace tc::data_test {
namespace {

// max(min(x[index], most), least)
Expr clamped(const Expr& index, int64_t most, int64_t least = 0) {
  const Buffer x = make_buffer("x", DType::I64, {Dim(7)});
  return max(min(load(x, {index}), Expr(most)), Expr(least));
}

TEST(Data, CountsAreNumbersInMemoryOfFewBits) {
  const Var i = make_var("i"), n = make_var("n");
  const auto is_data = [&](const Expr& value) {
    DataVars vars;
    note_name(vars, n, value);
    return holds_data(Expr(n), vars);
  };
  EXPECT_FALSE(is_data(clamped(0, 512)));
  EXPECT_FALSE(is_data(clamped(0, 512, 2)));
  EXPECT_FALSE(is_data(Expr(i) * Expr(4)));
  EXPECT_TRUE(is_data(clamped(Expr(i), 512))) << "an element: its powers may wrap";
  EXPECT_TRUE(is_data(clamped(0, int64_t(1) << 40)));
  EXPECT_TRUE(is_data(clamped(0, 512, -512)));
  EXPECT_FALSE(is_data(clamped(0, kOpenSize))) << "a size without an upper bound";
}

TEST(Data, WhatTheKernelStoredHasTheBitsOfItsType) {
  const Var n = make_var("n"), i = make_var("i");
  const auto is_data = [&](DType type, Scope scope, const Expr& value) {
    DataVars vars;
    note_name(vars, n, cast(DType::I64, load(make_buffer("order", type, {Dim(7)}, scope), {Expr(i)})));
    return holds_data(value, vars);
  };
  EXPECT_FALSE(is_data(DType::I32, Scope::Workspace, Expr(n) * Expr(16) + Expr(i)));
  EXPECT_TRUE(is_data(DType::I32, Scope::Workspace, Expr(n) * Expr(n) * Expr(n))) << "96 bits";
  EXPECT_TRUE(is_data(DType::I64, Scope::Workspace, Expr(n) * Expr(16)));
  EXPECT_TRUE(is_data(DType::I32, Scope::Global, Expr(n) * Expr(16))) << "an operand";
}

TEST(Data, SizesOfTheCallersAreCounts) {
  const Buffer n = make_buffer("n", DType::I64, {});
  const DataVars vars = {{}, {n.get()}};
  EXPECT_FALSE(holds_data(load(n, {}) * Expr(20) + Expr(1), vars));
  EXPECT_TRUE(holds_data(load(n, {}) * load(n, {}) * Expr(4), vars)) << "64 bits";
  EXPECT_TRUE(holds_data(load(n, {}) * Expr(20)));
}

TEST(Data, ProductsOfCountsAreDataWhereTheyMayWrap) {
  const Var n = make_var("n"), square = make_var("square"), i = make_var("i");
  DataVars vars;
  note_name(vars, n, clamped(0, INT32_MAX));
  note_name(vars, square, Expr(n) * Expr(n));
  EXPECT_FALSE(holds_data(Expr(square), vars)) << "62 bits";
  EXPECT_FALSE(holds_data(Expr(n) * Expr(i) * Expr(4096) + Expr(1), vars)) << "a place";
  EXPECT_TRUE(holds_data(Expr(square) * Expr(2), vars));
  EXPECT_TRUE(holds_data(Expr(square) * Expr(square), vars));
  EXPECT_TRUE(holds_data(Expr(n) * Expr(n) * Expr(n), vars));
  EXPECT_TRUE(holds_data(Expr(square) + Expr(square), vars));
  note_name(vars, n, clamped(0, kOpenSize));
  EXPECT_FALSE(holds_data(Expr(n) * Expr(1 << 20), vars));
  EXPECT_TRUE(holds_data(Expr(n) * Expr(1 << 30), vars));
}

}  // namespace
}  // namespace tc::data_test
