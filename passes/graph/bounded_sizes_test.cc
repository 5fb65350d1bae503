// What a tensor whose size depends on data may go through, and what it may not.
#include "passes/graph/bounded_sizes.h"

#include "ir/graph/evaluate.h"
#include "passes/graph/passes.h"
#include "passes/graph/test_graph.h"

namespace tc {
namespace {

/// A graph of NonZero(x: f32[6]), transposed to [n, 1] and given to `then`, which returns the output.
template <class F>
Graph counted(const F& then) {
  TestGraph t;
  auto node = [&](const std::string& name, const std::string& op, std::vector<Value*> in, Attrs attrs = {}) {
    return t.g.append(op, std::move(in), {ModelText(name)}, std::move(attrs))->outputs[0];
  };
  Value* x = t.in("x", {6});
  Value* where = node("where", "NonZero", {x});
  Value* rows = node("rows", "Transpose", {where});
  return t.out({then(t, node, x, rows)});
}

Diagnostics run(Graph& g) {
  Diagnostics d;
  PassContext cx;
  cx.diagnostics = &d;
  dynamic_to_static(g, cx);
  return d;
}

std::vector<Constant> results(const Graph& g, const std::vector<float>& x) {
  return in_actual_sizes(g, evaluate(g, {make_constant(DType::F32, {int64_t(x.size())}, x.data())}));
}

TEST(BoundedSizes, FollowWhatTreatsAllElementsAlike) {
  Graph g = counted([](TestGraph& t, auto node, Value* x, Value* rows) {
    Value* v = node("v", "GatherND", {x, rows});
    Value* u = node("u", "Unsqueeze", {v, t.ints("axes", {1})});
    return node("y", "MatMul", {u, t.constant("w", float_constant({1, 2}, {1, 10}))});
  });
  EXPECT_FALSE(run(g).has_errors());
  const Constant y = results(g, {0, 3, 0, 5, 7, 0})[0];
  EXPECT_EQ(y->dims, (Dims{3, 2}));
  const float* v = y->as<float>();
  EXPECT_EQ(std::vector<float>(v, v + 6), (std::vector<float>{3, 30, 5, 50, 7, 70}));
  EXPECT_EQ(results(g, {0, 0, 0, 0, 0, 0})[0]->dims, (Dims{0, 2}));
}

TEST(BoundedSizes, ASliceOfTheFirstOnesHasACountOfItsOwn) {
  auto slice = [](int64_t start, int64_t end) {
    return counted([=](TestGraph& t, auto node, Value*, Value* rows) {
      return node("y", "Slice", {rows, t.ints("start", {start}), t.ints("end", {end}), t.ints("axes", {0})});
    });
  };
  Graph g = slice(0, 2);
  EXPECT_FALSE(run(g).has_errors());
  EXPECT_EQ(results(g, {0, 3, 0, 5, 7, 0})[0]->dims, (Dims{2, 1}));
  EXPECT_EQ(results(g, {0, 3, 0, 0, 0, 0})[0]->dims, (Dims{1, 1}));
  // The last ones, and all but the last, depend on the count.
  for (const auto& [start, end] : {std::pair(-2, 100), std::pair(0, -1), std::pair(1, 3)}) {
    Graph h = slice(start, end);
    EXPECT_TRUE(run(h).has_errors()) << start << " " << end;
  }
}

TEST(BoundedSizes, WhatLooksAcrossTheAxisIsRefused) {
  struct Case {
    std::string op;
    Constant second;  // null: the operator has one operand
    Attrs attrs = {};
  };
  const int64_t sixes[6] = {6, 6, 6, 6, 6, 6};
  const std::vector<Case> cases = {
      {"ReduceSum", int64_constant({0})},
      {"Concat", make_constant(DType::I64, {6, 1}, sixes), {{"axis", int64_t(0)}}},
      {"Reshape", int64_constant({2, -1})},
      {"Add", make_constant(DType::I64, {6, 1}, sixes)},  // as many as there is room for is not as many as there are
      {"TopK", int64_constant({1}), {{"axis", int64_t(0)}}},
      {"Size", nullptr},
      {"NonZero", nullptr},
  };
  for (const Case& c : cases) {
    Graph g = counted([&](TestGraph& t, auto node, Value*, Value* rows) {
      return c.second ? node("y", c.op, {rows, t.constant("second", c.second)}, c.attrs) : node("y", c.op, {rows});
    });
    const Diagnostics d = run(g);
    ASSERT_EQ(d.list().size(), 1u) << c.op;
    EXPECT_EQ(d.list()[0].code, "TC0303") << c.op;
  }
}

}  // namespace
}  // namespace tc
