// Fills inside of sums, and those that stay.
#include "templates/fills.h"

#include "ir/language/function_text.h"
#include "templates/cpu/test_schedule.h"

namespace tc::fills_test {
namespace {

/// A function of `stages` that reads x: f32[4, 3, 8] and a count.
TensorFn function(const std::string& stages, const std::string& results = "y: f32[]") {
  language::Problems problems;
  const auto fn = language::parse_function("fn f(x: f32[4, 3, 8], n: i64[]) -> " + results + "\n" + stages, problems);
  EXPECT_TRUE(fn);
  return fn.value_or(TensorFn{});
}

constexpr const char* kFilled = "  filled: f32[i: 4, j: 3, k: 8] = where(i < n[], x[i, j, k], 0.0)\n";
constexpr const char* kSum = "  y: f32[] = sum(r: 4, s: 3, t: 8) filled[r, s, t]\n";

TEST(Fills, TheOnlySumThatReadsAFillTakesItIn) {
  const TensorFn fn = function(std::string(kFilled) + kSum);
  EXPECT_EQ(with_fills_inside(fn).stages.size(), 1u);
  testing::TestFunction f{fn, {false, false}};
  const int64_t n = 2;
  testing::expect_equal(f, "rows", "x86-64-v4",
                        {testing::small_integers({4, 3, 8}, 1), make_constant(DType::I64, {}, &n)});
}

TEST(Fills, OneAfterTheOther) {
  const TensorFn fn = function(std::string(kFilled) +
                               "  again: f32[i: 4, j: 3, k: 8] = where(j < n[], filled[i, j, k], -1.0)\n"
                               "  y: f32[] = sum(r: 4, s: 3, t: 8) again[r, s, t]\n");
  EXPECT_EQ(with_fills_inside(fn).stages.size(), 1u);
}

TEST(Fills, OthersStay) {
  const std::string fill = kFilled, sum = kSum;
  const auto axis = [](const char* condition) {
    return std::string("  filled: f32[i: 4, j: 3, k: 8] = where(") + condition + ", x[i, j, k], 0.0)\n";
  };
  const auto remain = [](const TensorFn& fn) { return with_fills_inside(fn).stages.size() == fn.stages.size(); };
  EXPECT_TRUE(remain(function(axis("k < n[]") + sum)));  // within a vector
  EXPECT_TRUE(remain(function("  filled: f32[i: 4, j: 3, k: 8] = where(i < n[], exp(x[i, j, k]), 0.0)\n" + sum)));
  EXPECT_TRUE(remain(function("  filled: f32[i: 4, j: 3, k: 8] = where(i < n[], x[i, j, k], x[0, j, k])\n" + sum)));
  EXPECT_TRUE(remain(function(fill + "  y: f32[] = sum(r: 4, s: 3, t: 8) filled[r, s, t] * x[r, s, t]\n")));
  EXPECT_TRUE(remain(function(fill + "  y: f32[] = sum(r: 4, s: 3, t: 8) filled[r, s, 7 - t]\n")));
  EXPECT_TRUE(remain(function(fill + "  y: f32[m: 3] = sum(r: 4, t: 8) filled[r, m, t]\n", "y: f32[3]")));
  EXPECT_TRUE(remain(function(fill + sum + "  z: f32[] = y[] + filled[0, 0, 0]\n", "z: f32[]")));
  EXPECT_TRUE(remain(function(fill + sum, "filled: f32[4, 3, 8], y: f32[]")));
}

}  // namespace
}  // namespace tc::fills_test
