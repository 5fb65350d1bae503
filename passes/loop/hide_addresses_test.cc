#include "passes/loop/hide_addresses.h"

#include <gtest/gtest.h>

#include "ir/loop/build.h"
#include "ir/loop/print.h"
#include "ir/loop/visit.h"

namespace tc {
namespace {

// for k in 0 .. +steps: alias x_k = &x[k * step]; unroll i in 0 .. +rows: acc[i] += x_k[i * apart]
std::string tile(int64_t steps, int64_t step, int64_t rows, int64_t apart) {
  const Buffer x = make_buffer("x", DType::F32, {4096}), x_k = make_buffer("x_k", DType::F32, {4096}),
               acc = make_buffer("acc", DType::F32, {Dim(rows)}, Scope::Register);
  const Var k = make_var("k"), i = make_var("i");
  const Stmt add = store(acc, {Expr(i)}, load(x_k, {Expr(i) * Expr(apart)}), Op::Add);
  return to_text(
      hide_addresses(loop(k, steps, alias(x_k, x, Expr(k) * Expr(step), loop(i, rows, add, ForKind::Unroll)))));
}
bool hides(const std::string& text) { return text.find("hide_address") != std::string::npos; }

TEST(HideAddresses, RowsThatAreReadAgainSoon) {
  EXPECT_TRUE(hides(tile(9, 1, 14, 3)));
  EXPECT_TRUE(hides(tile(9, 1, 4, 8)));
  EXPECT_TRUE(hides(tile(9, 2, 14, 6)));
}

TEST(HideAddresses, RowsThatNoIterationReadsAgain) {
  EXPECT_FALSE(hides(tile(9, 1, 14, 64)));  // far apart
  EXPECT_FALSE(hides(tile(3, 1, 14, 3)));   // behind the last iteration
  EXPECT_FALSE(hides(tile(9, 2, 14, 3)));   // between what iterations read
  EXPECT_FALSE(hides(tile(9, 1, 3, 3)));    // few enough for registers
}

// The pointer of an inner loop does not move with the outer one alone.
TEST(HideAddresses, EachLoopLooksAtItsOwnPointers) {
  const Buffer x = make_buffer("x", DType::F32, {4096}), x_k = make_buffer("x_k", DType::F32, {4096}),
               acc = make_buffer("acc", DType::F32, {14}, Scope::Register);
  const Var o = make_var("o"), k = make_var("k"), i = make_var("i");
  const Stmt rows = loop(i, 14, store(acc, {Expr(i)}, load(x_k, {Expr(i) * 3}), Op::Add), ForKind::Unroll);
  const Stmt s = loop(o, 9, loop(k, 9, alias(x_k, x, Expr(o) + Expr(k) * 64, rows)));
  EXPECT_TRUE(hide_addresses(s).same_as(s));
}

}  // namespace
}  // namespace tc
