// Recurrent cells on a CPU: every step's products are contractions and its gates vectors, whatever the shapes.
#include <gtest/gtest.h>

#include "ir/loop/visit.h"
#include "ir/ops/test_ops.h"
#include "passes/loop/lower_lanes.h"
#include "templates/cpu/schedule_cpu.h"

namespace tc::recurrence_test {
namespace {

struct Shape {
  int64_t steps = 5, batch = 1, inputs = 4, hidden = 8, directions = 1;
  bool lengths = false, initial = true;
};

struct Cell {
  Graph graph;
  TensorFn fn;
  std::vector<Constant> in;
};

Cell cell(const std::string& op, const Shape& s, DType t = DType::F32, Attrs attrs = {}) {
  const int64_t gates = op == "LSTM" ? 4 : op == "GRU" ? 3 : 1;
  auto values = [&](const Dims& d, int seed) { return random_tensor(t, d, seed, 0.5, false); };
  std::vector<double> lengths;
  for (int64_t n = 0; n < s.batch; n++) lengths.push_back(double(s.steps - n % 2));
  if (s.directions == 2) attrs["direction"] = std::string("bidirectional");
  const Dims state = {s.directions, s.batch, s.hidden};
  std::vector<Constant> operands = {values({s.steps, s.batch, s.inputs}, 1),
                                    values({s.directions, gates * s.hidden, s.inputs}, 2),
                                    values({s.directions, gates * s.hidden, s.hidden}, 3),
                                    values({s.directions, 2 * gates * s.hidden}, 4),
                                    s.lengths ? tensor_of(DType::I32, {s.batch}, lengths) : nullptr,
                                    s.initial ? values(state, 5) : nullptr};
  if (op == "LSTM") operands.push_back(s.initial ? values(state, 6) : nullptr);
  Cell c;
  std::vector<Value*> in;
  for (const Constant& x : operands) in.push_back(x ? c.graph.add_constant(ModelText("i"), x) : nullptr);
  std::vector<ModelText> names = {ModelText("y"), ModelText("h")};
  if (op == "LSTM") names.push_back(ModelText("c"));
  Node* n = c.graph.append(op, in, names, attrs, "");
  infer_types(c.graph, *n);
  c.fn = tensor_fn(*n);
  for (int k : fn_operands(*n)) c.in.push_back(operands[size_t(k)]);
  return c;
}

bool takes_steps(const Scheduled& s) { return s.description.find("recurrence") != std::string::npos; }

void expect_equal(const Cell& c, bool constant = true) {
  const std::vector<Constant> expected = evaluate(c.fn, c.in);
  std::vector<bool> known;
  for (size_t i = 0; i < c.in.size(); i++) known.push_back(constant && i > 0);
  Scheduled s = schedule_cpu(c.fn, known, *find_cpu("x86-64-v4"));
  EXPECT_TRUE(takes_steps(s)) << s.description;
  s.body = lower_lanes(s.body);
  for (const int vl : {1, 8, 16}) {
    testing::ScheduleMemory memory(s, c.fn, c.in);
    const std::vector<Constant> got = memory.run(vl);
    for (size_t k = 0; k < got.size(); k++)
      testing::expect_close(got[k], expected[k], 1e-5, to_text(c.fn) + to_text(s.body));
  }
}

TEST(CpuRecurrence, Cells) {
  const Shape shapes[] = {{},
                          {.steps = 1, .hidden = 9},
                          {.batch = 3, .hidden = 33},
                          {.batch = 2, .hidden = 16, .initial = false},
                          {.batch = 3, .hidden = 12, .directions = 2, .lengths = true},
                          {.steps = 3, .batch = 17, .hidden = 7}};
  for (const Shape& s : shapes)
    for (const DType t : {DType::F32, DType::F64}) {
      expect_equal(cell("LSTM", s, t));
      expect_equal(cell("RNN", s, t));
      for (const int64_t linear_first : {0, 1})
        expect_equal(cell("GRU", s, t, {{"linear_before_reset", linear_first}}));
    }
}

TEST(CpuRecurrence, AttributesAndRunTimeWeights) {
  const Shape s{.batch = 2, .hidden = 10};
  expect_equal(cell("LSTM", s), false);
  expect_equal(cell("GRU", {.hidden = 20}), false);
  expect_equal(cell("LSTM", s, DType::F32,
                    {{"clip", 0.2f}, {"input_forget", int64_t(1)}, {"direction", std::string("reverse")}}));
  expect_equal(cell("RNN", s, DType::F32,
                    {{"activations", std::vector<std::string>{"LeakyRelu"}}, {"direction", std::string("reverse")}}));
}

// The recurrent weights are packed for the product, and no sum is left in scalars.
TEST(CpuRecurrence, ProductsReadPanels) {
  const Cell c = cell("LSTM", {.steps = 4, .hidden = 32});
  std::vector<bool> known(c.in.size(), true);
  known[0] = false;
  const Scheduled s = schedule_cpu(c.fn, known, *find_cpu("x86-64-v4"));
  EXPECT_EQ(s.prologue.outputs.size(), 2u);
  walk(s.body, [&](const Stmt& x) {
    const Store* k = as<Store>(x);
    EXPECT_FALSE(k && k->reduce && !k->value->vector) << to_text(x);
    if (as<Prefetch>(x)) ADD_FAILURE() << "a step's weights are in the caches";
    return true;
  });
}

}  // namespace
}  // namespace tc::recurrence_test
