// Shapes of tensors whose size depends on data: merged and split axes, and sizes that are read.
#include <gtest/gtest.h>

#include "passes/graph/test_counted.h"

namespace tc::counted_shapes_test {
namespace {

using namespace counted_testing;

TEST(CountedShapes, ShapesThatHoldACountGiveTensorsWithThatCount) {
  const int64_t five = 5;
  for (const bool expand : {false, true}) {
    Graph g = counted([&](TestGraph& t, auto node, Value*, Value* rows) {
      Value* shape = node("shape", "Shape", {rows});
      Value* made = expand
                        ? node("made", "Expand", {t.constant("v", make_constant(DType::I64, {1, 1}, &five)), shape})
                        : node("made", "ConstantOfShape", {shape}, {{"value", make_constant(DType::I64, {1}, &five)}});
      return node("y", "Add", {made, rows});  // counted by the same number
    });
    EXPECT_FALSE(run(g).has_errors()) << expand;
    EXPECT_EQ(whole(results(g, {0, 3, 0, 5, 0, 0})[0]), (std::vector<int64_t>{6, 8})) << expand;
  }
}

TEST(CountedShapes, AxesBehindTheCountedOneAreMergedAndSplitAgain) {
  Graph g = counted([](TestGraph& t, auto node, Value*, Value* rows) {  // i64[n, 1]
    const int64_t tens[3] = {0, 10, 20};
    Value* wide = node("wide", "Add", {rows, t.constant("tens", make_constant(DType::I64, {3}, tens))});
    Value* flat = node("flat", "Reshape", {wide, t.ints("all", {-1})});
    Value* last = node("last", "ReduceMax", {flat, t.ints("first", {0})});
    Value* back = node("back", "Reshape", {node("sum", "Add", {flat, last}), t.ints("threes", {-1, 3})});
    return node("y", "Add", {back, rows});  // counted by the same number again
  });
  EXPECT_FALSE(run(g).has_errors());
  const Constant y = results(g, {0, 3, 0, 5, 0, 0})[0];
  EXPECT_EQ(y->dims, (Dims{2, 3}));
  EXPECT_EQ(whole(y), (std::vector<int64_t>{25, 35, 45, 29, 39, 49}));
}

TEST(CountedShapes, AxesInFrontOfTheCountedOneAreMergedAndSplitAgain) {
  const auto two_rows = [](TestGraph& t, auto node, Value* rows) {  // i64[2, n]
    const int64_t tens[2] = {0, 10};
    Value* line = node("line", "Reshape", {rows, t.ints("line_shape", {1, -1})});
    return node("two", "Add", {line, t.constant("tens", make_constant(DType::I64, {2, 1}, tens))});
  };
  Graph g = counted([&](TestGraph& t, auto node, Value*, Value* rows) {
    return node("y", "Reshape", {two_rows(t, node, rows), t.ints("all", {-1})});
  });
  EXPECT_FALSE(run(g).has_errors());
  EXPECT_EQ(whole(results(g, {0, 3, 0, 5, 7, 0})[0]), (std::vector<int64_t>{1, 3, 4, 11, 13, 14}));
  EXPECT_EQ(results(g, {0, 0, 0, 0, 0, 0})[0]->dims, Dims{0});
  Graph h = counted([&](TestGraph& t, auto node, Value*, Value* rows) {
    Value* flat = node("flat", "Reshape", {two_rows(t, node, rows), t.ints("all", {-1})});
    Value* y = node("y", "Reshape", {flat, t.ints("halves", {2, -1})});
    return node("z", "Transpose", {y});
  });
  EXPECT_FALSE(run(h).has_errors());
  EXPECT_EQ(whole(results(h, {0, 3, 0, 5, 7, 0})[0]), (std::vector<int64_t>{1, 11, 3, 13, 4, 14}));
}

TEST(CountedShapes, FlattenAndComputedShapesMultiplyCounts) {
  const int64_t zeros[3] = {0, 0, 0};
  for (const int way : {0, 1, 2, 3}) {
    Graph g = counted([&](TestGraph& t, auto node, Value*, Value* rows) {
      Value* wide = node("wide", "Add", {rows, t.constant("zeros", make_constant(DType::I64, {3}, zeros))});
      if (way == 0) return node("y", "Flatten", {wide}, {{"axis", int64_t(2)}});
      Value* sizes = node("sizes", "Shape", {wide});
      Value* n = node("n", "Gather", {sizes, t.ints("zero", {0})});
      if (way == 1)
        return node("y", "Reshape", {wide, node("all", "Mul", {n, node("w", "Gather", {sizes, t.ints("one", {1})})})});
      Value* more = node("more", "Concat", {t.ints("front", {1}), n, t.ints("open", {-1})}, {{"axis", int64_t(0)}});
      Value* back = node("back", "Reshape", {wide, more});
      return way == 2 ? back : node("y", "Squeeze", {back, t.ints("first", {0})});
    });
    EXPECT_FALSE(run(g).has_errors()) << way;
    const Constant y = results(g, {0, 3, 0, 5, 0, 0})[0];
    const std::vector<Dims> dims = {{6, 1}, {6}, {1, 2, 3}, {2, 3}};
    EXPECT_EQ(y->dims, dims[size_t(way)]);
    EXPECT_EQ(whole(y), (std::vector<int64_t>{1, 1, 1, 3, 3, 3})) << way;
  }
}

TEST(CountedShapes, ASizeThatIsNoCountIsKnown) {
  Graph g = counted([](TestGraph& t, auto node, Value*, Value* rows) {
    const int64_t zeros[3] = {0, 0, 0};
    Value* wide = node("wide", "Add", {rows, t.constant("zeros", make_constant(DType::I64, {3}, zeros))});
    Value* width =
        node("width", "Gather", {node("sizes", "Shape", {wide}), t.constant("one", scalar_constant(DType::I64, 1))});
    return node(
        "y", "Range",
        {t.constant("a", scalar_constant(DType::I64, 0)), width, t.constant("c", scalar_constant(DType::I64, 1))});
  });
  EXPECT_FALSE(run(g).has_errors());
  EXPECT_EQ(whole(results(g, {0, 3, 0, 5, 0, 0})[0]), (std::vector<int64_t>{0, 1, 2}));
}

TEST(CountedShapes, TheNumberOfAllElements) {
  Graph g = counted([](TestGraph& t, auto node, Value*, Value* rows) {
    return node("y", "Size", {node("wide", "Add", {rows, t.ints("zeros", {0, 0, 0})})});
  });
  EXPECT_FALSE(run(g).has_errors());
  EXPECT_EQ(whole(results(g, {0, 3, 0, 5, 7, 0})[0]), std::vector<int64_t>{9});
}

}  // namespace
}  // namespace tc::counted_shapes_test
