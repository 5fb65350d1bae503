// Lists of tensors are resolved while compiling.
#include "passes/graph/sequences.h"

#include "ir/ops/evaluate.h"
#include "passes/graph/passes.h"
#include "passes/graph/test_graph.h"

namespace tc::sequences_test {
namespace {

/// Nodes without types, as an importer makes them.
struct ListGraph : TestGraph {
  Value* node(const std::string& name, const std::string& op, std::vector<Value*> in, Attrs attrs = {}) {
    return g.append(op, std::move(in), {ModelText(name)}, std::move(attrs))->outputs[0];
  }
  Value* at(int64_t k) { return scalar("at" + to_text(k), double(k), DType::I64); }
};

std::vector<std::string> problems(Graph& g) {
  Diagnostics d;
  PassContext cx;
  cx.diagnostics = &d;
  dynamic_to_static(g, cx);
  std::vector<std::string> codes;
  for (const Diagnostic& p : d.list()) codes.push_back(p.code);
  return codes;
}

using Codes = std::vector<std::string>;

/// An output of the graph that is a number, behind the Identity that gives it its name.
int64_t number_in(const Value* v) { return (v->constant ? v : v->producer->inputs.at(0))->constant->as_int(0); }

TEST(Sequences, InsertEraseAndTake) {
  ListGraph t;
  Value *a = t.in("a", {1}), *b = t.in("b", {2}), *c = t.in("c", {3});
  Value* s = t.node("s", "SequenceConstruct", {a, b});
  Value* u = t.node("u", "SequenceInsert", {s, c, t.at(-1)});  // a c b
  Value* v = t.node("v", "SequenceErase", {u, t.at(0)});       // c b
  Value* w = t.node("w", "SequenceErase", {v});                // c
  Value* y = t.node("y", "SequenceAt", {w, t.at(-1)});
  Value* z = t.node("z", "SequenceAt", {u, t.at(2)});
  Value* n = t.node("n", "SequenceLength", {u});
  Graph g = t.out({y, z, n});
  EXPECT_EQ(problems(g), Codes());
  EXPECT_EQ(to_text(g.outputs()[0]->type), "f32[3]");
  EXPECT_EQ(to_text(g.outputs()[1]->type), "f32[2]");
  EXPECT_EQ(number_in(g.outputs()[2]), 3);
  EXPECT_EQ(ops_of(g), "Identity Identity Identity");  // the outputs keep their names; the lists are gone
}

TEST(Sequences, PositionsOutsideAreRejected) {
  for (const auto& [op, at] :
       {std::pair("SequenceAt", 2), std::pair("SequenceAt", -3), std::pair("SequenceErase", 2)}) {
    ListGraph t;
    Value* s = t.node("s", "SequenceConstruct", {t.in("a", {1}), t.in("b", {1})});
    Graph g = t.out({t.node("y", op, {s, t.at(at)})});
    EXPECT_EQ(problems(g), Codes{"TC0201"}) << op << at;
  }
}

TEST(Sequences, WhatIsNotKnownIsRefused) {
  {
    ListGraph t;
    Value* s = t.node("s", "SequenceConstruct", {t.in("a", {1}), t.in("b", {1})});
    Graph g = t.out({t.node("y", "SequenceAt", {s, t.in("where", {}, DType::I64)})});
    EXPECT_EQ(problems(g), Codes{"TC0304"});
  }
  // A list of run-time sizes has a length, but no element of it has a shape.
  ListGraph t;
  Value* s = t.node("s", "SplitToSequence", {t.in("x", {6}), t.in("sizes", {3}, DType::I64)});
  Value* n = t.node("n", "SequenceLength", {s});
  Value* y = t.node("y", "SequenceAt", {s, t.at(0)});
  Graph g = t.out({n, y});
  EXPECT_EQ(problems(g), Codes{"TC0304"});
  EXPECT_EQ(number_in(g.outputs()[0]), 3);
}

TEST(Sequences, OutputsBecomeTheirTensors) {
  ListGraph t;
  Value* x = t.in("x", {5, 2});
  Graph g = t.out({t.node("parts", "SplitToSequence", {x, t.at(2)})});
  EXPECT_EQ(problems(g), Codes());
  ASSERT_EQ(g.outputs().size(), 3u);
  EXPECT_EQ(g.outputs()[2]->name.raw(), "parts_2");
  EXPECT_EQ(to_text(g.outputs()[2]->type), "f32[1,2]");
}

TEST(Sequences, ALoopThatCarriesOneIsUnrolled) {
  ListGraph t;
  Value* x = t.in("x", {3, 2});
  Value* parts = t.node("parts", "SplitToSequence", {x}, {{"axis", int64_t(0)}, {"keepdims", int64_t(0)}});
  Value* empty = t.node("empty", "SequenceEmpty", {});
  Value* n = t.node("n", "SequenceLength", {parts});
  Node* loop = t.g.append("Loop", {n, nullptr, empty, parts}, {ModelText("doubled"), ModelText("rows")});
  loop->captures = 1;
  auto body = std::make_unique<Graph>();
  Value *i = body->add_input(ModelText("i"), {}), *go = body->add_input(ModelText("go"), {});
  Value *held = body->add_input(ModelText("held"), {}), *list = body->add_input(ModelText("list"), {});
  auto node = [&](const char* name, const char* op, std::vector<Value*> in) {
    return body->append(op, std::move(in), {ModelText(name)})->outputs[0];
  };
  Value* row = node("row", "SequenceAt", {list, i});
  Value* sum = node("sum", "Add", {row, row});
  body->set_outputs({node("on", "Identity", {go}), node("more", "SequenceInsert", {held, sum}), row});
  loop->regions.push_back(std::move(body));
  Value* y = t.node("y", "ConcatFromSequence", {loop->outputs[0]}, {{"axis", int64_t(0)}});
  Graph g = t.out({y, loop->outputs[1]});
  EXPECT_EQ(problems(g), Codes());
  const float v[6] = {1, 2, 3, 4, 5, 6};
  const std::vector<Constant> r = evaluate(g, {make_constant(DType::F32, {3, 2}, v)});
  EXPECT_EQ(std::vector<float>(r[0]->as<float>(), r[0]->as<float>() + 6), (std::vector<float>{2, 4, 6, 8, 10, 12}));
  EXPECT_EQ(r[1]->dims, (Dims{3, 2}));
}

TEST(Optionals, HoldOneTensorOrNothing) {
  ListGraph t;
  Value* full = t.node("full", "Optional", {t.in("x", {4})});
  Value* none = t.node("none", "Optional", {});
  Value* y = t.node("y", "OptionalGetElement", {full});
  Value *p = t.node("p", "OptionalHasElement", {full}), *q = t.node("q", "OptionalHasElement", {none});
  Graph g = t.out({y, p, q});
  EXPECT_EQ(problems(g), Codes());
  EXPECT_EQ(to_text(g.outputs()[0]->type), "f32[4]");
  EXPECT_EQ(number_in(g.outputs()[1]), 1);
  EXPECT_EQ(number_in(g.outputs()[2]), 0);
}

}  // namespace
}  // namespace tc::sequences_test
