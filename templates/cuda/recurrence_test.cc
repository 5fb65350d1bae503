// Recurrent cells on a GPU: launches of a step each, whatever the numbers of units, sequences and directions.
#include <gtest/gtest.h>

#include "ir/loop/visit.h"
#include "ir/ops/test_ops.h"

namespace tc::recurrence_test {
namespace {

struct Shape {
  int64_t steps = 5, batch = 1, inputs = 4, hidden = 8, directions = 1;
};

OpRun cell(const std::string& op, int64_t gates, const Shape& s, DType t = DType::F32, Attrs attrs = {}) {
  auto values = [&](const Dims& d, int seed) { return random_tensor(t, d, seed, 0.5, false); };
  std::vector<double> lengths;
  for (int64_t n = 0; n < s.batch; n++) lengths.push_back(double(s.steps - n % 2));
  if (s.directions == 2) attrs["direction"] = std::string("bidirectional");
  return {
      .op = op,
      .inputs = {values({s.steps, s.batch, s.inputs}, 1), values({s.directions, gates * s.hidden, s.inputs}, 2),
                 values({s.directions, gates * s.hidden, s.hidden}, 3), values({s.directions, 2 * gates * s.hidden}, 4),
                 s.batch > 1 ? tensor_of(DType::I32, {s.batch}, lengths) : nullptr,
                 values({s.directions, s.batch, s.hidden}, 5)},
      .attrs = std::move(attrs),
      .outputs = 2,
      .cuda_tolerance = t == DType::F16 ? 2e-3 : 1e-4};
}

// run_op compares the CUDA schedule with the definition.
void run(const OpRun& r) { EXPECT_EQ(run_op(r).size(), 2u); }

const Shape kShapes[] = {{},
                         {.steps = 1, .hidden = 9},
                         {.batch = 3, .hidden = 33},
                         {.batch = 8, .hidden = 12, .directions = 2},
                         {.steps = 3, .batch = 16, .hidden = 7},
                         {.steps = 2, .batch = 6, .inputs = 3, .hidden = 70, .directions = 2}};

TEST(CudaRecurrence, Cells) {
  for (const Shape& s : kShapes)
    for (const DType t : {DType::F32, DType::F16, DType::F64}) {
      run(cell("LSTM", 4, s, t));
      run(cell("RNN", 1, s, t));
      for (const int64_t linear_first : {0, 1}) run(cell("GRU", 3, s, t, {{"linear_before_reset", linear_first}}));
    }
}

// Launches of a step, by cell.
int64_t launches_of_a_step(const OpRun& r) {
  Graph g;
  std::vector<Value*> in;
  for (const Constant& c : r.inputs) in.push_back(c ? g.add_constant(ModelText("i"), c) : nullptr);
  Node* n = g.append(r.op, in, {ModelText("y"), ModelText("h")}, r.attrs, "");
  infer_types(g, *n);
  TensorFn scan;
  for (const Stage& s : tensor_fn(*n).stages)
    if (s.scan >= 0) scan.stages.push_back(s);
  scan.inputs = tensor_fn(*n).inputs;
  for (const Stage& s : tensor_fn(*n).stages) {
    if (s.scan >= 0) continue;
    bool before = true;  // what the scan reads of the projection is an operand here
    for (const Stage& x : scan.stages)
      for (const Expr& e : s.values) before = before && !uses_buffer(e, x.outputs[0]);
    if (before) scan.inputs.push_back(s.outputs[0]);
  }
  scan.outputs = {scan.stages.back().outputs[0]};
  const Scheduled s = schedule_cuda(scan, std::vector<bool>(scan.inputs.size(), false), *find_arch("sm_80"));
  EXPECT_EQ(s.family, "recurrence");
  int64_t launches = 0;
  walk(s.body, [&](const Stmt& x) {
    const For* f = as<For>(x);
    launches += f && f->kind == ForKind::BlockX ? 1 : 0;
    return true;
  });
  return launches;
}

TEST(CudaRecurrence, GatesAndStateAreOneLaunch) {
  EXPECT_EQ(launches_of_a_step(cell("LSTM", 4, {})), 1);
  EXPECT_EQ(launches_of_a_step(cell("RNN", 1, {})), 1);
  EXPECT_EQ(launches_of_a_step(cell("GRU", 3, {}, DType::F32, {{"linear_before_reset", int64_t(1)}})), 1);
  EXPECT_EQ(launches_of_a_step(cell("GRU", 3, {})), 2);  // the candidate's product needs all reset states
}

}  // namespace
}  // namespace tc::recurrence_test
