// The heap equals insertion, which is the definition: bit for bit, ties and NaN included.
#include "ir/ops/top_k.h"

#include <cmath>

#include "templates/cpu/test_schedule.h"

namespace tc {
namespace {

// One of the two results; the other one is a temporary.
testing::TestFunction top_k(const Dims& from, int64_t k, int axis, bool largest, bool positions) {
  Dims to = from;
  to[size_t(axis)] = k;
  const Buffer x = make_buffer("x", DType::F32, to_shape(from)), v = make_buffer("v", DType::F32, to_shape(to)),
               i = make_buffer("i", DType::I64, to_shape(to));
  testing::TestFunction f;
  f.fn.inputs = {x};
  f.fn.outputs = {positions ? i : v};
  Stage s;
  s.kind = Stage::Kind::Nest;
  s.outputs = {v, i};
  s.nest = top_k_loops({x, v, i, axis, largest});
  f.fn.stages = {s};
  f.constant = {false};
  return f;
}

// Small integers have many ties; every seventh is NaN where `nans`.
Constant numbers(const Dims& dims, bool nans) {
  MutableTensor t = new_tensor(DType::F32, dims);
  for (int64_t i = 0; i < num_elements(dims); i++) t.as<float>()[i] = nans && i % 7 == 3 ? NAN : float(i * 37 % 23 - 9);
  return std::make_shared<const TensorData>(std::move(t.data));
}

TEST(CpuTopK, EqualsInsertion) {
  for (const int64_t k : {2, 3, 17, 59, 60})
    for (const bool largest : {true, false})
      for (const bool positions : {true, false})
        for (const bool nans : {true, false})
          testing::expect_equal(top_k({3, 60}, k, 1, largest, positions), "top_k", "x86-64-v4",
                                {numbers({3, 60}, nans)});
}

TEST(CpuTopK, AlongOtherAxesAndOfManyRows) {
  testing::expect_equal(top_k({2, 40, 3}, 21, 1, true, true), "top_k");
  testing::expect_equal(top_k({19, 4}, 5, 0, false, true), "top_k");
  testing::expect_equal(top_k({50}, 20, 0, true, true), "top_k");
  testing::expect_equal(top_k({64, 700}, 9, 1, true, false), "top_k");  // shared among threads
}

TEST(CpuTopK, OneElementIsFoundByComparing) {
  const testing::TestFunction f = top_k({4, 60}, 1, 1, true, true);
  EXPECT_EQ(schedule_cpu(f.fn, f.constant, *find_cpu("generic")).family, "naive");
}

}  // namespace
}  // namespace tc
