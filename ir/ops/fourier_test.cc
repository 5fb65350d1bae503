// Transforms as products give what their definitions say.
#include <gtest/gtest.h>

#include "ir/ops/evaluate.h"
#include "ir/ops/test_ops.h"

namespace tc::fourier_test {
namespace {

Constant integer(int64_t v) { return tensor_of(DType::I64, {}, {double(v)}); }

// Largest difference between the definition and its expansion; infinite if there is none.
double expansion_error(const std::string& op, std::vector<Constant> operands, Attrs attrs) {
  Graph g;
  std::vector<Value*> in = {g.add_input(ModelText("x"), ValueType::tensor(DType::F32, to_shape(operands[0]->dims)))};
  for (size_t k = 1; k < operands.size(); k++)
    in.push_back(operands[k] ? g.add_constant(ModelText("c" + std::to_string(k)), operands[k]) : nullptr);
  Node* n = g.append(op, in, {ModelText("y")}, std::move(attrs), "");
  infer_types(g, *n);
  g.set_outputs({n->outputs[0]});
  const Constant expected = evaluate(g, {operands[0]})[0];
  if (!find_op("", op)->expand(g, n)) return INFINITY;
  g.erase(n);
  const Constant got = evaluate(g, {operands[0]})[0];
  return got->dims == expected->dims ? max_error(values(got), values(expected)) : INFINITY;
}

Constant signal(const Dims& dims) { return random_tensor(DType::F32, dims, 3, 1, false); }

TEST(Fourier, TransformsBecomeProducts) {
  const auto flags = [](int64_t inverse, int64_t onesided) {
    return Attrs{{"inverse", inverse}, {"onesided", onesided}};
  };
  for (const int64_t n : {1, 2, 7, 12})
    for (const int64_t parts : {1, 2}) {
      EXPECT_LT(expansion_error("DFT", {signal({3, n, parts})}, flags(0, 0)), 1e-5);
      EXPECT_LT(expansion_error("DFT", {signal({n, 3, parts}), nullptr, integer(0)}, flags(1, 0)), 1e-5);
      EXPECT_LT(expansion_error("DFT", {signal({2, n, 3, parts}), nullptr, integer(-3)}, flags(0, parts == 1)), 1e-5);
      EXPECT_LT(expansion_error("DFT", {signal({3, n, parts}), integer(9)}, flags(0, 0)), 1e-5);  // cut, or filled up
      EXPECT_LT(expansion_error("DFT", {signal({3, n, parts}), integer(6)}, flags(1, 1)), 1e-5);
    }
}

TEST(Fourier, LongTransformsAreShortOnes) {
  const auto flags = [](int64_t inverse, int64_t onesided) {
    return Attrs{{"inverse", inverse}, {"onesided", onesided}};
  };
  for (const int64_t n : {420, 512, 525})
    for (const int64_t parts : {1, 2}) {
      EXPECT_LT(expansion_error("DFT", {signal({2, n, parts})}, flags(0, 0)), 1e-4);
      EXPECT_LT(expansion_error("DFT", {signal({n, 2, parts}), nullptr, integer(0)}, flags(1, 0)), 1e-5);
      EXPECT_LT(expansion_error("DFT", {signal({2, n, parts})}, flags(0, parts == 1)), 1e-4);
      for (const int64_t filled : {n - 20, n + 105})
        EXPECT_LT(expansion_error("DFT", {signal({2, n, parts}), integer(filled)}, flags(0, 0)), 1e-4);
      for (const int64_t real : {n, 2 * n - 1, 2 * n - 2, 2 * n + 14})  // odd and even, cut, filled up
        EXPECT_LT(expansion_error("DFT", {signal({2, n, parts}), integer(real)}, flags(1, 1)), 1e-5);
    }
}

// 2431 = 17 * 143, and 143 points are still too many for one product.
TEST(Fourier, ShortTransformsAreSplitAgain) { EXPECT_LT(expansion_error("DFT", {signal({1, 2431, 1})}, {}), 1e-4); }

TEST(Fourier, FramesBecomeAConvolution) {
  const Constant window = random_tensor(DType::F32, {6}, 4, 1, false);
  for (const int64_t onesided : {0, 1})
    for (const int64_t parts : {1, 2}) {
      if (onesided == 1 && parts == 2) continue;
      EXPECT_LT(expansion_error("STFT", {signal({2, 23, parts}), integer(4), window}, {{"onesided", onesided}}), 1e-5);
      EXPECT_LT(
          expansion_error("STFT", {signal({1, 20, parts}), integer(3), nullptr, integer(5)}, {{"onesided", onesided}}),
          1e-5);
    }
}

TEST(Fourier, LongPrimesStay) {
  Graph g;
  Value* x = g.add_input(ModelText("x"), ValueType::tensor(DType::F32, to_shape({1, 2053, 1})));
  Node* n = g.append("DFT", {x}, {ModelText("y")}, {}, "");
  infer_types(g, *n);
  EXPECT_FALSE(find_op("", "DFT")->expand(g, n));
}

}  // namespace
}  // namespace tc::fourier_test
