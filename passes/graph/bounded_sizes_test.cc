// What a tensor whose size depends on data may go through, and what it may not.
#include <gtest/gtest.h>

#include "passes/graph/test_counted.h"

namespace tc::bounded_sizes_test {
namespace {

using namespace counted_testing;

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

TEST(BoundedSizes, WhatLooksAcrossTheAxisIsRefused) {
  struct Case {
    std::string op;
    Constant second;  // null: the operator has one operand
    Attrs attrs = {};
  };
  const int64_t sixes[6] = {6, 6, 6, 6, 6, 6};
  const std::vector<Case> cases = {
      {"Reshape", int64_constant({2, -1})},
      {"Add", make_constant(DType::I64, {6, 1}, sixes)},  // as many as there is room for is not as many as there are
      {"Squeeze", nullptr},                               // of one element the axis would go
      {"CenterCropPad", int64_constant({6}), {{"axes", std::vector<int64_t>{0}}}},  // zeros around fewer
      {"Expand", int64_constant({6, 1})},                                           // only one element is stretched
  };
  for (const Case& c : cases) {
    Graph g = counted([&](TestGraph& t, auto node, Value*, Value* rows) {
      return c.second ? node("y", c.op, {rows, t.constant("second", c.second)}, c.attrs)
                      : node("y", c.op, {rows}, c.attrs);
    });
    const Diagnostics d = run(g);
    ASSERT_EQ(d.list().size(), 1u) << c.op;
    EXPECT_EQ(d.list()[0].code, "TC0303") << c.op;
  }
}

// The model may be right: what does not fit is the largest number of rows.
TEST(BoundedSizes, ASizeThatIsNotTheLargestIsNoFaultOfTheModel) {
  const int64_t fours[4] = {4, 4, 4, 4};
  Graph g = counted([&](TestGraph& t, auto node, Value*, Value* rows) {
    return node("y", "Mul", {rows, t.constant("second", make_constant(DType::I64, {4, 1}, fours))});
  });
  const Diagnostics d = run(g);
  ASSERT_EQ(d.list().size(), 1u);
  EXPECT_EQ(d.exit_code(), ExitCode::Unsupported);
}

TEST(BoundedSizes, AnOutputThatReadsNoElementHasTheSizeOfTheOperand) {
  for (const size_t used : {size_t(0), size_t(1)}) {
    Graph g = counted([&](TestGraph& t, auto node, Value*, Value* rows) {
      Value* f = node("f", "Cast", {rows}, Attrs{{"to", int64_t(1)}});
      return t.g.append("Dropout", {f}, {ModelText("y"), ModelText("mask")})->outputs[used];
    });
    EXPECT_FALSE(run(g).has_errors()) << used;
    EXPECT_EQ(results(g, {0, 3, 0, 5, 7, 0})[0]->dims, (Dims{3, 1})) << used;
  }
}

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

// [2, n] as [n, -1] is [2, 0] where n is 0: ONNX takes the operand's size then.
TEST(BoundedSizes, AReshapeToSizesThatMayBeZero) {
  const auto reshaped = [](int64_t rest, int64_t allowzero) {
    return counted([&](TestGraph& t, auto node, Value*, Value* rows) {
      Value* two = node("two", "Concat", {rows, rows}, {{"axis", int64_t(1)}});
      Value* n = node("n", "Shape", {rows}, {{"start", int64_t(0)}, {"end", int64_t(1)}});
      Value* list = node("list", "Concat", {n, t.ints("rest", {rest})}, {{"axis", int64_t(0)}});
      return node("y", "Reshape", {node("flat", "Transpose", {two}), list}, {{"allowzero", allowzero}});
    });
  };
  for (const int64_t rest : {-1, 2})
    for (const int64_t allowzero : {0, 1}) {
      Graph g = reshaped(rest, allowzero);
      EXPECT_FALSE(run(g).has_errors());
      const Constant y = results(g, {0, 3, 0, 5, 7, 0})[0];
      EXPECT_EQ(y->dims, (Dims{3, 2}));
      EXPECT_EQ(whole(y), (std::vector<int64_t>{1, 3, 4, 1, 3, 4}));
      if (rest < 0 && !allowzero)
        EXPECT_THROW(results(g, {0, 0, 0, 0, 0, 0}), Error);
      else
        EXPECT_EQ(results(g, {0, 0, 0, 0, 0, 0})[0]->dims, (Dims{0, 2}));
    }
}

// What no output is counted by is checked all the same.
TEST(BoundedSizes, AnOutputOfFixedSizeTellsOfAZeroThatIsCopied) {
  Graph g = counted([](TestGraph& t, auto node, Value*, Value* rows) {
    Value* two = node("two", "Concat", {rows, rows}, {{"axis", int64_t(1)}});
    Value* n = node("n", "Shape", {rows}, {{"start", int64_t(0)}, {"end", int64_t(1)}});
    Value* list = node("list", "Concat", {n, t.ints("rest", {-1})}, {{"axis", int64_t(0)}});
    Value* y = node("y", "Reshape", {node("flat", "Transpose", {two}), list});
    return node("sum", "ReduceSum", {y}, {{"keepdims", int64_t(0)}});
  });
  EXPECT_FALSE(run(g).has_errors());
  EXPECT_EQ(whole(results(g, {0, 3, 0, 5, 7, 0})[0]), std::vector<int64_t>{16});
  EXPECT_THROW(results(g, {0, 0, 0, 0, 0, 0}), Error);
}

// The list says the same axis, or one with as many elements: a 0 is a 0.
TEST(BoundedSizes, AReshapeThatCopiesTheZeroThatItSays) {
  Graph g = counted([](TestGraph& t, auto node, Value*, Value* rows) {
    Value* two = node("two", "Concat", {rows, rows}, {{"axis", int64_t(1)}});
    Value* n = node("n", "Shape", {rows}, {{"start", int64_t(0)}, {"end", int64_t(1)}});
    return node("y", "Reshape", {two, node("list", "Concat", {n, t.ints("rest", {-1, 1})}, {{"axis", int64_t(0)}})});
  });
  EXPECT_FALSE(run(g).has_errors());
  EXPECT_EQ(results(g, {0, 0, 0, 0, 0, 0})[0]->dims, (Dims{0, 2, 1}));
}

TEST(BoundedSizes, EqualMasksAreCountedOnce) {
  Graph g = counted([](TestGraph& t, auto node, Value* x, Value* rows) {
    Value* zero = t.constant("other_zero", scalar_constant(DType::F32, 0));
    Value* again = node("again", "NonZero", {node("mask", "Not", {node("none", "Equal", {x, zero})})});
    Value* same = node("same", "NonZero", {node("mask2", "Not", {node("none2", "Equal", {x, zero})})});
    Value* a = node("a", "GatherND", {x, node("places", "Transpose", {again}, {{"perm", std::vector<int64_t>{1, 0}}})});
    Value* b = node("b", "GatherND", {x, node("places2", "Transpose", {same}, {{"perm", std::vector<int64_t>{1, 0}}})});
    (void)rows;
    return node("y", "Add", {a, b});
  });
  EXPECT_FALSE(run(g).has_errors());
  const Constant y = results(g, {0, 3, 0, 5, 7, 0})[0];
  EXPECT_EQ(std::vector<float>(y->as<float>(), y->as<float>() + y->size()), (std::vector<float>{6, 10, 14}));
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

TEST(BoundedSizes, JoiningWhatHasNoSuchAxisIsRejected) {
  for (const int64_t axis : {0, 5, -7}) {
    for (const Dims& dims : {Dims{}, Dims{2}, Dims{2, 3}}) {
      Graph g = counted([&](TestGraph& t, auto node, Value*, Value* rows) {
        const std::vector<int64_t> nines(size_t(num_elements(dims)), 9);
        return node("y", "Concat", {rows, t.constant("c", make_constant(DType::I64, dims, nines.data()))},
                    {{"axis", axis}});
      });
      EXPECT_TRUE(run(g).has_errors()) << axis;
    }
  }
}

TEST(BoundedSizes, MeansSoftmaxAndSumsSeeCountedElementsOnly) {
  struct Case {
    std::string op;
    Constant second;
    Attrs attrs;
    std::vector<float> want;
  };
  const std::vector<Case> cases = {
      {"ReduceMean", int64_constant({0}), {}, {5}},
      {"ReduceMean", nullptr, {{"keepdims", int64_t(0)}}, {5}},
      {"Softmax", nullptr, {{"axis", int64_t(0)}}, {0.01587624f, 0.11731043f, 0.86681333f}},
      {"CumSum", scalar_constant(DType::I64, 0), {}, {3, 8, 15}},
      {"CumSum", scalar_constant(DType::I64, 0), {{"reverse", int64_t(1)}}, {15, 12, 7}},
  };
  for (const Case& c : cases) {
    Graph g = counted([&](TestGraph& t, auto node, Value* x, Value* rows) {
      Value* v = node("v", "Unsqueeze", {node("line", "GatherND", {x, rows}), t.ints("axes", {1})});
      return c.second ? node("y", c.op, {v, t.constant("second", c.second)}, c.attrs) : node("y", c.op, {v}, c.attrs);
    });
    EXPECT_FALSE(run(g).has_errors()) << c.op;
    const Constant y = results(g, {0, 3, 0, 5, 7, 0})[0];
    ASSERT_EQ(y->size(), int64_t(c.want.size())) << c.op;
    for (size_t k = 0; k < c.want.size(); k++) EXPECT_NEAR(y->as<float>()[k], c.want[k], 1e-6) << c.op;
  }
}

TEST(BoundedSizes, ProductsOverTheCountedAxis) {
  Graph g = counted([](TestGraph& t, auto node, Value* x, Value* rows) {
    Value* v = node("v", "GatherND", {x, rows});
    Value* line = node("line", "Unsqueeze", {v, t.ints("axes", {0})});
    Value* ones = node("exp", "Exp", {node("none", "Sub", {v, v})});  // 1 everywhere, also behind
    return node("y", "MatMul", {line, node("column", "Unsqueeze", {ones, t.ints("last", {1})})});
  });
  EXPECT_FALSE(run(g).has_errors());
  EXPECT_EQ(results(g, {0, 3, 0, 5, 7, 0})[0]->as<float>()[0], 15);
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

TEST(BoundedSizes, BodiesReadCountedCaptures) {
  for (const bool results_counted : {false, true}) {
    Graph g = counted([&](TestGraph& t, auto node, Value* x, Value* rows) {
      Value* condition =
          node("c", "ReduceMax", {node("big", "Greater", {x, t.scalar("six", 6)})}, {{"keepdims", int64_t(0)}});
      Node* n = t.g.append("If", {condition, rows}, {ModelText("y")});
      n->captures = 1;
      for (const char* op : {"ReduceSum", "ReduceMax"}) {
        auto body = std::make_unique<Graph>();
        Value* r = body->add_input(ModelText("r"), {});
        body->set_outputs({results_counted ? body->append("Neg", {r}, {ModelText("m")})->outputs[0]
                                           : body->append(op, {r}, {ModelText("m")})->outputs[0]});
        n->regions.push_back(std::move(body));
      }
      return n->outputs[0];
    });
    EXPECT_FALSE(run(g).has_errors());
    const std::vector<int64_t> expected = results_counted ? std::vector<int64_t>{-1, -3, -4} : std::vector<int64_t>{8};
    EXPECT_EQ(whole(results(g, {0, 3, 0, 5, 7, 0})[0]), expected);
    if (results_counted) continue;
    EXPECT_EQ(whole(results(g, {0, 3, 0, 5, 0, 0})[0]), std::vector<int64_t>{3});
  }
}

TEST(BoundedSizes, BranchesOfTwoShapesAreRefused) {
  Graph g = counted([&](TestGraph& t, auto node, Value* x, Value* rows) {
    Value* condition =
        node("c", "ReduceMax", {node("big", "Greater", {x, t.scalar("six", 6)})}, {{"keepdims", int64_t(0)}});
    Node* n = t.g.append("If", {condition, rows}, {ModelText("y")});
    n->captures = 1;
    for (const bool wide : {false, true}) {
      auto body = std::make_unique<Graph>();
      Value* r = body->add_input(ModelText("r"), {});
      Value* twice = body->append("Concat", {r, r}, {ModelText("w")}, {{"axis", int64_t(0)}})->outputs[0];
      body->set_outputs({wide ? twice : body->append("Neg", {r}, {ModelText("m")})->outputs[0]});
      n->regions.push_back(std::move(body));
    }
    return n->outputs[0];
  });
  const Diagnostics problems = run(g);
  ASSERT_TRUE(problems.has_errors());
  EXPECT_EQ(problems.list()[0].code, "TC0303");
}

}  // namespace
}  // namespace tc::bounded_sizes_test
