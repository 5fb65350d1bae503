// Inputs whose sizes the caller chooses.
#include <gtest/gtest.h>

#include <set>

#include "ir/language/graph_text.h"
#include "ir/loop/print.h"
#include "passes/graph/test_counted.h"
#include "passes/program/live_axes.h"

namespace tc::open_sizes_test {
namespace {

using namespace counted_testing;

/// A graph of one input x: f32[shape], given to `then`.
template <class F>
Graph of(const Shape& shape, const F& then) {
  TestGraph t;
  Value* x = t.g.add_input(ModelText("x"), ValueType::tensor(DType::F32, shape));
  auto node = [&](const std::string& name, const std::string& op, std::vector<Value*> in, Attrs attrs = {}) {
    return t.g.append(op, std::move(in), {ModelText(name)}, std::move(attrs))->outputs[0];
  };
  return t.out({then(t, node, x)});
}

std::vector<float> floats_of(const Constant& c) { return {c->as<float>(), c->as<float>() + c->size()}; }

TEST(OpenSizes, ASymbolBecomesAnInputThatCounts) {
  Graph g = of({bounded("batch", 1, 4), 2}, [](TestGraph& t, auto node, Value* x) {
    return node("y", "MatMul", {x, t.constant("w", float_constant({2, 1}, {1, 10}))});
  });
  EXPECT_FALSE(run(g).has_errors());
  ASSERT_EQ(g.inputs().size(), 2u);
  EXPECT_EQ(g.inputs()[1]->name.raw(), "batch");
  EXPECT_EQ(g.sizes().chosen, (std::vector<SizeInput>{{1, 1, 4}}));
  EXPECT_EQ(g.sizes().inputs, (std::vector<InputSize>{{0, 0, SizeSum::of(1)}}));
  EXPECT_EQ(g.sizes().outputs, (std::vector<OutputSize>{{0, 0, 0, SizeSum::of(1)}}));
  const std::vector<float> numbers = {1, 2, 3, 4, 5, 6};
  const Constant y = evaluate_model(g, {make_constant(DType::F32, {3, 2}, numbers.data())})[0];
  EXPECT_EQ(y->dims, (Dims{3, 1}));
  EXPECT_EQ(floats_of(y), (std::vector<float>{21, 43, 65}));
}

// What packs it reads the product at an index that is no sum of axes: the product would be stored inside of a kernel of both.
TEST(OpenSizes, WhatPacksAProductIsAKernelOfItsOwnAndNeededInPart) {
  Graph g = of({bounded("a", 1, 4), bounded("b", 1, 6), 2}, [](TestGraph& t, auto node, Value* x) {
    return node("y", "MatMul", {x, t.constant("w", float_constant({2, 3}, {1, 10, 2, 20, 3, 30}))});
  });
  EXPECT_FALSE(run(g).has_errors());
  Graph by_loops = g.clone();
  PassContext cx;
  to_functions(by_loops, cx);
  fuse_ops(by_loops, cx);
  EXPECT_EQ(kernels_of(by_loops), "Reshape unpack matmul pack Reshape");
  const Value* product = by_loops.outputs()[0]->producer->inputs[0]->producer->inputs[0];
  const std::vector<LiveAxis> read = LiveAxes(by_loops).of(product);
  ASSERT_EQ(read.size(), 2u);
  EXPECT_EQ(to_text(read[0].end) + ", " + to_text(read[1].end), "n, n");  // where the loops end, each a variable
  cx.target.device_memory = true;
  to_functions(g, cx);
  fuse_ops(g, cx);
  EXPECT_EQ(kernels_of(g), "Reshape unpack matmul pack");
  const LiveAxes live(g);
  const std::vector<LiveAxis> packed = live.of(g.outputs()[0]);
  ASSERT_EQ(packed.size(), 1u);
  EXPECT_EQ(packed[0].axis, 0);
  EXPECT_EQ(to_text(packed[0].end), "floor_div(n_2 * n + 5, 6)");  // of 6 in each of the first axis
}

TEST(OpenSizes, TwoAxesOfOneTensorAndTheirTexts) {
  Graph g = of({bounded("a", 0, 3), bounded("b", 1, 4)}, [](TestGraph&, auto node, Value* x) {
    return node("y", "Transpose", {node("s", "Softmax", {x}, {{"axis", int64_t(1)}})});
  });
  EXPECT_FALSE(run(g).has_errors());
  const std::vector<float> zeros(6);
  const Constant y = evaluate_model(g, {make_constant(DType::F32, {2, 3}, zeros.data())})[0];
  EXPECT_EQ(y->dims, (Dims{3, 2}));
  for (float p : floats_of(y)) EXPECT_FLOAT_EQ(p, 1.0F / 3);
  EXPECT_EQ(evaluate_model(g, {make_constant(DType::F32, {0, 2}, nullptr)})[0]->dims, (Dims{2, 0}));
  const std::string text = to_text(g);
  EXPECT_NE(text.find("x: f32[3, 4] counted 0 by 1 counted 1 by 2, a: i64[] from 0 to 3, b: i64[] from 1 to 4"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("counted 0 by input 2 counted 1 by input 1"), std::string::npos) << text;
}

TEST(OpenSizes, SizesOfOneOutputHaveNamesOfTheirOwn) {
  Graph g = of({bounded("a", 1, 4), bounded("b", 1, 6)}, [](TestGraph& t, auto node, Value* x) {
    return node("y", "Slice",
                {x, t.constant("starts", int64_constant({0, 0})), t.constant("ends", int64_constant({3, 5}))});
  });
  EXPECT_FALSE(run(g).has_errors());
  std::set<std::string> names;
  for (const Value* v : g.outputs()) names.insert(v->name.raw());
  EXPECT_EQ(names.size(), g.outputs().size());
  EXPECT_EQ(g.outputs().size(), 3u);
}

TEST(OpenSizes, ViewsKeepEachCount) {
  // [a, b, 6] -> [a, b, 2, 3] -> [a, 2 b, 3]
  Graph g = of({bounded("a", 1, 3), bounded("b", 1, 4), 6}, [](TestGraph& t, auto node, Value* x) {
    Value* four = node("four", "Reshape", {x, t.ints("heads", {0, 0, 2, 3})});
    return node("y", "Reshape", {four, t.ints("joined", {0, -1, 3})});
  });
  EXPECT_FALSE(run(g).has_errors());
  std::vector<float> numbers(2 * 3 * 6);
  for (size_t k = 0; k < numbers.size(); k++) numbers[k] = float(k);
  const Constant y = evaluate_model(g, {make_constant(DType::F32, {2, 3, 6}, numbers.data())})[0];
  EXPECT_EQ(y->dims, (Dims{2, 6, 3}));
  EXPECT_EQ(floats_of(y), numbers);
}

TEST(OpenSizes, ACopyForTheSakeOfANameIsCounted) {
  Graph g = of({bounded("n", 1, 4), 2}, [](TestGraph&, auto node, Value* x) {
    return node("y", "Expand", {x, node("s", "Shape", {x})});
  });
  EXPECT_FALSE(run(g).has_errors());
  EXPECT_EQ(g.sizes().outputs, (std::vector<OutputSize>{{0, 0, 0, SizeSum::of(1)}}));
  const std::vector<float> numbers = {1, 2, 3, 4, 5, 6};
  const Constant y = evaluate_model(g, {make_constant(DType::F32, {3, 2}, numbers.data())})[0];
  EXPECT_EQ(y->dims, (Dims{3, 2}));
  EXPECT_EQ(floats_of(y), numbers);
}

TEST(OpenSizes, WhatLooksAcrossOneIsRefused) {
  Graph cropped = of({3, bounded("n", 1, 4)}, [&](TestGraph& t, auto node, Value* x) {
    return node("y", "CenterCropPad", {x, t.ints("shape", {2})}, {{"axes", std::vector<int64_t>{1}}});
  });
  const Diagnostics told = run(cropped);
  ASSERT_EQ(told.list().size(), 1u);
  EXPECT_EQ(told.list()[0].code, "TC0303");
  // Two sizes are two, though one number may be in both.
  Graph g = of({bounded("a", 1, 4), bounded("b", 1, 4)}, [](TestGraph&, auto node, Value* x) {
    return node("y", "Add", {x, node("t", "Transpose", {x})});
  });
  EXPECT_TRUE(run(g).has_errors());
}

// y = x + table[0 : n], and what is behind it: the message says where the table ends, and nothing that follows from it.
TEST(OpenSizes, ATableThatEndsIsTheBoundOfASize) {
  const auto added = [](int64_t rows, int64_t most) {
    return of({bounded("n", 1, most), 2}, [&](TestGraph& t, auto node, Value* x) {
      Value* table = t.constant("table", float_constant({rows, 2}, std::vector<float>(size_t(rows) * 2, 1)));
      const auto first = [&](const std::string& name, Value* v) {
        return node(name, "Slice",
                    {node(name + "_shape", "Shape", {v}), t.ints(name + "_0", {0}), t.ints(name + "_1", {1})});
      };
      Value* y = node("y", "Add",
                      {x, node("first", "Slice", {table, t.ints("from", {0}), first("n", x), t.ints("along", {0})})});
      return node("zeros", "ConstantOfShape", {first("m", y)});
    });
  };
  Graph fits = added(9, 9), none = added(5, 9);
  EXPECT_FALSE(run(fits).has_errors());
  const Diagnostics told = run(none);
  ASSERT_EQ(told.list().size(), 1u);
  EXPECT_EQ(told.list()[0].loc.op, "Add");
  EXPECT_EQ(told.list()[0].message, "a table of 5 meets \"n\", which may be more: an error in ONNX");
  EXPECT_EQ(told.list()[0].notes, std::vector<std::string>{"it ends there: --dim n=1..5"});
}

TEST(OpenSizes, WindowsHaveAsManyPlacesAsFit) {
  // Rounded down, then up: (n - 1) / 2 + 1 places of the first, those halved of the second.
  Graph g = of({1, 1, bounded("n", 3, 9)}, [](TestGraph& t, auto node, Value* x) {
    Value* w = t.constant("w", float_constant({1, 1, 3}, {1, 10, 100}));
    Value* y = node("c", "Conv", {x, w}, {{"strides", std::vector<int64_t>{2}}, {"pads", std::vector<int64_t>{1, 1}}});
    return node(
        "y", "MaxPool", {y},
        {{"kernel_shape", std::vector<int64_t>{2}}, {"strides", std::vector<int64_t>{2}}, {"ceil_mode", int64_t(1)}});
  });
  EXPECT_FALSE(run(g).has_errors());
  const std::vector<float> numbers = {1, 2, 3, 4, 5, 6};
  const Constant y = evaluate_model(g, {make_constant(DType::F32, {1, 1, 6}, numbers.data())})[0];
  EXPECT_EQ(floats_of(y), (std::vector<float>{432, 654}));  // of 210, 432 and 654
  const Constant four = evaluate_model(g, {make_constant(DType::F32, {1, 1, 4}, numbers.data())})[0];
  EXPECT_EQ(floats_of(four), (std::vector<float>{432}));
}

TEST(OpenSizes, AWindowThatIsLargerThanTheLeastInputIsRefused) {
  Graph g = of({1, 1, bounded("n", 2, 9)}, [](TestGraph& t, auto node, Value* x) {
    return node("y", "Conv", {x, t.constant("w", float_constant({1, 1, 3}, {1, 1, 1}))});
  });
  EXPECT_TRUE(run(g).has_errors());
}

TEST(OpenSizes, AveragesCountTheTapsThatAreInside) {
  Graph g = of({1, 1, bounded("n", 2, 8)}, [](TestGraph&, auto node, Value* x) {
    return node("y", "AveragePool", {x},
                {{"kernel_shape", std::vector<int64_t>{3}}, {"pads", std::vector<int64_t>{1, 1}}});
  });
  EXPECT_FALSE(run(g).has_errors());
  const std::vector<float> numbers = {1, 2, 6};
  EXPECT_EQ(floats_of(evaluate_model(g, {make_constant(DType::F32, {1, 1, 3}, numbers.data())})[0]),
            (std::vector<float>{1.5, 3, 4}));
}

TEST(OpenSizes, TwoSizesAreOneAxisAndTwoAgain) {
  Graph g = of({bounded("a", 1, 3), bounded("b", 1, 4), 2}, [](TestGraph& t, auto node, Value* x) {
    Value* flat = node("flat", "Reshape", {x, t.ints("two", {-1, 2})});
    Value* sum = node("sum", "CumSum", {flat, t.constant("axis", scalar_constant(DType::I64, 0))});
    return node("y", "Reshape", {sum, node("sizes", "Shape", {x})});
  });
  EXPECT_FALSE(run(g).has_errors());
  std::vector<float> numbers(2 * 3 * 2, 1);
  const Constant y = evaluate_model(g, {make_constant(DType::F32, {2, 3, 2}, numbers.data())})[0];
  EXPECT_EQ(y->dims, (Dims{2, 3, 2}));
  EXPECT_EQ(floats_of(y), (std::vector<float>{1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6}));
}

TEST(OpenSizes, WhatLiesBeyondTheEndIsMirrored) {
  Graph g = of({bounded("n", 3, 7)}, [](TestGraph& t, auto node, Value* x) {
    return node("y", "Pad", {x, t.ints("pads", {1, 2})}, {{"mode", std::string("reflect")}});
  });
  EXPECT_FALSE(run(g).has_errors());
  const std::vector<float> numbers = {1, 2, 3, 4, 5, 6, 7};
  for (const size_t n : {3, 6, 7}) {
    std::vector<float> want = {2};
    want.insert(want.end(), numbers.begin(), numbers.begin() + std::ptrdiff_t(n));
    want.insert(want.end(), {numbers[n - 2], numbers[n - 3]});
    EXPECT_EQ(floats_of(evaluate_model(g, {make_constant(DType::F32, {int64_t(n)}, numbers.data())})[0]), want);
  }
}

/// present = Concat(past, x) along axis 1, past: f32[1, past <= 6, 2] a state, x: f32[1, 1 <= n <= 4, 2].
Graph growing(const Shape& x_shape) {
  TestGraph t;
  Value* past = t.g.add_input(ModelText("past"), ValueType::tensor(DType::F32, {Dim(1), bounded("p", 0, 6), Dim(2)}));
  Value* x = t.g.add_input(ModelText("x"), ValueType::tensor(DType::F32, x_shape));
  Value* all = t.g.append("Concat", {past, x}, {ModelText("present")}, {{"axis", int64_t(1)}})->outputs[0];
  RunTimeSizes sizes;
  sizes.states = {{0, 0}};
  t.g.set_outputs({all});
  t.g.set_sizes(sizes);
  return std::move(t.g);
}

TEST(OpenSizes, AStateGrowsByWhatARunBrings) {
  Graph g = growing({Dim(1), bounded("n", 1, 4), Dim(2)});
  EXPECT_FALSE(run(g).has_errors());
  EXPECT_EQ(static_dims(g.outputs()[0]->type.shape), (Dims{1, 6, 2}));
  EXPECT_EQ(g.outputs()[0]->producer->op, "append");
  ASSERT_EQ(g.sizes().chosen.size(), 2u);
  EXPECT_EQ(g.sizes().chosen[0].next, (SizeSum{{{2, 1}, {3, 1}}, 0}));
  EXPECT_FALSE(g.sizes().chosen[1].next);
  EXPECT_TRUE(g.sizes().outputs.empty());
  const std::string text = to_text(g);
  EXPECT_NE(text.find("counted 1 by 2 kept as 0"), std::string::npos) << text;
  EXPECT_NE(text.find("from 0 to 6 then 2 plus 3"), std::string::npos) << text;
}

TEST(OpenSizes, AStateOfAnotherShapeIsRefused) {
  Graph g = growing({Dim(1), Dim(3), Dim(1)});
  EXPECT_TRUE(run(g).has_errors());
  TestGraph t;
  Value* past = t.g.add_input(ModelText("past"), ValueType::tensor(DType::F32, {bounded("p", 0, 6)}));
  RunTimeSizes sizes;
  sizes.states = {{0, 0}};
  t.g.set_outputs({t.g.append("Cast", {past}, {ModelText("y")}, {{"to", int64_t(7)}})->outputs[0]});
  t.g.set_sizes(sizes);
  Diagnostics d;
  PassContext cx;
  cx.diagnostics = &d;
  EXPECT_THROW(dynamic_to_static(t.g, cx), Error);
}

TEST(OpenSizes, ASizeThatFollowsFromOthersIsASum) {
  Dim total = sum_of({{"p", 1, 0, 6}, {"n", 2, 1, 4}}, -1);
  EXPECT_EQ(total.symbol, "p + 2 * n - 1");
  EXPECT_EQ(total.value, 13);
  Graph g = of({total}, [](TestGraph&, auto node, Value* x) { return node("y", "ReduceSum", {x}); });
  EXPECT_FALSE(run(g).has_errors());
  ASSERT_EQ(g.sizes().inputs.size(), 1u);
  EXPECT_EQ(g.sizes().inputs[0].count, (SizeSum{{{1, 1}, {2, 2}}, -1}));
  EXPECT_NE(to_text(g).find("counted 0 by 1 plus 2 of 2 plus constant -1"), std::string::npos) << to_text(g);
}

}  // namespace
}  // namespace tc::open_sizes_test
