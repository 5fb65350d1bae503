// Operators along and across rows, on a GPU: element types, several results, positions of extremes, NaN.
#include <gtest/gtest.h>

#include <cmath>

#include "ir/ops/test_ops.h"

namespace tc::rows_ops_test {
namespace {

constexpr DType kFloats[] = {DType::F32, DType::F16, DType::BF16, DType::F64};

double tolerance(DType t) { return t == DType::F16 ? 2e-3 : t == DType::BF16 ? 2e-2 : 1e-4; }

Constant fractions(DType t, const Dims& dims, int seed) { return random_tensor(t, dims, seed, 2, false); }

// run_op compares the CUDA schedule with the definition.
void run(const OpRun& r) {
  for (const Constant& c : run_op(r)) EXPECT_NE(c, nullptr);
}

TEST(CudaRowOps, LayerNormalizationWithItsStatistics) {
  for (const DType t : kFloats)
    for (const int64_t n : {5, 24, 33, 64, 768, 1288})
      run({.op = "LayerNormalization",
           .inputs = {fractions(t, {3, 7, n}, 1), fractions(t, {n}, 2), fractions(t, {n}, 3)},
           .outputs = 3,
           .cuda_tolerance = tolerance(t)});
}

TEST(CudaRowOps, SoftmaxOverEveryAxis) {
  for (const DType t : kFloats)
    for (const int64_t axis : {0, 1, 2, -1})
      for (const Dims& d : {Dims{3, 21, 40}, Dims{2, 64, 8}, Dims{40, 1, 197}, Dims{1, 9, 3}})
        for (const char* op : {"Softmax", "LogSoftmax", "Hardmax"})
          run({.op = op, .inputs = {fractions(t, d, 4)}, .attrs = {{"axis", axis}}, .cuda_tolerance = tolerance(t)});
}

TEST(CudaRowOps, GroupAndInstanceNormalization) {
  for (const DType t : kFloats) {
    const std::vector<Constant> in = {fractions(t, {2, 12, 8, 6}, 5), fractions(t, {12}, 6), fractions(t, {12}, 7)};
    run({.op = "InstanceNormalization", .inputs = in, .cuda_tolerance = tolerance(t)});
    for (const int64_t groups : {1, 3, 4, 12})
      run({.op = "GroupNormalization",
           .inputs = in,
           .attrs = {{"num_groups", groups}},
           .cuda_tolerance = tolerance(t)});
  }
}

// Few different values, so that there are ties; some are NaN.
Constant ties(DType t, const Dims& dims, int seed) {
  const Constant c = random_tensor(t, dims, seed, 3);
  std::vector<double> v = values(c);
  for (size_t k = 0; is_float(t) && k < v.size(); k++)
    if ((k * 2654435761u >> 7) % 97 == 0) v[k] = NAN;
  return tensor_of(t, dims, v);
}

TEST(CudaRowOps, PositionsOfExtremes) {
  for (const DType t : {DType::F32, DType::F16, DType::I32, DType::I64, DType::I8, DType::F64})
    for (const Dims& d : {Dims{5, 9}, Dims{3, 100}, Dims{2, 1500}, Dims{70, 4}, Dims{3, 12, 50}})
      for (const int64_t axis : {0, 1, -1})
        for (const int64_t last : {0, 1})
          for (const char* op : {"ArgMax", "ArgMin"})
            run({.op = op,
                 .inputs = {ties(t, d, 8)},
                 .attrs = {{"axis", axis}, {"select_last_index", last}},
                 .cuda_tolerance = 0});
}

TEST(CudaRowOps, ReductionsOfEveryType) {
  for (const DType t : {DType::F32, DType::F16, DType::I32, DType::I64, DType::U8, DType::F64, DType::U64})
    for (const Dims& d : {Dims{5, 40}, Dims{3, 260}, Dims{2, 3, 70}, Dims{0, 8}, Dims{4, 1}})
      for (const int64_t axis : {0, 1, -1})
        for (const char* op : {"ReduceMax", "ReduceMin", "ReduceSum"}) {
          if (d[size_t(axis < 0 ? int64_t(d.size()) - 1 : axis)] == 0) continue;
          if (std::string(op) == "ReduceSum" && t == DType::U8) continue;
          run({.op = op,
               .inputs = {ties(t, d, 9), tensor_of(DType::I64, {1}, {double(axis)})},
               .cuda_tolerance = std::string(op) == "ReduceSum" ? tolerance(t) : 0});
        }
}

}  // namespace
}  // namespace tc::rows_ops_test
