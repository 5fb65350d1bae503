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
      {"Tile", int64_constant({2, 1})},
      {"LpNormalization", nullptr, {{"axis", int64_t(0)}}},
      {"Reshape", int64_constant({2, -1})},
      {"Add", make_constant(DType::I64, {6, 1}, sixes)},  // as many as there is room for is not as many as there are
      {"Hardmax", nullptr, {{"axis", int64_t(0)}}},
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

TEST(BoundedSizes, AxesBehindTheCountedOneAreMergedAndSplitAgain) {
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

TEST(BoundedSizes, AxesInFrontOfTheCountedOneAreMergedAndSplitAgain) {
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

TEST(BoundedSizes, FlattenAndComputedShapesMultiplyCounts) {
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

TEST(BoundedSizes, ASizeThatIsNoCountIsKnown) {
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

TEST(BoundedSizes, TheNumberOfAllElements) {
  Graph g = counted([](TestGraph& t, auto node, Value*, Value* rows) {
    return node("y", "Size", {node("wide", "Add", {rows, t.ints("zeros", {0, 0, 0})})});
  });
  EXPECT_FALSE(run(g).has_errors());
  EXPECT_EQ(whole(results(g, {0, 3, 0, 5, 7, 0})[0]), std::vector<int64_t>{9});
}

TEST(BoundedSizes, PositionsFromTheEndLeadToTheLastCountedElement) {
  for (const bool nd : {false, true}) {
    Graph g = counted([&](TestGraph& t, auto node, Value*, Value* rows) {
      const int64_t places[3] = {-1, 0, -2};
      Value* at = t.constant("at", make_constant(DType::I64, nd ? Dims{3, 1} : Dims{3}, places));
      return node("y", nd ? "GatherND" : "Gather", {rows, at});
    });
    EXPECT_FALSE(run(g).has_errors()) << nd;
    EXPECT_EQ(whole(results(g, {0, 3, 0, 5, 7, 0})[0]), (std::vector<int64_t>{4, 1, 3})) << nd;
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

TEST(BoundedSizes, SlicesBetweenPositionsThatComeAtRunTime) {
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
    const Constant c = in_actual_sizes(
        g, evaluate(g, {make_constant(DType::F32, {5}, numbers.data()), int64_constant({a}), int64_constant({b})}))[0];
    return std::vector<float>(c->as<float>(), c->as<float>() + c->size());
  };
  EXPECT_EQ(cut(1, 3), (std::vector<float>{6, 9}));
  EXPECT_EQ(cut(-2, 99), (std::vector<float>{12, 15}));
  EXPECT_EQ(cut(-99, -4), std::vector<float>{3});
  EXPECT_EQ(cut(3, 3), std::vector<float>{});
  EXPECT_EQ(cut(4, 1), std::vector<float>{});
  EXPECT_EQ(cut(7, 9), std::vector<float>{});
}

TEST(BoundedSizes, AKnownSliceBesideOneThatComesAtRunTime) {
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
  const auto c =
      in_actual_sizes(g, evaluate(g, {make_constant(DType::F32, {2, 4}, numbers.data()), int64_constant({2})}))[0];
  EXPECT_EQ(c->dims, (Dims{1, 2}));
  EXPECT_EQ(c->as<float>()[1], 8);
}

TEST(BoundedSizes, TheFirstOnesOfATensorAreAsManyAsAnotherHas) {
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
    const Diagnostics d = run(g);
    EXPECT_EQ(d.has_errors(), results_counted);
    if (results_counted) {
      EXPECT_EQ(d.list()[0].code, "TC0303");
      continue;
    }
    EXPECT_EQ(whole(results(g, {0, 3, 0, 5, 7, 0})[0]), std::vector<int64_t>{8});
    EXPECT_EQ(whole(results(g, {0, 3, 0, 5, 0, 0})[0]), std::vector<int64_t>{3});
  }
}

TEST(BoundedSizes, ScatteringToPlacesOfSeveralNumbers) {
  Graph g = counted([](TestGraph& t, auto node, Value* x, Value* rows) {
    const int64_t zeros[2] = {0, 1};
    Value* places = node("places", "Mul", {rows, t.constant("column", make_constant(DType::I64, {2}, zeros))});
    const float data[6] = {10, 11, 12, 13, 14, 15};
    return node("y", "ScatterND",
                {t.constant("d", make_constant(DType::F32, {1, 6}, data)), places, node("v", "GatherND", {x, rows})},
                {{"reduction", std::string("add")}});
  });
  EXPECT_FALSE(run(g).has_errors());
  const Constant y = results(g, {0, 3, 0, 5, 0, 0})[0];
  EXPECT_EQ(std::vector<float>(y->as<float>(), y->as<float>() + 6), (std::vector<float>{10, 14, 12, 18, 14, 15}));
}

}  // namespace
}  // namespace tc
