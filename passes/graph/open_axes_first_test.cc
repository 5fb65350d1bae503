// Tensors that are stored in another order of axes, with sizes that the caller chooses.
#include <gtest/gtest.h>

#include "ir/language/graph_text.h"
#include "ir/loop/print.h"
#include "ir/open_size.h"
#include "ir/verify.h"
#include "passes/graph/test_counted.h"
#include "passes/program/live_axes.h"

namespace tc::open_axes_first_test {
namespace {

using namespace counted_testing;

/// The functions of a graph of x: f32[5, n, 8], which is given to `then`.
template <class F>
Graph functions_of(const F& then) {
  TestGraph t;
  Dim n = Dim::symbolic("n", kOpenSize);
  n.least = 1;
  Value* x = t.g.add_input(ModelText("x"), ValueType::tensor(DType::F32, {Dim(5), n, Dim(8)}));
  auto node = [&](const std::string& name, const std::string& op, std::vector<Value*> in, Attrs attrs = {}) {
    return t.g.append(op, std::move(in), {ModelText(name)}, std::move(attrs))->outputs[0];
  };
  Graph g = t.out({then(t, node, x)});
  EXPECT_FALSE(run(g).has_errors());
  PassContext cx;
  dead_code(g, cx);
  open_axes_first(g, cx);
  to_functions(g, cx);
  verify(g);
  return g;
}

const Value* find(const Graph& g, const std::string& name) {
  for (const auto& v : g.values())
    if (v->name.raw() == name) return v.get();
  return nullptr;
}

std::string type_of(const Graph& g, const std::string& name) {
  const Value* v = find(g, name);
  return v ? to_text(v->type) : "";
}

TEST(OpenAxesFirst, TheBorderHasTheOrderOfTheModel) {
  Graph g = functions_of([](TestGraph&, auto node, Value* x) { return node("y", "Relu", {x}); });
  EXPECT_EQ(type_of(g, "x_unpacked"), "f32[n,5,8]");
  EXPECT_EQ(type_of(g, "y_unpacked"), "f32[n,5,8]");
  EXPECT_EQ(type_of(g, "x"), "f32[5,n,8]");
  EXPECT_EQ(type_of(g, "y"), "f32[5,n,8]");
  EXPECT_EQ(type_of(g, "y_packed"), "f32[40 * n]");
  const LiveAxes live(g);
  const std::vector<LiveAxis> packed = live.of(find(g, "y_packed")), rows = live.of(find(g, "y_unpacked"));
  ASSERT_EQ(packed.size(), 1u);
  EXPECT_EQ(to_text(packed[0].end), "n * 40");
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0].axis, 0);
}

TEST(OpenAxesFirst, WhatIsJoinedRowByRowStaysApart) {
  Graph g = functions_of([](TestGraph& t, auto node, Value* x) {
    Value* flat = node("flat", "Reshape", {x, t.ints("rows", {-1, 8})});
    Value* y = node("y", "MatMul", {flat, t.constant("w", float_constant({8, 2}, std::vector<float>(16, 1)))});
    return node("z", "Reshape", {y, t.ints("apart", {5, -1, 2})});
  });
  EXPECT_EQ(type_of(g, "y"), "f32[n,5,2]");
  EXPECT_EQ(to_text(g).find("regroup"), std::string::npos) << to_text(g);
}

TEST(OpenAxesFirst, RowsWhoseNumbersCountAreJoined) {
  Graph g = functions_of([](TestGraph& t, auto node, Value* x) {
    Value* flat = node("flat", "Reshape", {x, t.ints("rows", {-1, 8})});
    Value* size =
        node("size", "Squeeze", {node("first", "Gather", {node("sizes", "Shape", {flat}), t.ints("zero", {0})})});
    const auto number = [&](const char* name, double v) { return t.constant(name, scalar_constant(DType::I64, v)); };
    Value* numbers = node("numbers", "Range", {number("from", 0), size, number("step", 1)});
    Value* column =
        node("column", "Unsqueeze", {node("floats", "Cast", {numbers}, {{"to", int64_t(1)}}), t.ints("one", {1})});
    return node("z", "Reshape", {node("y", "Add", {flat, column}), t.ints("apart", {5, -1, 8})});
  });
  EXPECT_EQ(type_of(g, "flat_joined"), "f32[5 * n,8]");
  EXPECT_EQ(type_of(g, "y"), "f32[5 * n,8]");
  EXPECT_EQ(type_of(g, "z_unpacked"), "f32[n,5,8]");
}

TEST(OpenAxesFirst, HeadsBecomePartOfTheSize) {
  Graph g = functions_of([](TestGraph& t, auto node, Value* x) {
    Value* heads = node("heads", "Reshape", {x, t.ints("two", {5, -1, 4})});
    Value* first = node("first", "Transpose", {heads}, {{"perm", std::vector<int64_t>{1, 0, 2}}});
    Value* back = node("back", "Transpose", {node("r", "Relu", {first})}, {{"perm", std::vector<int64_t>{1, 0, 2}}});
    return node("y", "Reshape", {back, t.ints("one", {5, -1, 8})});
  });
  EXPECT_EQ(type_of(g, "r"), "f32[2 * n,5,4]");
}

}  // namespace
}  // namespace tc::open_axes_first_test
