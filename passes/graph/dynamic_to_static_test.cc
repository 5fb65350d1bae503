#include "passes/graph/passes.h"
#include "passes/graph/test_graph.h"

namespace tc::dynamic_to_static_test {
namespace {

/// Nodes without types, as an importer makes them.
Value* raw(TestGraph& t, const std::string& name, const std::string& op, std::vector<Value*> in, Attrs attrs = {}) {
  return t.g.append(op, std::move(in), {ModelText(name)}, std::move(attrs))->outputs[0];
}

void run(Graph& g, Diagnostics* d = nullptr) {
  PassContext cx;
  cx.diagnostics = d;
  dynamic_to_static(g, cx);
}

TEST(DynamicToStatic, EvaluatesTheShapeArithmeticOfExporters) {
  TestGraph t;
  Value* x = t.in("x", {2, 3, 4});
  Value* s = raw(t, "s", "Shape", {x});
  Value* b = raw(t, "b", "Gather", {s, t.scalar("zero", 0, DType::I64)});
  Value* u = raw(t, "u", "Unsqueeze", {b, t.ints("axes", {0})});
  Value* c = raw(t, "c", "Concat", {u, t.ints("minus", {-1})}, {{"axis", int64_t(0)}});
  Value* y = raw(t, "y", "Reshape", {x, c});
  Graph g = t.out({y});
  run(g);
  EXPECT_EQ(ops_of(g), "Reshape");
  EXPECT_EQ(to_text(g.outputs()[0]->type), "f32[2,12]");
  EXPECT_EQ(g.nodes().front()->inputs[1]->constant->as_ints(), (std::vector<int64_t>{2, -1}));
}

TEST(DynamicToStatic, DeclaredShapesReachOperandsOfElementwiseFunctions) {
  TestGraph t;
  Value* x = t.in("x", {3, 2, 2});
  Value* axes = t.in("axes", {1}, DType::I64);
  Value* s = raw(t, "s", "ReduceSum", {x, axes});
  Value* y = raw(t, "y", "Sqrt", {s});
  ValueType open = type_of(DType::F32, {});
  open.has_rank = false;
  t.g.set_type(s, open);
  t.g.set_type(y, type_of(DType::F32, {3, 1, 2}));
  Graph g = t.out({y});
  run(g);
  EXPECT_EQ(to_text(g.outputs()[0]->type), "f32[3,1,2]");
}

TEST(DynamicToStatic, DeclaredShapesReachOperandsThroughNumbersAndSharedShapes) {
  TestGraph t;
  Value* limit = t.in("limit", {}, DType::F32);
  Value* r = raw(t, "r", "Range", {t.scalar("from", 0), limit, t.scalar("step", 1)});
  Value* scaled = raw(t, "scaled", "Mul", {r, limit});
  Value* c = raw(t, "c", "Cos", {scaled});
  Value* y = raw(t, "y", "Add", {c, scaled});
  ValueType open = ValueType::tensor(DType::F32, {Dim()});
  for (Value* v : {r, scaled, c}) t.g.set_type(v, open);
  t.g.set_type(y, type_of(DType::F32, {7}));
  Graph g = t.out({y});
  run(g);
  EXPECT_EQ(to_text(r->type), "f32[7]");
  EXPECT_EQ(to_text(g.outputs()[0]->type), "f32[7]");
}

TEST(DynamicToStatic, OperandsOfDifferentShapesKeepTheirs) {
  TestGraph t;
  Value* limit = t.in("limit", {}, DType::F32);
  Value* r = raw(t, "r", "Range", {t.scalar("from", 0), limit, t.scalar("step", 1)});
  Value* y = raw(t, "y", "Add", {r, t.in("x", {7})});
  t.g.set_type(r, ValueType::tensor(DType::F32, {Dim()}));
  t.g.set_type(y, type_of(DType::F32, {7}));
  Graph g = t.out({y});
  Diagnostics d;
  run(g, &d);
  EXPECT_FALSE(d.list().empty());  // the range may have one element
}

TEST(DynamicToStatic, TheDeclaredShapeOfASliceIsItsLength) {
  TestGraph t;
  Value *x = t.in("x", {9, 8}), *length = t.in("length", {2}, DType::I64);
  Value* s = raw(t, "s", "Shape", {x});
  Value* rest = raw(t, "rest", "Sub", {s, length});
  Value* start = raw(t, "start", "Div", {rest, t.ints("two", {2})});
  Value* end = raw(t, "end", "Add", {start, length});
  Value* y = raw(t, "y", "Slice", {x, start, end});
  t.g.set_type(y, type_of(DType::F32, {3, 4}));
  Graph g = t.out({y});
  run(g);
  EXPECT_EQ(ops_of(g), "Slice");
  EXPECT_EQ(g.nodes().front()->inputs[1]->constant->as_ints(), (std::vector<int64_t>{3, 2}));
}

TEST(DynamicToStatic, ConstantOfShapeAndRangeFollow) {
  TestGraph t;
  Value* x = t.in("x", {5, 3});
  Value* s = raw(t, "s", "Shape", {x});
  Value* n = raw(t, "n", "Gather", {s, t.scalar("zero", 0, DType::I64)});
  Value* r = raw(t, "r", "Range", {t.scalar("from", 0, DType::I64), n, t.scalar("step", 1, DType::I64)});
  Value* y = raw(t, "y", "Gather", {x, r});
  Graph g = t.out({y});
  run(g);
  EXPECT_EQ(ops_of(g), "Gather");
  EXPECT_EQ(to_text(g.outputs()[0]->type), "f32[5,3]");
}

std::unique_ptr<Graph> branch(const char* op) {
  auto g = std::make_unique<Graph>();
  Value* x = g->add_input(ModelText("bx"), {});
  Value* y = g->append(op, {x}, {ModelText(std::string("by_") + op)})->outputs[0];
  g->set_outputs({y});
  return g;
}

Graph conditional(TestGraph& t, Value* condition) {
  Value* x = t.in("x", {3});
  Node* n = t.g.append("If", {condition, x}, {ModelText("y")});
  n->captures = 1;
  n->regions.push_back(branch("Relu"));
  n->regions.push_back(branch("Neg"));
  return t.out({n->outputs[0]});
}

TEST(DynamicToStatic, AnIfWithAConstantConditionBecomesItsBranch) {
  for (const bool yes : {true, false}) {
    TestGraph t;
    Graph g = conditional(t, t.scalar("c", yes, DType::Bool));
    run(g);
    EXPECT_EQ(ops_of(g), yes ? "Relu" : "Neg");
    EXPECT_EQ(g.outputs()[0]->name, ModelText("y"));
    EXPECT_EQ(to_text(g.outputs()[0]->type), "f32[3]");
  }
}

// A model for two sample rates, whose inputs have the sizes of one of them: the other branch fits no run.
TEST(DynamicToStatic, ABranchThatFitsNoRunIsNamedWithItsInput) {
  TestGraph t;
  Value *x = t.in("x", {3}),
        *fast = t.g.append("Not", {t.in("slow", {}, DType::Bool)}, {ModelText("fast")})->outputs[0];
  Node* n = t.g.append("If", {fast, x}, {ModelText("y")});
  n->captures = 1;
  n->regions.push_back(branch("Relu"));
  n->regions.push_back(branch("Det"));  // of no matrix
  Graph g = t.out({n->outputs[0]});
  Diagnostics d;
  PassContext cx;
  cx.diagnostics = &d;
  dynamic_to_static(g, cx);
  ASSERT_EQ(d.list().size(), 1U);
  EXPECT_EQ(d.list()[0].exit, ExitCode::Unsupported);
  EXPECT_EQ(d.list()[0].notes.at(0),
            "it is in a branch, and input \"slow\" decides whether that is taken: --input-value slow=VALUE leaves the "
            "other one");
}

TEST(DynamicToStatic, BodiesGetTypesAndTheirOwnConstants) {
  TestGraph t;
  Value* c = t.in("c", {}, DType::Bool);
  Value* k = t.scalar("k", 2);
  Node* n = t.g.append("If", {c, t.in("x", {3}), k}, {ModelText("y")});
  n->captures = 2;
  for (const char* op : {"Add", "Mul"}) {
    auto g = std::make_unique<Graph>();
    Value* x = g->add_input(ModelText("bx"), {});
    Value* y = g->add_input(ModelText("bk"), {});
    g->set_outputs({g->append(op, {x, y}, {ModelText("by")})->outputs[0]});
    n->regions.push_back(std::move(g));
  }
  Graph g = t.out({n->outputs[0]});
  run(g);
  EXPECT_EQ(n->captures, 1);
  EXPECT_EQ(n->inputs.size(), 2u);
  for (const auto& r : n->regions) {
    EXPECT_EQ(r->inputs().size(), 1u);
    EXPECT_TRUE(r->nodes().front()->inputs[1]->is_constant());
  }
  EXPECT_EQ(to_text(g.outputs()[0]->type), "f32[3]");
}

TEST(DynamicToStatic, CollectsTheProblemsOfAllNodes) {
  TestGraph t;
  Value* x = t.in("x", {2, 3});
  Value* a = raw(t, "a", "NoSuchOperator", {x});
  Value* b = raw(t, "b", "Relu", {a});
  Value* c = raw(t, "c", "Reshape", {x, t.ints("five", {5})});
  Graph g = t.out({b, c});
  Diagnostics d;
  run(g, &d);
  ASSERT_EQ(d.list().size(), 2u);
  EXPECT_EQ(d.list()[0].loc.op, "NoSuchOperator");
  EXPECT_EQ(d.list()[1].loc.op, "Reshape");
}

/// A Loop, Scan or If named by `op`, whose node or bodies take or give `operands`, `inputs` or `outputs` more than fit.
Graph node_with_bodies(const std::string& op, int operands, int inputs, int outputs) {
  const bool loop = op == "Loop", branches = op == "If";
  TestGraph t;
  std::vector<Value*> own = {t.in("p", {}, DType::Bool)};
  if (loop) own = {t.scalar("trips", 3, DType::I64), nullptr, t.in("state", {4}), t.in("other", {4})};
  if (op == "Scan") own = {t.in("state", {4}), t.in("rows", {3, 4})};
  own.resize(size_t(std::max(0, int(own.size()) + operands)), own[0]);
  Node* n = t.g.append(op, own, {ModelText("a"), ModelText("b")}, {{"num_scan_inputs", int64_t(1)}});
  for (int k = 0; k < (branches ? 2 : 1); k++) {
    auto g = std::make_unique<Graph>();
    std::vector<Value*> given(1, g->add_constant(ModelText("one"), scalar_constant(DType::F32, 1)));
    const int handed = (loop ? 4 : branches ? 0 : 2) + inputs;
    for (int i = 0; i < handed; i++) given.push_back(g->add_input(ModelText("i" + std::to_string(i)), {}));
    given.resize(size_t(std::max(0, (loop ? 3 : 2) + outputs)), given.back());
    g->set_outputs(given);
    n->regions.push_back(std::move(g));
  }
  return t.out({n->outputs[0]});
}

TEST(DynamicToStatic, RefusesBodiesThatDoNotFitTheirNodes) {
  for (const std::string op : {"Loop", "Scan", "If"})
    for (int by : {-4, -3, -2, -1, 1})
      for (int what = 0; what < 3; what++) {
        if (op == "If" && what == 1 && by < 0) continue;  // its branches take nothing
        Graph g = node_with_bodies(op, what == 0 ? by : 0, what == 1 ? by : 0, what == 2 ? by : 0);
        Diagnostics d;
        run(g, &d);
        ASSERT_EQ(d.list().size(), 1u) << op << " " << what << " " << by;
        EXPECT_EQ(d.list()[0].code, "TC0201");
      }
}

/// s = Loop(trips, , x) {s = Concat(s, s)}
Graph growing_loop(TestGraph& t, Value* trips) {
  Value* x = t.in("x", {1, 3});
  Node* n = t.g.append("Loop", {trips, nullptr, x}, {ModelText("y")});
  auto body = std::make_unique<Graph>();
  body->add_input(ModelText("i"), {});
  Value* go = body->add_input(ModelText("go"), {});
  Value* s = body->add_input(ModelText("s"), {});
  Value* on = body->append("Identity", {go}, {ModelText("on")})->outputs[0];
  Value* longer = body->append("Concat", {s, s}, {ModelText("longer")}, {{"axis", int64_t(0)}})->outputs[0];
  body->set_outputs({on, longer});
  n->regions.push_back(std::move(body));
  return t.out({n->outputs[0]});
}

TEST(DynamicToStatic, UnrollsLoopsWhoseStatesGrowIfItIsKnownHowOftenTheyRun) {
  TestGraph few, many, open;
  Graph g = growing_loop(few, few.scalar("trips", 3, DType::I64));
  run(g);
  EXPECT_EQ(to_text(g.outputs()[0]->type), "f32[8,3]");
  for (const bool known : {true, false}) {
    TestGraph& t = known ? many : open;
    Graph refused = growing_loop(t, known ? t.scalar("trips", 300, DType::I64) : t.in("trips", {}, DType::I64));
    Diagnostics d;
    run(refused, &d);
    ASSERT_EQ(d.list().size(), 1u) << known;
    EXPECT_EQ(d.list()[0].code, "TC0301");
    EXPECT_NE(d.list()[0].render().find("unrolled"), std::string::npos);
  }
}

}  // namespace
}  // namespace tc::dynamic_to_static_test
