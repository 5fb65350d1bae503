#include "ir/ops/evaluate.h"

#include <gtest/gtest.h>

#include "ir/ops/op.h"

namespace tc::evaluate_test {
namespace {

ValueType f32(const Dims& d) { return ValueType::tensor(DType::F32, to_shape(d)); }

Constant floats(const Dims& d, std::vector<float> v) { return make_constant(DType::F32, d, v.data()); }

std::vector<float> floats_of(const Constant& c) {
  return std::vector<float>(c->as<float>(), c->as<float>() + c->size());
}

void infer_all(Graph& g) {
  for (const auto& n : g.nodes()) infer_types(g, *n);
}

TEST(EvaluateGraph, RunsNodesInOrder) {
  Graph g;
  Value* x = g.add_input(ModelText("x"), f32({3}));
  Value* c = g.add_constant(ModelText("c"), floats({3}, {1, 2, 3}));
  Value* y = g.append("Add", {x, c}, {ModelText("y")})->outputs[0];
  g.set_outputs({g.append("Mul", {y, y}, {ModelText("z")})->outputs[0], y, c});
  infer_all(g);
  const auto out = evaluate(g, {floats({3}, {1, 1, 1})});
  EXPECT_EQ(floats_of(out[0]), (std::vector<float>{4, 9, 16}));
  EXPECT_EQ(floats_of(out[1]), (std::vector<float>{2, 3, 4}));
  EXPECT_EQ(out[2], c->constant);
}

TEST(EvaluateGraph, IfRunsOneBranch) {
  Graph g;
  Value* cond = g.add_input(ModelText("c"), ValueType::tensor(DType::Bool, {}));
  Value* x = g.add_input(ModelText("x"), f32({2}));
  Node* n = g.append("If", {cond, x}, {ModelText("y")});
  n->captures = 1;
  for (const char* op : {"Neg", "Abs"}) {
    auto body = std::make_unique<Graph>();
    Value* in = body->add_input(ModelText("b"), f32({2}));
    body->set_outputs({body->append(op, {in}, {ModelText("r")})->outputs[0]});
    n->regions.push_back(std::move(body));
  }
  g.set_outputs({n->outputs[0]});
  infer_all(g);
  for (const bool yes : {true, false}) {
    const auto out = evaluate(g, {scalar_constant(DType::Bool, yes), floats({2}, {-1, 2})});
    EXPECT_EQ(floats_of(out[0]), yes ? (std::vector<float>{1, -2}) : (std::vector<float>{1, 2}));
  }
}

TEST(EvaluateGraph, LoopCarriesStatesStacksResultsAndStops) {
  Graph g;
  Value* x = g.add_input(ModelText("x"), f32({2}));
  Value* step = g.add_input(ModelText("step"), f32({2}));
  Value* trips = g.add_constant(ModelText("trips"), scalar_constant(DType::I64, 3));
  Node* n = g.append("Loop", {trips, nullptr, x, step}, {ModelText("last"), ModelText("all")});
  n->captures = 1;
  auto body = std::make_unique<Graph>();
  body->add_input(ModelText("i"), {});
  Value* go = body->add_input(ModelText("go"), {});
  Value* s = body->add_input(ModelText("s"), {});
  Value* d = body->add_input(ModelText("d"), {});
  Value* next = body->append("Add", {s, d}, {ModelText("next")})->outputs[0];
  body->set_outputs({go, next, next});
  n->regions.push_back(std::move(body));
  g.set_outputs(n->outputs);
  infer_all(g);
  const auto out = evaluate(g, {floats({2}, {0, 1}), floats({2}, {1, 10})});
  EXPECT_EQ(floats_of(out[0]), (std::vector<float>{3, 31}));
  EXPECT_EQ(out[1]->dims, (Dims{3, 2}));
  EXPECT_EQ(floats_of(out[1]), (std::vector<float>{1, 11, 2, 21, 3, 31}));
}

TEST(EvaluateGraph, ScanSlicesAlongAxesAndDirections) {
  Graph g;
  Value* s0 = g.add_input(ModelText("s0"), f32({2}));
  Value* x = g.add_input(ModelText("x"), f32({2, 3}));  // scanned along axis 1, from its end
  Node* n = g.append("Scan", {s0, x}, {ModelText("sum"), ModelText("partial")},
                     {{"num_scan_inputs", int64_t(1)},
                      {"scan_input_axes", std::vector<int64_t>{1}},
                      {"scan_input_directions", std::vector<int64_t>{1}},
                      {"scan_output_axes", std::vector<int64_t>{1}}});
  auto body = std::make_unique<Graph>();
  Value* s = body->add_input(ModelText("s"), {});
  Value* v = body->add_input(ModelText("v"), {});
  Value* next = body->append("Add", {s, v}, {ModelText("next")})->outputs[0];
  body->set_outputs({next, next});
  n->regions.push_back(std::move(body));
  g.set_outputs(n->outputs);
  infer_all(g);
  const auto out = evaluate(g, {floats({2}, {0, 100}), floats({2, 3}, {1, 2, 3, 10, 20, 30})});
  EXPECT_EQ(floats_of(out[0]), (std::vector<float>{6, 160}));
  EXPECT_EQ(out[1]->dims, (Dims{2, 3}));
  EXPECT_EQ(floats_of(out[1]), (std::vector<float>{3, 5, 6, 130, 150, 160}));
}

}  // namespace
}  // namespace tc::evaluate_test
