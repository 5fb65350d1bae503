#include "ir/interpreter/strings.h"

#include <gtest/gtest.h>

#include "ir/interpreter.h"
#include "ir/loop/build.h"
#include "ir/loop/operand_mismatch.h"
#include "ir/verify.h"

namespace tc::strings_test {
namespace {

using interp::StringPool;

TEST(Strings, EqualOnesHaveOneHandleAndTheEmptyOneIsZero) {
  StringPool pool;
  const std::string zeros("a\0b", 3);
  EXPECT_EQ(pool.handle(""), 0);
  EXPECT_EQ(pool.handle(zeros), pool.handle(zeros));
  EXPECT_NE(pool.handle(zeros), pool.handle("a"));
  EXPECT_EQ(StringPool::text(pool.handle(zeros)), zeros);
  const Constant c = string_constant({2, 2}, {"p", "", zeros, "p"});
  EXPECT_EQ(StringPool::constant(pool.elements(*c))->strings, c->strings);
}

// y[i] = op(a[i], b[i])
std::vector<int64_t> compared(Op op, const Constant& a, const Constant& b) {
  TensorFn fn;
  fn.inputs = {make_buffer("a", DType::String, to_shape(a->dims)), make_buffer("b", DType::String, to_shape(b->dims))};
  const Buffer y = make_buffer("y", DType::Bool, to_shape(a->dims));
  const Var i = make_var("i");
  Stage s;
  s.name = "compare";
  s.axes = {{i, Dim(a->size())}};
  s.values = {apply(op, {load(fn.inputs[0], {Expr(i)}), load(fn.inputs[1], {Expr(i)})})};
  s.outputs = {y};
  fn.stages = {s};
  fn.outputs = {y};
  verify(fn);
  return evaluate(fn, {a, b})[0]->as_ints();
}

TEST(Strings, AreOrderedByTheirBytes) {
  const Constant a = string_constant({5}, {"a", "", "a", "\xff", std::string("a\0", 2)}),
                 b = string_constant({5}, {"a", "a", "ab", "z", "a"});
  EXPECT_EQ(compared(Op::Eq, a, b), (std::vector<int64_t>{1, 0, 0, 0, 0}));
  EXPECT_EQ(compared(Op::Ne, a, b), (std::vector<int64_t>{0, 1, 1, 1, 1}));
  EXPECT_EQ(compared(Op::Lt, a, b), (std::vector<int64_t>{0, 1, 1, 0, 0}));
  EXPECT_EQ(compared(Op::Le, a, b), (std::vector<int64_t>{1, 1, 1, 0, 0}));
  EXPECT_EQ(compared(Op::Gt, a, b), (std::vector<int64_t>{0, 0, 0, 1, 1}));
  EXPECT_EQ(compared(Op::Ge, a, b), (std::vector<int64_t>{1, 0, 0, 1, 1}));
}

TEST(Strings, AreNoNumbers) {
  const Buffer x = make_buffer("x", DType::String, {Dim(3)}), n = make_buffer("n", DType::I64, {Dim(3)});
  const Expr s = load(x, {0});
  EXPECT_THROW(s + s, OperandMismatch);
  EXPECT_THROW(apply(Op::Not, {s}), OperandMismatch);
  EXPECT_THROW(max(s, s), OperandMismatch);
  EXPECT_THROW(cast(DType::I64, s), OperandMismatch);
  EXPECT_THROW(cast(DType::String, load(n, {0})), OperandMismatch);
  EXPECT_THROW(bitcast(DType::C128, s), OperandMismatch);
  EXPECT_THROW(eq(s, load(n, {0})), OperandMismatch);
  EXPECT_THROW(store(x, {0}, s, Op::Max), OperandMismatch);
  EXPECT_THROW(lowest(DType::String), OperandMismatch);
  EXPECT_THROW(highest(DType::String), OperandMismatch);
  EXPECT_THROW(make_const(DType::String, 1), OperandMismatch);
}

}  // namespace
}  // namespace tc::strings_test
