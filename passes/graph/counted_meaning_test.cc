// Operators that go along with a counted axis: by their nests, and by the sizes of their results.
#include <gtest/gtest.h>

#include "ir/loop/build.h"
#include "passes/graph/counted_follow.h"
#include "passes/graph/test_counted.h"

namespace tc::counted_meaning_test {
namespace {

using namespace counted_testing;

TEST(CountedMeaning, ANestGoesAlongWithItsLoop) {
  Graph g = counted([&](TestGraph& t, auto node, Value*, Value* rows) {
    Value* matrices = node("matrices", "Reshape", {rows, t.ints("sizes", {-1, 1, 1})});
    return node("y", "Det", {node("floats", "Cast", {matrices}, {{"to", int64_t(1)}})});
  });
  EXPECT_FALSE(run(g).has_errors());
  const std::vector<float> x = {0, 3, 0, 5, 7, 0};  // the rows 1, 3, 4
  EXPECT_EQ(results(g, x)[0]->dims, Dims{3});
  EXPECT_EQ(results(g, x)[0]->as_double(2), 4);
}

/// y[b] = f(x[b]) for each b of 5, by a nest.
TensorFn by_nest(const std::function<Stmt(const Buffer& x, const Buffer& y, const Var& b)>& body) {
  TensorFn fn;
  const Buffer x = make_buffer("x", DType::I64, {Dim(5)}), y = make_buffer("y", DType::I64, {Dim(5)});
  Stage s;
  s.kind = Stage::Kind::Nest;
  s.name = "nest";
  s.outputs = {y};
  s.nest = body(x, y, make_var("b"));
  fn.inputs = {x};
  fn.outputs = {y};
  fn.stages = {s};
  return fn;
}

bool follows(const TensorFn& fn) {
  CountedAxes axes;
  axes.add(fn.inputs[0].get(), 0);
  return axes.follow(fn) && axes.of(fn.outputs[0].get()) == std::set<int>{0};
}

TEST(CountedMeaning, IterationsOfANestShareNothing) {
  const Buffer n = make_buffer("n", DType::I64, {}, Scope::Register);
  const auto step = [&](const Buffer& x, const Buffer& y, const Var& b) {
    return seq({store(n, {}, load(x, {b}) + 1), store(y, {b}, load(n, {}))});
  };
  EXPECT_TRUE(follows(by_nest([&](auto& x, auto& y, auto& b) { return loop(b, 5, alloc(n, step(x, y, b))); })));
  EXPECT_FALSE(follows(by_nest([&](auto& x, auto& y, auto& b) { return alloc(n, loop(b, 5, step(x, y, b))); })));
  // Not all elements, another element, the index itself.
  EXPECT_FALSE(follows(by_nest([&](auto& x, auto& y, auto& b) { return loop(b, 4, alloc(n, step(x, y, b))); })));
  EXPECT_FALSE(follows(by_nest([&](auto& x, auto& y, auto& b) {
    return loop(b, 5, store(y, {Expr(4) - Expr(b)}, load(x, {Expr(4) - Expr(b)})));
  })));
  EXPECT_FALSE(
      follows(by_nest([&](auto& x, auto& y, auto& b) { return loop(b, 5, store(y, {b}, load(x, {b}) + Expr(b))); })));
  // One element of the result reads all.
  EXPECT_FALSE(follows(
      by_nest([&](auto& x, auto& y, auto& b) { return loop(b, 5, store(y, {Expr(0)}, load(x, {b}), Op::Add)); })));
}

TEST(CountedMeaning, WhatIsWrittenBeforeHasTheSameAxis) {
  const Var c = make_var("c");
  const auto cleared = [&](auto& x, auto& y, auto& b) {
    return seq({loop(c, 5, store(y, {c}, Expr(0))), loop(b, 5, store(y, {b}, load(x, {b}), Op::Add))});
  };
  EXPECT_TRUE(follows(by_nest(cleared)));
}

TEST(CountedMeaning, WhatHasNoElementsGoesAlongByItsSizes) {
  for (const std::string op : {"Slice", "Gather"}) {
    Graph g = counted([&](TestGraph& t, auto node, Value*, Value* rows) {
      if (op == "Slice") return node("y", op, {rows, t.ints("start", {0}), t.ints("end", {0}), t.ints("axes", {1})});
      return node("y", op, {rows, t.ints("none", {})}, {{"axis", int64_t(1)}});
    });
    EXPECT_FALSE(run(g).has_errors()) << op;
    EXPECT_EQ(results(g, {0, 3, 0, 5, 7, 0})[0]->dims, (Dims{3, 0})) << op;
  }
}

TEST(CountedMeaning, WhatReadsNoElementGoesAlongByItsSizes) {
  Graph g = counted([&](TestGraph&, auto node, Value*, Value* rows) {
    return node("y", "EyeLike", {node("turned", "Transpose", {rows})}, {{"k", int64_t(1)}});
  });
  EXPECT_FALSE(run(g).has_errors());
  EXPECT_EQ(results(g, {0, 3, 0, 5, 7, 0})[0]->dims, (Dims{1, 3}));
}

}  // namespace
}  // namespace tc::counted_meaning_test
