// Slices of, positions in and scattering into tensors whose size depends on data.
#include <gtest/gtest.h>

#include "passes/graph/test_counted.h"

namespace tc::counted_slices_test {
namespace {

using namespace counted_testing;

TEST(CountedSlices, ASliceOfTheFirstOnesHasACountOfItsOwn) {
  auto slice = [](int64_t start, int64_t end) {
    return counted([=](TestGraph& t, auto node, Value*, Value* rows) {
      return node("y", "Slice", {rows, t.ints("start", {start}), t.ints("end", {end}), t.ints("axes", {0})});
    });
  };
  Graph g = slice(0, 2);
  EXPECT_FALSE(run(g).has_errors());
  EXPECT_EQ(results(g, {0, 3, 0, 5, 7, 0})[0]->dims, (Dims{2, 1}));
  EXPECT_EQ(results(g, {0, 3, 0, 0, 0, 0})[0]->dims, (Dims{1, 1}));
}

TEST(CountedSlices, EndsThatCountFromTheBackCountFromTheLastCountedElement) {
  const auto cut = [](int64_t start, int64_t end, int64_t step, const std::vector<float>& x) {
    Graph g = counted([=](TestGraph& t, auto node, Value*, Value* rows) {
      return node("y", "Slice",
                  {rows, t.ints("start", {start}), t.ints("end", {end}), t.ints("axes", {0}), t.ints("step", {step})});
    });
    EXPECT_FALSE(run(g).has_errors()) << start << " " << end << " " << step;
    return whole(results(g, x)[0]);
  };
  using Rows = std::vector<int64_t>;
  const std::vector<float> three = {0, 3, 0, 5, 7, 0}, one = {0, 0, 0, 5, 0, 0}, none(6, 0);  // the rows 1, 3, 4; 3
  EXPECT_EQ(cut(-2, 100, 1, three), (Rows{3, 4}));
  EXPECT_EQ(cut(-2, 100, 1, one), Rows{3});
  EXPECT_EQ(cut(0, -1, 1, three), (Rows{1, 3}));
  EXPECT_EQ(cut(0, -1, 1, one), Rows{});
  EXPECT_EQ(cut(1, 3, 1, three), (Rows{3, 4}));
  EXPECT_EQ(cut(1, 3, 1, one), Rows{});
  EXPECT_EQ(cut(-1, INT64_MIN, -1, three), (Rows{4, 3, 1}));
  EXPECT_EQ(cut(-1, INT64_MIN, -2, three), (Rows{4, 1}));
  EXPECT_EQ(cut(-2, INT64_MIN, -1, one), Rows{3});
  EXPECT_EQ(cut(1, 0, -1, three), Rows{3});
  EXPECT_EQ(cut(-1, INT64_MIN, -1, none), Rows{});
  EXPECT_EQ(cut(0, 100, 2, three), (Rows{1, 4}));
}

TEST(CountedSlices, PositionsFromTheEndLeadToTheLastCountedElement) {
  for (const bool nd : {false, true}) {
    Graph g = counted([&](TestGraph& t, auto node, Value*, Value* rows) {
      const int64_t indices[3] = {-1, 0, -2};
      Value* at = t.constant("at", make_constant(DType::I64, nd ? Dims{3, 1} : Dims{3}, indices));
      return node("y", nd ? "GatherND" : "Gather", {rows, at});
    });
    EXPECT_FALSE(run(g).has_errors()) << nd;
    EXPECT_EQ(whole(results(g, {0, 3, 0, 5, 7, 0})[0]), (std::vector<int64_t>{4, 1, 3})) << nd;
  }
}

TEST(CountedSlices, ScatteringLeavesRowsThatAreNotCountedAlone) {
  Graph g = counted([](TestGraph& t, auto node, Value*, Value* rows) {
    const int64_t data[6] = {10, 11, 12, 13, 14, 15};
    return node("y", "ScatterElements", {t.constant("d", make_constant(DType::I64, {6, 1}, data)), rows, rows},
                {{"axis", int64_t(0)}});
  });
  EXPECT_FALSE(run(g).has_errors());
  EXPECT_EQ(whole(results(g, {0, 3, 0, 5, 0, 0})[0]), (std::vector<int64_t>{10, 1, 12, 3, 14, 15}));
  EXPECT_EQ(whole(results(g, {0, 0, 0, 0, 0, 0})[0]), (std::vector<int64_t>{10, 11, 12, 13, 14, 15}));
}

TEST(CountedSlices, SlicesBetweenPositionsThatComeAtRunTime) {
  TestGraph t;
  Value *x = t.in("x", {5}), *from = t.in("from", {1}, DType::I64), *to = t.in("to", {1}, DType::I64);
  Value* part = t.g.append("Slice", {x, from, to}, {ModelText("part")})->outputs[0];
  Value* double_part =
      t.g.append("Slice", {t.g.append("Add", {x, x}, {ModelText("xx")})->outputs[0], from, to}, {ModelText("parts")})
          ->outputs[0];
  Value* y = t.g.append("Add", {part, double_part}, {ModelText("y")})->outputs[0];  // cut alike, counted alike
  Graph g = t.out({y});
  EXPECT_FALSE(run(g).has_errors());
  const std::vector<float> numbers = {1, 2, 3, 4, 5};
  const auto cut = [&](int64_t a, int64_t b) {
    const Constant c = evaluate_model(
        g, {make_constant(DType::F32, {5}, numbers.data()), int64_constant({a}), int64_constant({b})})[0];
    return std::vector<float>(c->as<float>(), c->as<float>() + c->size());
  };
  EXPECT_EQ(cut(1, 3), (std::vector<float>{6, 9}));
  EXPECT_EQ(cut(-2, 99), (std::vector<float>{12, 15}));
  EXPECT_EQ(cut(-99, -4), std::vector<float>{3});
  EXPECT_EQ(cut(3, 3), std::vector<float>{});
  EXPECT_EQ(cut(4, 1), std::vector<float>{});
  EXPECT_EQ(cut(7, 9), std::vector<float>{});
}

// Loop 4: y = y + x[i : i + width], where the body declares one element, or nothing.
TEST(CountedSlices, ADeclaredResultOfABodyIsCountedAsMany) {
  for (const bool declared : {true, false}) {
    TestGraph t;
    Value *x = t.in("x", {5}), *width = t.in("width", {1}, DType::I64), *y0 = t.in("y0", {1});
    Node* loop = t.g.append(
        "Loop",
        {t.constant("n", scalar_constant(DType::I64, 4)), t.constant("go", scalar_constant(DType::Bool, 1)), y0},
        {ModelText("y")});
    auto body = std::make_unique<Graph>();
    Value *i = body->add_input(ModelText("i"), {}), *go = body->add_input(ModelText("go"), {}),
          *y = body->add_input(ModelText("y_in"), {});
    for (Value* v : {x, width}) t.g.add_node_input(loop, v), ++loop->captures;
    Value *xs = body->add_input(ModelText("xs"), {}), *w = body->add_input(ModelText("w"), {});
    const auto node = [&](const char* name, const char* op, std::vector<Value*> in) {
      return body->append(op, std::move(in), {ModelText(name)})->outputs[0];
    };
    Value* start = node("start", "Unsqueeze", {i, body->add_constant(ModelText("axes"), int64_constant({0}))});
    Value* sum = node("sum", "Add", {y, node("part", "Slice", {xs, start, node("end", "Add", {start, w})})});
    if (declared) body->set_type(sum, ValueType::tensor(DType::F32, {Dim(1)}));
    body->set_outputs({node("go_on", "Identity", {go}), sum});
    loop->regions.push_back(std::move(body));
    Graph g = t.out({loop->outputs[0]});
    const Diagnostics d = run(g);
    EXPECT_EQ(d.has_errors(), !declared);
    if (!declared) continue;
    const std::vector<float> numbers = {1, 2, 3, 4, 5}, begin = {100};
    const auto result = [&](int64_t n) {
      return evaluate(g, {make_constant(DType::F32, {5}, numbers.data()), int64_constant({n}),
                          make_constant(DType::F32, {1}, begin.data())})[0];
    };
    EXPECT_EQ(result(1)->as<float>()[0], 110);
    EXPECT_ANY_THROW(result(2));
  }
}

TEST(CountedSlices, AKnownSliceBesideOneThatComesAtRunTime) {
  TestGraph t;
  Value *x = t.in("x", {2, 4}), *at = t.in("at", {1}, DType::I64);
  const auto both = [&](const std::string& name, int64_t known) {
    return t.g.append("Concat", {t.ints(name + "_known", {known}), at}, {ModelText(name)}, {{"axis", int64_t(0)}})
        ->outputs[0];
  };
  Value* ends = t.ints("ends", {2, 4});
  Value* y = t.g.append("Slice", {x, both("starts", 1), ends, t.ints("axes", {0, -1})}, {ModelText("y")})->outputs[0];
  Graph g = t.out({y});
  EXPECT_FALSE(run(g).has_errors());
  const std::vector<float> numbers = {1, 2, 3, 4, 5, 6, 7, 8};
  const auto c = evaluate_model(g, {make_constant(DType::F32, {2, 4}, numbers.data()), int64_constant({2})})[0];
  EXPECT_EQ(c->dims, (Dims{1, 2}));
  EXPECT_EQ(c->as<float>()[1], 8);
}

TEST(CountedSlices, TheFirstOnesOfATensorAreAsManyAsAnotherHas) {
  Graph g = counted([](TestGraph& t, auto node, Value* x, Value* rows) {
    Value* n = node("n", "Shape", {rows}, {{"end", int64_t(1)}});
    Value* first = node("first", "Slice", {x, t.ints("zero", {0}), n, t.ints("axes", {0})});
    return node("y", "Add", {first, node("v", "GatherND", {x, rows})});  // counted by the same number
  });
  EXPECT_FALSE(run(g).has_errors());
  const Constant y = results(g, {1, 3, 0, 5, 0, 0})[0];
  EXPECT_EQ(y->dims, Dims{3});
  EXPECT_EQ(y->as<float>()[2], 5);
}

TEST(CountedSlices, ScatteringToIndicesOfSeveralNumbers) {
  Graph g = counted([](TestGraph& t, auto node, Value* x, Value* rows) {
    const int64_t zeros[2] = {0, 1};
    Value* indices = node("places", "Mul", {rows, t.constant("column", make_constant(DType::I64, {2}, zeros))});
    const float data[6] = {10, 11, 12, 13, 14, 15};
    return node("y", "ScatterND",
                {t.constant("d", make_constant(DType::F32, {1, 6}, data)), indices, node("v", "GatherND", {x, rows})},
                {{"reduction", std::string("add")}});
  });
  EXPECT_FALSE(run(g).has_errors());
  const Constant y = results(g, {0, 3, 0, 5, 0, 0})[0];
  EXPECT_EQ(std::vector<float>(y->as<float>(), y->as<float>() + 6), (std::vector<float>{10, 14, 12, 18, 14, 15}));
}

}  // namespace
}  // namespace tc::counted_slices_test
