#include <gtest/gtest.h>

#include "ir/loop/print.h"
#include "ir/ops/op.h"

namespace tc::op_builder_test {
namespace {

struct Fixture {
  Graph g;
  Value* x = g.add_input(ModelText("x"), ValueType::tensor(DType::F32, to_shape({2, 1, 4})));
  Value* y = g.add_input(ModelText("y"), ValueType::tensor(DType::F32, to_shape({3, 1})));
  Node* n =
      g.append("Test", {x, nullptr, y}, {ModelText("out"), ModelText(), ModelText("second")}, {{"axis", int64_t(-1)}});
  std::vector<Buffer> buffers{make_buffer("x", DType::F32, x->type.shape), nullptr,
                              make_buffer("y", DType::F32, y->type.shape)};
};

TEST(OpBuilder, BroadcastReadsTrailingAxes) {
  Fixture f;
  OpBuilder b(*f.n, f.buffers);
  const Tensor y = b.in(2);
  const Exprs at = {make_var("i"), make_var("j"), make_var("k")};
  EXPECT_EQ(to_text(y.broadcast_at(at)), "y[j, 0]");
}

TEST(OpBuilder, KeepsOnlyWhatOutputsNeed) {
  Fixture f;
  OpBuilder b(*f.n, f.buffers);
  const Tensor x = b.in(0), y = b.in(2);
  b.compute("unused", DType::F32, {3, 1}, [&](const Exprs& i) { return -y(i); });
  const Tensor out = b.compute("out", DType::F32, x.dims(), [&](const Exprs& i) { return -x(i); });
  b.output(0, out);
  b.output(1, out);  // nobody asked for it
  b.output(2, x);
  const TensorFn fn = b.take();
  EXPECT_EQ(fn.stages.size(), 1u);
  EXPECT_EQ(fn.operands, std::vector<int>{0});
  ASSERT_EQ(fn.outputs.size(), 2u);
  EXPECT_EQ(fn.outputs[1], fn.inputs[0]);
}

TEST(OpBuilder, ErrorsNameTheNodeAndTheOperand) {
  Fixture f;
  OpBuilder b(*f.n, f.buffers);
  EXPECT_EQ(b.axis(b.attr_int("axis"), 3), 2);
  try {
    b.axis(3, 3);
    FAIL() << "axis 3 of rank 3 was accepted";
  } catch (const Error& e) {
    EXPECT_EQ(e.diagnostic().render(),
              "error[TC0201]: node of type Test that makes \"out\": axis is 3 but must lie in -3..2");
  }
  try {
    b.const_ints(2);
    FAIL() << "a run-time operand was accepted as constant";
  } catch (const Error& e) {
    EXPECT_EQ(e.diagnostic().exit, ExitCode::Unsupported);
    EXPECT_EQ(e.diagnostic().loc.input, 2);
    EXPECT_EQ(e.diagnostic().loc.value, "y");
  }
  EXPECT_THROW(b.in(1), Error);
  EXPECT_THROW(b.attr_float("axis"), Error);
}

TEST(OpBuilder, ScanMayReadWhatALaterStageDefines) {
  Fixture f;
  OpBuilder b(*f.n, f.buffers);
  const Tensor x = b.in(0);
  b.begin_scan();
  const Tensor sum = b.declare("sum", DType::F32, {2});
  const Tensor before = b.compute("before", DType::F32, {2}, [&](const Exprs& i) {
    return select(eq(i[0], 0), zero(DType::F32), sum({i[0] - 1}));
  });
  b.define(sum, [&](const Exprs& i) { return before({i[0]}) + x({i[0], 0, 0}); });
  b.end_scan();
  b.output(0, before);
  b.output(2, before);
  const TensorFn fn = b.take();
  EXPECT_EQ(fn.stages.size(), 2u);
  EXPECT_EQ(fn.stages[0].scan, 0);
}

TEST(AllOps, TableIsSortedAndFound) {
  EXPECT_EQ(find_op("", "NoSuchOperator"), nullptr);
  ASSERT_NE(find_op("tc", "fused"), nullptr);
  EXPECT_EQ(find_op("", "fused"), nullptr);
  for (const OpRow* row : all_ops()) EXPECT_EQ(find_op(row->domain, row->name), row);
}

TEST(InferTypes, LoopGivesOneRowPerTrip) {
  Graph g;
  const int64_t three = 3;
  Value* trips = g.add_constant(ModelText("m"), make_constant(DType::I64, {}, &three));
  Value* state = g.add_input(ModelText("s"), ValueType::tensor(DType::F32, to_shape({4})));
  Node* n = g.append("Loop", {trips, nullptr, state}, {ModelText("last"), ModelText("all")});
  auto body = std::make_unique<Graph>();
  body->add_input(ModelText("i"), {});
  Value* c = body->add_input(ModelText("c"), {});
  Value* s = body->add_input(ModelText("s"), {});
  body->set_outputs({c, s, s});
  n->regions.push_back(std::move(body));
  infer_types(g, *n);
  EXPECT_EQ(to_text(n->outputs[0]->type), "f32[4]");
  EXPECT_EQ(to_text(n->outputs[1]->type), "f32[3,4]");
}

}  // namespace
}  // namespace tc::op_builder_test
