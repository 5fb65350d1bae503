// DFT along axes whose sizes the run has.
#include <gtest/gtest.h>

#include <algorithm>

#include "passes/graph/test_counted.h"

namespace tc::counted_fourier_test {
namespace {

using namespace counted_testing;

// Of an x: f32[n, parts] of these numbers, where n is from `least` to 6.
std::vector<double> transformed(int64_t least, const std::vector<float>& x, int64_t parts, const Attrs& attrs,
                                std::optional<int64_t> length = std::nullopt) {
  TestGraph t;
  Dim rows = Dim::symbolic("n", 6);
  rows.least = least;
  Value* in = t.g.add_input(ModelText("x"), ValueType::tensor(DType::F32, {rows, parts}));
  Value* n = length ? t.constant("length", scalar_constant(DType::I64, double(*length))) : nullptr;
  Value* axis = t.constant("axis", scalar_constant(DType::I64, 0));
  Graph g = t.out({t.g.append("DFT", {in, n, axis}, {ModelText("y")}, attrs)->outputs[0]});
  const Diagnostics d = run(g);
  EXPECT_FALSE(d.has_errors()) << (d.list().empty() ? "" : d.list()[0].message);
  const Constant y = evaluate_model(g, {make_constant(DType::F32, {int64_t(x.size()) / parts, parts}, x.data())})[0];
  std::vector<double> list;
  for (int64_t k = 0; k < y->size(); k++) list.push_back(y->as_double(k));
  return list;
}

void expect_near(const std::vector<double>& got, const std::vector<double>& want) {
  ASSERT_EQ(got.size(), want.size());
  for (size_t k = 0; k < want.size(); k++) EXPECT_NEAR(got[k], want[k], 1e-5) << k;
}

TEST(CountedFourier, IsThatOfTheElementsThatAreThere) {
  expect_near(transformed(1, {1, 2, 3, 4}, 1, {}), {10, 0, -2, 2, -2, 0, -2, -2});
  expect_near(transformed(1, {1, 2}, 1, {}), {3, 0, -1, 0});
  expect_near(transformed(0, {1}, 1, {}), {1, 0});
  expect_near(transformed(0, {}, 1, {}), {});
  expect_near(transformed(1, {1, 2, 3, 4}, 1, {{"onesided", int64_t(1)}}), {10, 0, -2, 2, -2, 0});
}

TEST(CountedFourier, OfAKnownLengthHasZerosBehindThem) {
  expect_near(transformed(1, {1, 2, 3}, 1, {}, 4), {6, 0, -2, -2, 2, 0, -2, 2});
  expect_near(transformed(1, {1, 2, 3, 4, 5, 6}, 1, {}, 2), {3, 0, -1, 0});
}

TEST(CountedFourier, TheWayBackIsReal) {
  const std::vector<float> bins = {10, 0, -2, 2, -2, 0};  // of 1, 2, 3, 4
  const Attrs back = {{"inverse", int64_t(1)}, {"onesided", int64_t(1)}};
  expect_near(transformed(2, bins, 2, back), {1, 2, 3, 4});
  expect_near(transformed(2, {10, 0, -2, 2}, 2, back), {4, 6});
  expect_near(transformed(1, bins, 2, back, 4), {1, 2, 3, 4});
}

}  // namespace
}  // namespace tc::counted_fourier_test
