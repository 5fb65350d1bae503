#include <gtest/gtest.h>

#include "ir/ops/test_ops.h"

namespace tc::contraction_test {
namespace {

using Ints = std::vector<int64_t>;

// Sums over every label by brute force.
std::vector<double> einsum_reference(const std::string& in, const std::string& out, const std::vector<Constant>& x) {
  std::vector<std::string> terms = {""};
  for (char c : in) c == ',' ? terms.push_back("") : terms.back().push_back(c);
  std::map<char, int64_t> extents;
  for (size_t k = 0; k < terms.size(); k++)
    for (size_t d = 0; d < terms[k].size(); d++) extents[terms[k][d]] = x[k]->dims[d];
  std::string labels = out;
  for (const auto& [l, n] : extents)
    if (labels.find(l) == std::string::npos) labels += l;
  Dims all, result;
  for (char l : labels) all.push_back(extents[l]);
  for (char l : out) result.push_back(extents[l]);
  std::vector<double> y(size_t(num_elements(result)), 0.0);
  for_each_index(all, [&](const Dims& i) {
    double p = 1;
    for (size_t k = 0; k < terms.size(); k++) {
      Dims index;
      for (char l : terms[k]) index.push_back(i[labels.find(l)]);
      p *= at(x[k], index);
    }
    int64_t flat = 0;
    for (size_t d = 0; d < out.size(); d++) flat = flat * result[d] + i[d];
    y[size_t(flat)] += p;
  });
  return y;
}

TEST(Einsum, MatchesBruteForce) {
  const struct {
    std::string in, out;
    std::vector<Dims> shapes;
  } cases[] = {{"ij,jk", "ik", {{2, 3}, {3, 4}}},
               {"ii", "i", {{3, 3}}},
               {"ii", "", {{3, 3}}},
               {"i,j,k", "kji", {{2}, {3}, {4}}},
               {"bij,bjk,bkl", "bil", {{2, 3, 4}, {2, 4, 5}, {2, 5, 3}}},
               {"iij,jk", "ik", {{3, 3, 2}, {2, 4}}},
               {"ij,ij", "", {{2, 3}, {2, 3}}}};
  for (const auto& c : cases) {
    std::vector<Constant> x;
    for (size_t k = 0; k < c.shapes.size(); k++) x.push_back(random_tensor(DType::F32, c.shapes[k], int(k) + 1));
    const auto y = run_op({"Einsum", x, {{"equation", c.in + "->" + c.out}}});
    EXPECT_EQ(values(y[0]), einsum_reference(c.in, c.out, x)) << c.in;
  }
}

TEST(Einsum, EllipsisBroadcastsAndImplicitOutputIsSorted) {
  const Constant a = random_tensor(DType::F32, {2, 1, 2, 3}, 1), b = random_tensor(DType::F32, {4, 3, 2}, 2);
  const auto y = run_op({"Einsum", {a, b}, {{"equation", std::string("...ij, ...jk")}}});
  EXPECT_EQ(y[0]->dims, (Dims{2, 4, 2, 2}));
  EXPECT_EQ(values(y[0]), values(run_op({"MatMul", {a, b}})[0]));
  EXPECT_EQ(run_op({"Einsum", {random_tensor(DType::F32, {2, 3}, 1)}, {{"equation", std::string("ba")}}})[0]->dims,
            (Dims{3, 2}));
  EXPECT_EQ(op_error({"Einsum", {a}, {{"equation", std::string("ij->ij")}}}),
            "equation: the term names 2 axes, the input has 4");
}

TEST(MatMul, FollowsNumpy) {
  const struct {
    Dims a, b, y;
  } cases[] = {
      {{3}, {3}, {}}, {{3}, {2, 3, 4}, {2, 4}}, {{5, 1, 2, 3}, {4, 3, 2}, {5, 4, 2, 2}}, {{2, 2, 3}, {3}, {2, 2}}};
  for (const auto& c : cases)
    EXPECT_EQ(run_op({"MatMul", {random_tensor(DType::F32, c.a, 1), random_tensor(DType::F32, c.b, 2)}})[0]->dims, c.y);
  EXPECT_EQ(op_error({"MatMul", {random_tensor(DType::F32, {2, 3}, 1), random_tensor(DType::F32, {4, 2}, 2)}}),
            "the inner sizes differ: 3 against 4");
}

TEST(MatMul, SumsNarrowFloatsInSingle) {
  // 4096 ones: an f16 accumulator would stop at 2048.
  const auto y = run_op({"MatMul",
                         {tensor_of(DType::F16, {1, 4096}, std::vector<double>(4096, 1)),
                          tensor_of(DType::F16, {4096, 1}, std::vector<double>(4096, 1))}});
  EXPECT_EQ(y[0]->dtype, DType::F16);
  EXPECT_EQ(values(y[0]), std::vector<double>{4096});
}

TEST(Gemm, ScalesTransposesAndBroadcasts) {
  for (int64_t ta : {0, 1})
    for (int64_t tb : {0, 1})
      for (const Dims& shape : {Dims{}, Dims{4}, Dims{3, 1}, Dims{3, 4}}) {
        const Constant a = random_tensor(DType::F32, ta ? Dims{5, 3} : Dims{3, 5}, 1);
        const Constant b = random_tensor(DType::F32, tb ? Dims{4, 5} : Dims{5, 4}, 2),
                       c = random_tensor(DType::F32, shape, 3);
        const auto y = run_op({"Gemm", {a, b, c}, {{"transA", ta}, {"transB", tb}, {"alpha", 0.5f}, {"beta", 2.0f}}});
        std::vector<double> want;
        for_each_index({3, 4}, [&](const Dims& i) {
          double sum = 0;
          for (int64_t k = 0; k < 5; k++)
            sum += at(a, ta ? Dims{k, i[0]} : Dims{i[0], k}) * at(b, tb ? Dims{i[1], k} : Dims{k, i[1]});
          Dims ci;
          for (size_t d = 0; d < shape.size(); d++) ci.push_back(shape[d] == 1 ? 0 : i[2 - shape.size() + d]);
          want.push_back(0.5 * sum + 2 * at(c, ci));
        });
        EXPECT_EQ(values(y[0]), want);
      }
}

TEST(MatMulInteger, TakesZeroPointsPerRowAndColumn) {
  const Constant a = random_tensor(DType::U8, {2, 3}, 1, 100), b = random_tensor(DType::I8, {3, 2}, 2, 100);
  const Constant za = tensor_of(DType::U8, {2}, {3, 250}), zb = tensor_of(DType::I8, {2}, {-7, 9});
  const auto y = run_op({"MatMulInteger", {a, b, za, zb}});
  std::vector<double> want;
  for_each_index({2, 2}, [&](const Dims& i) {
    double sum = 0;
    for (int64_t k = 0; k < 3; k++) sum += (at(a, {i[0], k}) - at(za, {i[0]})) * (at(b, {k, i[1]}) - at(zb, {i[1]}));
    want.push_back(sum);
  });
  EXPECT_EQ(values(y[0]), want);
}

TEST(QLinearMatMul, RoundsHalfToEvenBeforeTheZeroPoint) {
  auto scale = [](double v) { return tensor_of(DType::F32, {}, {v}); };
  auto zero = [](double v) { return tensor_of(DType::U8, {}, {v}); };
  const auto y = run_op({"QLinearMatMul",
                         {tensor_of(DType::U8, {3, 1}, {1, 3, 200}), scale(0.5), zero(0),
                          tensor_of(DType::U8, {1, 1}, {3}), scale(1), zero(0), scale(1), zero(7)}});
  EXPECT_EQ(values(y[0]), (std::vector<double>{2 + 7, 4 + 7, 255}));
}

}  // namespace
}  // namespace tc::contraction_test
