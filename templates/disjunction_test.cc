// Truths that become shorter are the same for all values, NaN among them.
#include "templates/disjunction.h"

#include <gtest/gtest.h>

#include <limits>

#include "ir/interpreter.h"
#include "ir/loop/build.h"
#include "ir/loop/print.h"
#include "ir/loop/visit.h"

namespace tc::disjunction_test {
namespace {

const Var kX = make_var("x", DType::F32), kY = make_var("y", DType::F32);
Expr nan_of(const Var& v) { return apply(Op::IsNan, {Expr(v)}); }
Expr more() { return Expr(kX) > Expr(kY); }
Expr equal() { return eq(Expr(kX), Expr(kY)); }
Expr truth(bool b) { return make_int(DType::Bool, b); }
Expr either(const Expr& a, const Expr& b) { return apply(Op::Or, {a, b}); }
Expr all(const Expr& a, const Expr& b) { return apply(Op::And, {a, b}); }

/// What ArgMax asks, where ties are decided.
Expr first_wins(bool of_equal_ones) {
  const Expr better = either(more(), all(nan_of(kX), logical_not(nan_of(kY))));
  return either(better, all(either(equal(), all(nan_of(kX), nan_of(kY))), truth(of_equal_ones)));
}

bool holds(const Expr& e, float x, float y) {
  TensorFn fn;
  Stage s;
  s.name = "truth";
  s.values = {cast(DType::I64, substitute(e, {{kX.get(), make_float(DType::F32, double(x))},
                                              {kY.get(), make_float(DType::F32, double(y))}}))};
  s.outputs = {make_buffer("truth", DType::I64, {})};
  fn.outputs = s.outputs;
  fn.stages = {s};
  return evaluate(fn, {})[0]->as_int(0) != 0;
}

void expect_same(const Expr& e) {
  const float values[] = {-std::numeric_limits<float>::infinity(), -1, 0, 2, std::numeric_limits<float>::infinity(),
                          std::numeric_limits<float>::quiet_NaN()};
  for (const float x : values)
    for (const float y : values) EXPECT_EQ(holds(e, x, y), holds(shorter(e), x, y)) << x << " " << y;
}

TEST(Disjunction, BecomesShorter) {
  EXPECT_EQ(to_text(shorter(first_wins(true))), "x >= y || isnan(x)");
  EXPECT_EQ(to_text(shorter(first_wins(false))), "x > y || isnan(x) && !isnan(y)");
  EXPECT_EQ(to_text(shorter(either(more(), truth(true)))), "true");
  EXPECT_EQ(to_text(shorter(all(more(), truth(false)))), "false");
  EXPECT_EQ(to_text(shorter(either(more(), all(more(), equal())))), "x > y");
}

TEST(Disjunction, SaysTheSame) {
  for (const bool b : {false, true}) expect_same(first_wins(b));
  expect_same(either(all(more(), nan_of(kX)), all(logical_not(nan_of(kX)), more())));
  expect_same(all(either(more(), equal()), either(nan_of(kX), equal())));
  expect_same(either(Expr(kX) < Expr(kY), equal()));
}

}  // namespace
}  // namespace tc::disjunction_test
