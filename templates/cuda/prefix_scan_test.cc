#include <gtest/gtest.h>

#include "passes/loop/lower_warp_memory.h"
#include "templates/cuda/test_exact.h"
#include "templates/cuda/test_schedule.h"

namespace tc::prefix_scan_test {
namespace {

using namespace tc::testing;

// out[0, ...] = x[0, ...], out[i, ...] = out[i - 1, ...] op x[i, ...]
TensorFn scan_of(const Dims& dims, Op op, DType t = DType::F32, bool exclusive = false) {
  TensorFn fn;
  const Buffer x = make_buffer("x", t, to_shape(dims)), y = make_buffer("y", t, to_shape(dims));
  Stage s;
  s.name = "scan";
  s.scan = 0;
  Exprs here, before;
  for (size_t d = 0; d < dims.size(); d++) {
    s.axes.push_back({make_var("i" + std::to_string(d)), Dim(dims[d])});
    here.push_back(Expr(s.axes[d].var));
    before.push_back(d == 0 ? here[0] - Expr(1) : here[d]);
  }
  const Expr sum = apply(op, {load(y, before), load(x, exclusive ? before : here)});
  s.values = {select(eq(here[0], 0), exclusive ? zero(t) : load(x, here), sum)};
  s.outputs = {y};
  fn.inputs = {x};
  fn.outputs = {y};
  fn.stages = {s};
  return fn;
}

Constant small_numbers(const Dims& dims, DType t) {
  MutableTensor m = new_tensor(t, dims);
  for (int64_t i = 0; i < num_elements(dims); i++) {
    const int v = int(i * 7 % 11) - 5;
    if (t == DType::F32)
      m.as<float>()[i] = float(v);
    else
      m.as<int32_t>()[i] = v;
  }
  return std::make_shared<const TensorData>(std::move(m.data));
}

void expect_scan(const TensorFn& fn) {
  const std::vector<Constant> in{small_numbers(static_dims(fn.inputs[0]->shape), fn.inputs[0]->dtype)};
  Scheduled s = schedule_cuda(fn, {false}, *find_arch("sm_80"));
  EXPECT_EQ(s.family, "prefix_scan") << to_text(fn);
  expect_cuda_schedule(fn, in, evaluate(fn, in), 0);
  const Constant before = ScheduleMemory(s, fn, in).run()[0];
  s.body = lower_warp_memory(s.body);
  EXPECT_NE(to_text(s.body).find("shuffle_up"), std::string::npos) << to_text(s.body);
  expect_close(ScheduleMemory(s, fn, in).run()[0], before, 0, to_text(s.body));
}

TEST(CudaPrefixScan, equals_the_definition) {
  for (const int64_t steps : {65, 96, 1000})
    for (const Dims& rest : std::vector<Dims>{{}, {1}, {3}, {4}, {2, 5}}) {
      Dims dims{steps};
      dims.insert(dims.end(), rest.begin(), rest.end());
      expect_scan(scan_of(dims, Op::Add));
    }
  expect_scan(scan_of({77, 3}, Op::Add, DType::F32, true));
  expect_scan(scan_of({77, 3}, Op::Max));
  expect_scan(scan_of({300, 2}, Op::Mul, DType::I32));
}

TEST(CudaPrefixScan, many_or_short_sequences_have_a_thread_each) {
  for (const Dims& dims : std::vector<Dims>{{64, 3}, {100, 20000}})
    EXPECT_EQ(schedule_cuda(scan_of(dims, Op::Add), {false}, *find_arch("sm_80")).family, "scan");
  ScheduleOptions strict;
  strict.strict_fp = true;
  EXPECT_EQ(schedule_cuda(scan_of({1000}, Op::Add), {false}, *find_arch("sm_80"), strict).family, "scan");
  EXPECT_EQ(schedule_cuda(scan_of({1000}, Op::Add, DType::I32), {false}, *find_arch("sm_80"), strict).family,
            "prefix_scan");
}

}  // namespace
}  // namespace tc::prefix_scan_test
