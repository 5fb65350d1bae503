#include "ir/verify.h"

#include <gtest/gtest.h>

#include "ir/loop/build.h"

namespace tc::verify_test {
namespace {

template <class F>
std::string message(F f) {
  try {
    f();
  } catch (const InternalError& e) {
    return e.what();
  }
  return "fine";
}

TEST(VerifyStmt, NamesMustBeVisible) {
  Buffer x = make_buffer("x", DType::F32, {Dim(4)}), y = make_buffer("y", DType::F32, {Dim(4)});
  Var i = make_var("i"), j = make_var("j");
  Stmt good = loop(i, 4, store(y, {i}, load(x, {i})));
  EXPECT_EQ(message([&] { verify(good, {x, y}); }), "fine");
  EXPECT_EQ(message([&] { verify(good, {y}); }), "verify: load: buffer \"x\" is not visible");
  Stmt bad = loop(i, 4, store(y, {i}, load(x, {j})));
  EXPECT_EQ(message([&] { verify(bad, {x, y}); }), "verify: variable \"j\" is not visible");
  EXPECT_EQ(message([&] { verify(bad, {x, y}, {j}); }), "fine");
  Stmt after = seq({good, store(y, {i}, load(x, {0}))});
  EXPECT_EQ(message([&] { verify(after, {x, y}); }), "verify: variable \"i\" is not visible");
  Stmt twice = loop(i, 4, loop(i, 4, store(y, {i}, load(x, {i}))));
  EXPECT_EQ(message([&] { verify(twice, {x, y}); }), "verify: variable \"i\" is bound inside its own scope");
  EXPECT_EQ(message([&] { verify(seq({good, good}), {x, y}); }), "fine");
}

TEST(VerifyStmt, TypesAndShapes) {
  Buffer y = make_buffer("y", DType::F32, {Dim(4)});
  Expr one = make_float(DType::F32, 1);
  EXPECT_EQ(message([&] { verify(store(y, {ramp(0)}, one), {y}); }),
            "verify: the shape of the value is not that of the index in a store to buffer \"y\"");
  EXPECT_EQ(message([&] { verify(store(y, {ramp(0)}, broadcast(one)), {y}); }), "fine");
  EXPECT_EQ(message([&] { verify(store(y, {make_int(DType::I32, 0)}, one), {y}); }),
            "verify: store: index i32(0) is not i64");
  EXPECT_EQ(
      message([&] { verify(if_then(load(make_buffer("c", DType::F32, {}), {}) < one, store(y, {0}, one)), {y}); }),
      "verify: load: buffer \"c\" is not visible");
  // apply() refuses such an operand itself, so the node is written down as a faulty pass would leave it.
  Expr bad(std::make_shared<const ExprNode>(ExprNode{DType::I32, false, Apply{Op::Sqrt, {make_int(DType::I32, 4)}}}));
  EXPECT_NE(message([&] { verify(store(y, {0}, cast(DType::F32, bad)), {y}); }).find("integer operand"),
            std::string::npos);
}

TensorFn row_sum() {
  TensorFn fn;
  Buffer x = make_buffer("x", DType::F32, {Dim(2), Dim(3)}), y = make_buffer("y", DType::F32, {Dim(2)});
  Stage s;
  s.kind = Stage::Kind::Reduce;
  s.name = "sum";
  s.axes = {{make_var("i"), Dim(2)}};
  s.raxes = {{make_var("j"), Dim(3)}};
  s.values = {load(x, {s.axes[0].var, s.raxes[0].var})};
  s.combiner.op = Op::Add;
  s.init = {make_float(DType::F32, 0)};
  s.outputs = {y};
  fn.inputs = {x};
  fn.stages = {s};
  fn.outputs = {y};
  return fn;
}

TEST(VerifyTensorFn, NamesTheStage) {
  TensorFn fn = row_sum();
  EXPECT_EQ(message([&] { verify(fn); }), "fine");
  fn.stages[0].axes[0].extent = Dim(3);
  EXPECT_EQ(message([&] { verify(fn); }), "verify: stage \"sum\": the shape of output \"y\" is not that of the axes");
  fn = row_sum();
  fn.stages[0].init = {};
  EXPECT_EQ(message([&] { verify(fn); }), "verify: stage \"sum\": one initial value per output");
  fn = row_sum();
  fn.stages[0].init = {cast(DType::F32, fn.stages[0].raxes[0].var)};
  EXPECT_EQ(message([&] { verify(fn); }), "verify: stage \"sum\": variable \"j\" is not visible");
  fn = row_sum();
  fn.inputs = {};
  EXPECT_EQ(message([&] { verify(fn); }), "verify: stage \"sum\": load: buffer \"x\" is not visible");
  fn = row_sum();
  fn.outputs = {make_buffer("z", DType::F32, {})};
  EXPECT_EQ(message([&] { verify(fn); }), "verify: output \"z\" is not defined");
}

ValueType f32(Dims d) { return ValueType::tensor(DType::F32, to_shape(d)); }

TEST(VerifyGraph, TypesOrderAndUsers) {
  Graph g;
  Value* x = g.add_input(ModelText("x"), f32({4}));
  Node* a = g.append("Relu", {x}, {ModelText("a")});
  Node* b = g.append("Relu", {a->outputs[0]}, {ModelText("b")});
  EXPECT_EQ(message([&] { verify(g); }), "verify: value \"a\" has no type");
  g.set_type(a->outputs[0], f32({4}));
  g.set_type(b->outputs[0], f32({4}));
  g.set_outputs({b->outputs[0]});
  EXPECT_EQ(message([&] { verify(g); }), "fine");
  x->users.push_back(b);
  EXPECT_EQ(message([&] { verify(g); }), "verify: value \"x\": its users are not the nodes that read it");
  x->users.pop_back();
  g.move_before(b, a);
  EXPECT_NE(message([&] { verify(g); }).find("before it is computed"), std::string::npos);
}

TEST(VerifyGraph, BodiesAndStatesKeepTheirTypes) {
  for (const bool state_changes : {false, true}) {
    Graph g;
    Value* x = g.add_input(ModelText("x"), f32({4}));
    Node* n = g.append("Loop", {nullptr, nullptr, x}, {ModelText("y")});
    auto body = std::make_unique<Graph>();
    body->add_input(ModelText("i"), ValueType::tensor(DType::I64, {}));
    Value* c = body->add_input(ModelText("c"), ValueType::tensor(DType::Bool, {}));
    Value* s = body->add_input(ModelText("s"), f32({state_changes ? 4 : 3}));
    Node* t = body->append("Relu", {s}, {ModelText("t")});
    body->set_type(t->outputs[0], f32({3}));
    body->set_outputs({c, t->outputs[0]});
    n->regions.push_back(std::move(body));
    g.set_type(n->outputs[0], f32({4}));
    g.set_outputs({n->outputs[0]});
    EXPECT_EQ(message([&] { verify(g); }),
              state_changes ? "verify: node \"\" (Loop): value \"s\" and value \"t\" are of two types"
                            : "verify: node \"\" (Loop): value \"x\" and value \"s\" are of two types");
  }
}

}  // namespace
}  // namespace tc::verify_test
