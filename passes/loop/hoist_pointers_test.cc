#include "passes/loop/hoist_pointers.h"

#include <gtest/gtest.h>

#include "ir/interpreter/test_arrays.h"
#include "ir/loop/build.h"
#include "ir/loop/print.h"

namespace tc::hoist_pointers_test {
namespace {

constexpr int64_t kRows = 4, kColumns = 32;

// for k: unroll i, v: acc[i, v] += x[i * 8 + k] * w[k * 32 + v], stored at the end
class HoistPointers : public ::testing::Test {
 protected:
  Floats x{"x", {kRows * 8}}, w{"w", {8 * kColumns}}, y{"y", {kRows * kColumns}};
  Buffer acc = make_buffer("acc", DType::F32, {Dim(kRows), Dim(kColumns)}, Scope::Register);
  Var k = make_var("k"), i = make_var("i"), v = make_var("v");

  Stmt tile(const Stmt& body) const {
    return loop(i, kRows, loop(v, kColumns, body, ForKind::Unroll), ForKind::Unroll);
  }
  Stmt product() const {
    const Expr term = load(x.buffer, {Expr(i) * 8 + Expr(k)}) * load(w.buffer, {Expr(k) * kColumns + Expr(v)});
    return tile(store(acc, {i, v}, term, Op::Add));
  }
  Stmt kernel(const Stmt& body) const {
    const Stmt begin = tile(store(acc, {i, v}, make_float(DType::F32, 0)));
    const Stmt end = tile(store(y.buffer, {Expr(i) * kColumns + Expr(v)}, load(acc, {i, v})));
    return alloc(acc, seq({begin, loop(k, 8, body), end}));
  }
  std::vector<float> result(const Stmt& s) {
    x.count(), w.count();
    run(s, {x.bind(), w.bind(), y.bind()});
    return y.data;
  }
};

TEST_F(HoistPointers, ATileReadsThroughOnePointerForEachBuffer) {
  const Stmt s = kernel(product()), hoisted = hoist_pointers(s);
  const std::string text = to_text(hoisted);
  EXPECT_NE(text.find("alias x_k: f32 = &x[k]\n"), std::string::npos) << text;
  EXPECT_NE(text.find("alias w_k: f32 = &w[k * 32]\n"), std::string::npos) << text;
  EXPECT_NE(text.find("acc[i, v] += x_k[i * 8] * w_k[v]\n"), std::string::npos) << text;
  EXPECT_EQ(result(hoisted), result(s));
}

// What a pointer would point to where the condition does not hold need not exist.
TEST_F(HoistPointers, PointersStandBehindTheConditionOfTheirTile) {
  const Expr term = load(x.buffer, {Expr(i) * 8 + Expr(k) - 1}) * load(w.buffer, {Expr(k) * kColumns + Expr(v)});
  const Stmt s = kernel(if_then(Expr(k) >= 1, tile(store(acc, {i, v}, term, Op::Add)))), hoisted = hoist_pointers(s);
  const std::string text = to_text(hoisted);
  const size_t condition = text.find("if "), pointer = text.find("alias x_k: f32 = &x[k - 1]\n");
  ASSERT_NE(pointer, std::string::npos) << text;
  EXPECT_LT(condition, pointer) << text;
  EXPECT_EQ(result(hoisted), result(s));
}

// Shared memory is an array of the text, whose elements need no pointer.
TEST_F(HoistPointers, SharedArraysAreReadAsTheyAre) {
  const Buffer copy = make_buffer("copy", DType::F32, {Dim(8 * kColumns)}, Scope::Shared);
  const Expr term = load(x.buffer, {Expr(i) * 8 + Expr(k)}) * load(copy, {Expr(k) * kColumns + Expr(v)});
  const std::string text = to_text(hoist_pointers(alloc(copy, kernel(tile(store(acc, {i, v}, term, Op::Add))))));
  EXPECT_NE(text.find("acc[i, v] += x_k[i * 8] * copy[k * 32 + v]\n"), std::string::npos) << text;
}

// x[k * 4 + i + at], with `at` from memory: as far as that is known to lie inside of x.
TEST_F(HoistPointers, BesideANumberFromMemoryPointersStayInside) {
  const Buffer at = make_buffer("at", DType::I64, {Dim(8)});
  const auto with = [&](int64_t stride) {
    const Expr place = Expr(k) * stride + Expr(i) + load(at, {Expr(k)});
    return to_text(hoist_pointers(kernel(tile(store(acc, {i, v}, load(x.buffer, {place}))))));
  };
  EXPECT_NE(with(4).find("alias x_k: f32 = &x[k * 4]\n"), std::string::npos) << with(4);
  EXPECT_NE(with(4).find("x_k[i + at[k]]"), std::string::npos) << with(4);
  EXPECT_EQ(with(5).find("alias x"), std::string::npos) << with(5);  // 35 of 32 elements
  EXPECT_EQ(with(-1).find("alias x"), std::string::npos) << with(-1);
}

// x[y[i]]: no base and constant.
TEST_F(HoistPointers, IndexesThatAreReadStay) {
  const Stmt s = kernel(
      tile(store(acc, {i, v}, load(x.buffer, {cast(DType::I64, load(w.buffer, {Expr(k) * kColumns + Expr(i)}))}))));
  EXPECT_EQ(to_text(hoist_pointers(s)).find("alias x"), std::string::npos);
}

}  // namespace
}  // namespace tc::hoist_pointers_test
