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
      {"ReduceMean", int64_constant({0})},
      {"CumSum", scalar_constant(DType::I64, 0)},
      {"Reshape", int64_constant({2, -1})},
      {"Add", make_constant(DType::I64, {6, 1}, sixes)},  // as many as there is room for is not as many as there are
      {"Size", nullptr},
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

std::vector<int64_t> whole(const Constant& c) { return c->as_ints(); }

TEST(BoundedSizes, ReductionsAndNonZeroSeeCountedElementsOnly) {
  for (const auto& [op, want] : {std::pair("ReduceSum", 8), std::pair("ReduceMax", 4), std::pair("ReduceMin", 1)}) {
    Graph g = counted([op = op](TestGraph& t, auto node, Value*, Value* rows) {
      return node("y", op, {rows, t.ints("axes", {0})}, {{"keepdims", int64_t(0)}});
    });
    EXPECT_FALSE(run(g).has_errors()) << op;
    EXPECT_EQ(whole(results(g, {0, 3, 0, 5, 7, 0})[0]), std::vector<int64_t>{want}) << op;
  }
  Graph g = counted([](TestGraph& t, auto node, Value*, Value* rows) {
    return node("y", "NonZero", {node("later", "Greater", {rows, t.constant("one", scalar_constant(DType::I64, 1))})});
  });
  EXPECT_FALSE(run(g).has_errors());
  EXPECT_EQ(whole(results(g, {0, 3, 0, 5, 7, 0})[0]), (std::vector<int64_t>{1, 2, 0, 0}));
}

TEST(BoundedSizes, TheLargestOfAsManyAsThereAre) {
  Graph g = counted([](TestGraph& t, auto node, Value* x, Value* rows) {
    Value* v = node("v", "GatherND", {x, rows});
    Value* k = node("k", "Min", {node("n", "Shape", {v}), t.ints("most", {2})});
    return t.g.append("TopK", {v, k}, {ModelText("y"), ModelText("place")}, {})->outputs[0];
  });
  EXPECT_FALSE(run(g).has_errors());
  const auto floats = [](const Constant& c) { return std::vector<float>(c->as<float>(), c->as<float>() + c->size()); };
  EXPECT_EQ(floats(results(g, {0, -3, 0, -5, -7, 0})[0]), (std::vector<float>{-3, -5}));
  EXPECT_EQ(floats(results(g, {0, -3, 0, 0, 0, 0})[0]), std::vector<float>{-3});
}

TEST(BoundedSizes, PartsAreJoinedWithoutWhatLiesBehindThem) {
  Graph g = counted([](TestGraph& t, auto node, Value*, Value* rows) {
    const int64_t nines[2] = {9, 9};
    return node("y", "Concat", {rows, t.constant("c", make_constant(DType::I64, {2, 1}, nines)), rows},
                {{"axis", int64_t(0)}});
  });
  EXPECT_FALSE(run(g).has_errors());
  EXPECT_EQ(whole(results(g, {0, 3, 0, 5, 0, 0})[0]), (std::vector<int64_t>{1, 3, 9, 9, 1, 3}));
  EXPECT_EQ(whole(results(g, {0, 0, 0, 0, 0, 0})[0]), (std::vector<int64_t>{9, 9}));
}

TEST(BoundedSizes, ShapesThatHoldACountGiveTensorsWithThatCount) {
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

TEST(BoundedSizes, AnIfWithNothingInOneBranchCountsNone) {
  auto with_if = [](bool negated) {
    return counted([&](TestGraph& t, auto node, Value*, Value* rows) {
      Value* few = node("few", "Less", {node("n", "Shape", {rows}, {{"end", int64_t(1)}}), t.ints("three", {3})});
      Value* condition = node("c", "Squeeze", {negated ? node("many", "Not", {few}) : few});
      Node* n = t.g.append("If", {condition, rows}, {ModelText("y")});
      n->captures = 1;
      auto nothing = std::make_unique<Graph>(), some = std::make_unique<Graph>();
      nothing->add_input(ModelText("r"), {});
      nothing->set_outputs({nothing->add_constant(ModelText("none"), make_constant(DType::I64, {0, 1}, nullptr))});
      Value* r = some->add_input(ModelText("r"), {});
      some->set_outputs({some->append("Neg", {r}, {ModelText("m")})->outputs[0]});
      n->regions.push_back(std::move(negated ? some : nothing));
      n->regions.push_back(std::move(negated ? nothing : some));
      return n->outputs[0];
    });
  };
  for (const bool negated : {false, true}) {
    Graph g = with_if(negated);
    EXPECT_FALSE(run(g).has_errors()) << negated;
    EXPECT_EQ(whole(results(g, {0, 3, 0, 5, 7, 0})[0]), (std::vector<int64_t>{-1, -3, -4})) << negated;
    EXPECT_EQ(results(g, {0, 3, 0, 5, 0, 0})[0]->dims, (Dims{0, 1})) << negated;
  }
}

TEST(BoundedSizes, ScatteringLeavesRowsThatAreNotCountedAlone) {
  Graph g = counted([](TestGraph& t, auto node, Value*, Value* rows) {
    const int64_t data[6] = {10, 11, 12, 13, 14, 15};
    return node("y", "ScatterElements", {t.constant("d", make_constant(DType::I64, {6, 1}, data)), rows, rows},
                {{"axis", int64_t(0)}});
  });
  EXPECT_FALSE(run(g).has_errors());
  EXPECT_EQ(whole(results(g, {0, 3, 0, 5, 0, 0})[0]), (std::vector<int64_t>{10, 1, 12, 3, 14, 15}));
  EXPECT_EQ(whole(results(g, {0, 0, 0, 0, 0, 0})[0]), (std::vector<int64_t>{10, 11, 12, 13, 14, 15}));
}

}  // namespace
}  // namespace tc
