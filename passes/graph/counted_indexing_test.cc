// PyTorch's x[i, j] with numbers in order, and what only looks like it.
#include <gtest/gtest.h>

#include "ir/language/graph_text.h"
#include "passes/graph/test_counted.h"

namespace tc::counted_indexing_test {
namespace {

using namespace counted_testing;

struct Positions {
  bool swapped = false;    // x[j, i]
  int64_t added = 0;       // i * m + j + added
  bool by_rows = false;    // the step is n
  bool exclusive = false;  // j to m - 1 only
  bool joined = false;     // positions of one axis
};

/// Gather of a view of x: [n, m, 2] that joins the first two, at i * m + j.
Graph indexed(const Positions& p) {
  TestGraph t;
  Value* x = t.g.add_input(ModelText("x"), ValueType::tensor(DType::F32, {bounded("n", 1, 4), bounded("m", 1, 5), 2}));
  auto node = [&](const std::string& name, const std::string& op, std::vector<Value*> in, Attrs attrs = {}) {
    return t.g.append(op, std::move(in), {ModelText(name)}, std::move(attrs))->outputs[0];
  };
  const auto number = [&](const std::string& name, int64_t n) {
    return t.constant(name, scalar_constant(DType::I64, double(n)));
  };
  Value* sizes = node("sizes", "Shape", {x});
  Value* n = node("rows", "Gather", {sizes, number("first", 0)});
  Value* m = node("columns", "Gather", {sizes, number("second", 1)});
  Value *zero = number("zero", 0), *one = number("one", 1);
  Value* width = p.exclusive ? node("fewer", "Sub", {m, one}) : m;
  Value* i = node("i", "Unsqueeze", {node("is", "Range", {zero, n, one}), t.ints("i_axis", {p.swapped ? 0 : 1})});
  Value* j = node("j", "Unsqueeze", {node("js", "Range", {zero, width, one}), t.ints("j_axis", {p.swapped ? 1 : 0})});
  Value* at = node("at", "Add", {node("step", "Mul", {i, p.by_rows ? n : m}), j});
  if (p.added != 0) at = node("moved", "Add", {at, number("more", p.added)});
  if (p.joined) at = node("line", "Reshape", {at, t.ints("one_axis", {-1})});
  return t.out({node("y", "Gather", {node("joined", "Reshape", {x, t.ints("shape", {-1, 2})}), at})});
}

TEST(CountedIndexing, NumbersInOrderAreAView) {
  Graph g = indexed({});
  EXPECT_FALSE(run(g).has_errors());
  PassContext cx;
  dead_code(g, cx);
  const std::string text = to_text(g);
  EXPECT_EQ(text.find("Gather("), std::string::npos) << text;
  EXPECT_EQ(text.find("regroup"), std::string::npos) << text;
  std::vector<float> numbers(3 * 2 * 2);
  for (size_t k = 0; k < numbers.size(); k++) numbers[k] = float(k);
  const Constant y = evaluate_model(g, {make_constant(DType::F32, {3, 2, 2}, numbers.data())})[0];
  EXPECT_EQ(y->dims, (Dims{3, 2, 2}));
  EXPECT_EQ(std::vector<float>(y->as<float>(), y->as<float>() + y->size()), numbers);
}

TEST(CountedIndexing, OtherPositionsAreTaken) {
  for (const Positions& p : {Positions{.swapped = true}, Positions{.added = 1}, Positions{.by_rows = true},
                             Positions{.exclusive = true}, Positions{.joined = true}}) {
    Graph g = indexed(p);
    run(g);
    PassContext cx;
    dead_code(g, cx);
    EXPECT_NE(to_text(g).find("Gather("), std::string::npos) << to_text(g);
  }
}

// [n, m] -> [n m] -> [n, m]
TEST(CountedIndexing, AViewThatIsTakenBackMovesNothing) {
  TestGraph t;
  Value* x = t.g.add_input(ModelText("x"), ValueType::tensor(DType::F32, {bounded("n", 1, 4), bounded("m", 1, 5)}));
  auto node = [&](const std::string& name, const std::string& op, std::vector<Value*> in) {
    return t.g.append(op, std::move(in), {ModelText(name)})->outputs[0];
  };
  Value* line = node("line", "Reshape", {node("e", "Tanh", {x}), t.ints("one_axis", {-1})});
  Graph g = t.out({node("y", "Reshape", {line, node("sizes", "Shape", {x})})});
  EXPECT_FALSE(run(g).has_errors());
  PassContext cx;
  dead_code(g, cx);
  EXPECT_EQ(to_text(g).find("regroup"), std::string::npos) << to_text(g);
}

}  // namespace
}  // namespace tc::counted_indexing_test
