// The heap equals insertion, which is the definition: bit for bit, ties and NaN included.
#include "ir/ops/top_k.h"

#include <cmath>

#include "templates/cpu/test_schedule.h"

namespace tc::top_k_test {
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

// Rows that are long enough for blocks to be passed over, of a list and of a heap.
TEST(CpuTopK, BlocksThatHaveNothingToSay) {
  for (const int64_t k : {2, 17, 64, 65, 130})
    for (const bool largest : {true, false})
      for (const bool nans : {true, false})
        testing::expect_equal(top_k({2, 501}, k, 1, largest, true), "top_k", "x86-64-v4", {numbers({2, 501}, nans)});
  MutableTensor t = new_tensor(DType::F32, {2, 501});
  for (int64_t i = 0; i < 2 * 501; i++) t.as<float>()[i] = i % 97 == 5 ? INFINITY : -INFINITY;
  const Constant extremes = std::make_shared<const TensorData>(std::move(t.data));
  for (const bool largest : {true, false})
    testing::expect_equal(top_k({2, 501}, 9, 1, largest, true), "top_k", "x86-64-v3", {extremes});
}

TEST(CpuTopK, AlongOtherAxesAndOfManyRows) {
  testing::expect_equal(top_k({2, 40, 3}, 21, 1, true, true), "top_k");
  testing::expect_equal(top_k({19, 4}, 5, 0, false, true), "top_k");
  testing::expect_equal(top_k({50}, 20, 0, true, true), "top_k");
  testing::expect_equal(top_k({90}, 70, 0, true, true), "top_k");
  testing::expect_equal(top_k({64, 700}, 9, 1, true, false), "top_k");  // shared among threads
}

TEST(CpuTopK, OneElementIsFoundByComparing) {
  const testing::TestFunction f = top_k({4, 60}, 1, 1, true, true);
  EXPECT_EQ(schedule_cpu(f.fn, f.constant, *find_cpu("generic")).family, "naive");
}

}  // namespace
}  // namespace tc::top_k_test
