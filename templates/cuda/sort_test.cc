// Top-k and sorting on a GPU give what insertion gives, bit for bit: lengths around powers of two, ties, NaN, all axes,
// rows longer than a block holds.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "ir/ops/test_ops.h"
#include "ir/ops/top_k.h"

namespace tc::sort_test {
namespace {

// Values from -span to span, some of them NaN or infinite.
Constant elements(DType t, const Dims& dims, int seed, double span) {
  const Constant c = random_tensor(t, dims, seed, span);
  std::vector<double> v = values(c);
  for (size_t i = 0; is_float(t) && i < v.size(); i++) {
    const size_t h = i * 2654435761u >> 5;
    if (h % 61 == 0) v[i] = NAN;
    if (h % 61 == 1) v[i] = h % 2 == 0 ? INFINITY : -INFINITY;
  }
  return tensor_of(t, dims, v);
}

// run_op compares the CUDA schedule with the definition.
void top_k(const Constant& x, int64_t axis, int64_t k, bool largest, bool sorted = true) {
  const std::vector<Constant> got =
      run_op({.op = "TopK",
              .inputs = {x, tensor_of(DType::I64, {1}, {double(k)})},
              .attrs = {{"axis", axis}, {"largest", int64_t(largest)}, {"sorted", int64_t(sorted)}},
              .outputs = 2,
              .cuda_tolerance = 0});
  EXPECT_EQ(got[0]->dims[size_t(axis < 0 ? axis + int64_t(x->dims.size()) : axis)], k);
}

TEST(CudaSort, Lengths) {
  for (const int64_t n : {1, 2, 3, 7, 8, 9, 31, 32, 33, 64, 100, 257})
    for (const int64_t rows : {1, 9})
      for (const bool largest : {false, true}) {
        top_k(elements(DType::F32, {rows, n}, int(n), 100), 1, n, largest);
        top_k(elements(DType::F32, {rows, n}, int(n) + 1, 3), -1, (n + 2) / 3, largest, false);
      }
}

TEST(CudaSort, EveryAxis) {
  for (const int64_t axis : {0, 1, 2, 3, -2})
    for (const bool largest : {false, true}) top_k(elements(DType::F32, {6, 5, 7, 40}, 11, 4), axis, 4, largest);
}

TEST(CudaSort, ElementTypes) {
  for (const DType t : {DType::F16, DType::BF16, DType::F64, DType::I8, DType::U8, DType::I32, DType::I64, DType::U64})
    for (const int64_t n : {20, 300})
      for (const bool largest : {false, true})
        top_k(elements(t, {5, n}, 3, is_signed_int(t) || is_float(t) ? 9 : 0), 1, n / 2, largest);
}

TensorFn top_k_function(DType t, const Dims& from, const Dims& to, int axis, bool largest) {
  const Buffer x = make_buffer("x", t, to_shape(from)), v = make_buffer("v", t, to_shape(to)),
               i = make_buffer("i", DType::I64, to_shape(to));
  TensorFn fn;
  fn.inputs = {x};
  fn.outputs = {v, i};
  Stage s;
  s.kind = Stage::Kind::Nest;
  s.outputs = {v, i};
  s.nest = top_k_loops({x, v, i, axis, largest});
  fn.stages = {s};
  return fn;
}

// Rows along the last axis, compared with the standard library's sort: insertion takes too long.
void long_rows(DType t, int64_t rows, int64_t n, int64_t k, bool largest, double span, const std::string& description) {
  const Constant x = elements(t, {rows, n}, int(n), span);
  const std::vector<double> from = values(x);
  std::vector<double> v, positions;
  for (int64_t r = 0; r < rows; r++) {
    std::vector<int64_t> order;
    for (int64_t i = 0; i < n; i++) order.push_back(i);
    const double* row = from.data() + r * n;
    std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
      if (std::isnan(row[a]) != std::isnan(row[b])) return std::isnan(row[a]) == largest;
      if (std::isnan(row[a])) return false;
      return largest ? row[a] > row[b] : row[a] < row[b];
    });
    for (int64_t i = 0; i < k; i++) {
      v.push_back(row[order[size_t(i)]]);
      positions.push_back(double(order[size_t(i)]));
    }
  }
  const TensorFn fn = top_k_function(t, {rows, n}, {rows, k}, 1, largest);
  testing::expect_cuda_schedule(fn, {x}, {tensor_of(t, {rows, k}, v), tensor_of(DType::I64, {rows, k}, positions)}, 0);
  EXPECT_EQ(schedule_cuda(fn, {false}, *find_arch("sm_80")).description, description);
}

TEST(CudaSort, RowsLongerThanABlockHolds) {
  const std::string again = "parts of rows sorted in shared memory, then what is left of them",
                    merged = "parts of rows sorted in shared memory, then merged";
  long_rows(DType::F32, 2, 9000, 10, true, 50, again);
  long_rows(DType::F32, 1, 70000, 1500, false, 1e6, again);   // twice
  long_rows(DType::F32, 1, 70000, 5000, false, 1e6, merged);  // 18 parts
  long_rows(DType::F32, 2, 8200, 8200, true, 20, merged);
  long_rows(DType::F64, 1, 9001, 9001, false, 1e5, merged);  // 3 parts
  long_rows(DType::F32, 1, 20000, 6000, true, 2, merged);
  long_rows(DType::I64, 1, 5000, 4000, true, 300, merged);
}

TEST(CudaSort, WithoutElements) {
  top_k(elements(DType::F32, {0, 5}, 1, 3), 1, 2, true);
  top_k(elements(DType::F32, {3, 5}, 1, 3), 1, 0, true);
}

TEST(CudaSort, IsChosenForTopKOnly) {
  TensorFn fn = top_k_function(DType::F32, {4, 50}, {4, 6}, 1, true);
  const Stage s = fn.stages[0];
  const Buffer x = fn.inputs[0], v = fn.outputs[0];
  const auto t = match_top_k(s);
  ASSERT_TRUE(t);
  EXPECT_EQ(t->x, x);
  EXPECT_EQ(t->axis, 1);
  EXPECT_TRUE(t->largest);
  EXPECT_EQ(schedule_cuda(fn, {false}, *find_arch("sm_80")).family, "sort");
  fn.stages[0].nest = seq({s.nest, store(v, {0, 0}, make_float(DType::F32, 1))});
  EXPECT_FALSE(match_top_k(fn.stages[0]));
  EXPECT_EQ(schedule_cuda(fn, {false}, *find_arch("sm_80")).family, "nest");
}

}  // namespace
}  // namespace tc::sort_test
