#include "passes/graph/constant_arithmetic.h"

#include <cmath>

#include "passes/graph/test_graph.h"

namespace tc::constant_arithmetic_test {
namespace {

/// Numbers of many sizes, so that every result is rounded.
Constant numbers(DType t, const Dims& dims, uint64_t seed) {
  MutableTensor m = new_tensor(t, dims);
  for (int64_t i = 0; i < num_elements(dims); ++i) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    const double v = std::ldexp(double(int64_t(seed) >> 11), int(seed % 40) - 60);
    if (t == DType::F32)
      m.as<float>()[i] = float(v);
    else
      m.as<double>()[i] = v;
  }
  return std::make_shared<const TensorData>(std::move(m.data));
}

/// The formula of the operator gives the same type, sizes and bits.
void expect_as_formula(const std::string& op, const std::vector<Constant>& operands, const Attrs& attrs = {}) {
  SCOPED_TRACE(op);
  TestGraph t;
  std::vector<Value*> in;
  for (size_t k = 0; k < operands.size(); ++k) in.push_back(t.constant("c" + std::to_string(k), operands[k]));
  const Graph g = t.out({t.op("y", op, in, attrs)});
  const Constant formula = evaluate(g, {}).at(0), direct = constant_arithmetic(op, operands, attrs);
  ASSERT_TRUE(direct);
  EXPECT_EQ(direct->dtype, formula->dtype);
  EXPECT_EQ(direct->dims, formula->dims);
  ASSERT_EQ(direct->num_bytes, formula->num_bytes);
  EXPECT_EQ(std::memcmp(direct->bytes.get(), formula->bytes.get(), formula->num_bytes), 0);
}

TEST(ConstantArithmetic, GivesTheBitsOfTheFormulas) {
  const std::vector<std::pair<Dims, Dims>> shapes = {{{}, {}},
                                                     {{5}, {}},
                                                     {{3, 1, 4}, {2, 1}},
                                                     {{4}, {3, 4}},
                                                     {{2, 3}, {2, 3}},
                                                     {{1, 3, 1, 1}, {3, 2, 2}},
                                                     {{0, 3}, {1, 3}},
                                                     {{7, 1, 1}, {7, 5, 3}}};
  for (DType t : {DType::F32, DType::F64}) {
    for (const auto& [a, b] : shapes)
      for (const char* op : {"Add", "Sub", "Mul", "Div"}) expect_as_formula(op, {numbers(t, a, 1), numbers(t, b, 2)});
    expect_as_formula("Reciprocal", {numbers(t, {3, 5}, 3)});
    expect_as_formula("Cast", {numbers(t, {3, 5}, 4)}, {{"to", int64_t(t == DType::F32 ? DType::F64 : DType::F32)}});
    expect_as_formula("Reshape", {numbers(t, {3, 4}, 5), int64_constant({2, 6})});
    expect_as_formula("Expand", {numbers(t, {1, 1}, 6), int64_constant({2, 1, 3})});
  }
  for (const std::vector<int64_t>& axes : {std::vector<int64_t>{0}, {1}, {0, 2}, {1, 2}, {0, 1, 2}})
    expect_as_formula("ReduceSum", {numbers(DType::F64, {5, 3, 7}, 7), int64_constant(axes)},
                      {{"keepdims", int64_t(0)}});
}

TEST(ConstantArithmetic, LeavesToFormulasWhatItDoesNotKnow) {
  const Constant f = numbers(DType::F32, {2, 3}, 1), d = numbers(DType::F64, {2, 3}, 1);
  EXPECT_FALSE(constant_arithmetic("Add", {f, d}, {}));
  EXPECT_FALSE(constant_arithmetic("Add", {f, nullptr}, {}));
  EXPECT_FALSE(constant_arithmetic("Add", {f, numbers(DType::F32, {2}, 1)}, {}));
  EXPECT_FALSE(constant_arithmetic("Pow", {f, f}, {}));
  EXPECT_FALSE(constant_arithmetic("Cast", {f}, {{"to", int64_t(DType::I32)}}));
  EXPECT_FALSE(constant_arithmetic("Reshape", {f, int64_constant({3, -1})}, {}));
  EXPECT_FALSE(constant_arithmetic("Reshape", {f, int64_constant({4})}, {}));
  EXPECT_FALSE(constant_arithmetic("Expand", {f, int64_constant({2, 2, 3})}, {}));
  EXPECT_FALSE(constant_arithmetic("ReduceSum", {f, int64_constant({0})}, {{"keepdims", int64_t(0)}}));
  EXPECT_FALSE(constant_arithmetic("ReduceSum", {d, int64_constant({-1})}, {{"keepdims", int64_t(0)}}));
  EXPECT_FALSE(constant_arithmetic("ReduceSum", {d, int64_constant({0})}, {}));
}

}  // namespace
}  // namespace tc::constant_arithmetic_test
