// Extremes across rows equal the plain loops: ties, NaN, columns beside the sizes of blocks.
#include <cmath>

#include "ir/ops/test_ops.h"
#include "templates/cpu/test_schedule.h"

namespace tc::arg_reduce_test {
namespace {

testing::TestFunction extreme(const char* op, const Dims& dims, int64_t axis, bool last) {
  Graph g;
  const std::vector<Value*> in = {g.add_constant(ModelText("x"), testing::small_integers(dims, 1))};
  Node* n = g.append(op, in, {ModelText("y")}, {{"axis", axis}, {"select_last_index", int64_t(last ? 1 : 0)}}, "");
  infer_types(g, *n);
  return {tensor_fn(*n), {false}};
}

TEST(CpuArgReduce, ColumnsBesideBlocks) {
  for (const int64_t columns : {16, 17, 31, 48, 63, 64, 65, 200})
    for (const char* op : {"ArgMax", "ArgMin"})
      for (const bool last : {false, true}) testing::expect_equal(extreme(op, {5, columns}, 0, last), "places");
}

TEST(CpuArgReduce, AxesAround) {
  for (const char* cpu : {"generic", "x86-64-v4"}) {
    testing::expect_equal(extreme("ArgMax", {2, 21, 9, 7}, 1, false), "places", cpu);
    testing::expect_equal(extreme("ArgMax", {3, 4, 6, 19}, 2, true), "places", cpu);
    testing::expect_equal(extreme("ArgMin", {6, 11, 333}, 1, false), "places", cpu);
  }
}

TEST(CpuArgReduce, PartsCoverAllColumns) {
  testing::expect_equal(extreme("ArgMax", {7, 9001}, 0, false), "places");
  testing::expect_equal(extreme("ArgMax", {5, 13, 999}, 1, false), "places");
}

TEST(CpuArgReduce, NanIsTheExtreme) {
  const testing::TestFunction f = extreme("ArgMax", {9, 40}, 0, false);
  MutableTensor t = new_tensor(DType::F32, {9, 40});
  for (int64_t i = 0; i < 360; i++) t.as<float>()[i] = i % 7 == 3 ? NAN : i % 5 == 0 ? -INFINITY : float(i % 11);
  testing::expect_equal(f, "places", "x86-64-v4", {std::make_shared<const TensorData>(std::move(t.data))});
}

// Classes that come last.
TEST(CpuArgReduce, ShortRowsAreTurned) {
  for (const int64_t classes : {2, 3, 7, 19, 31})
    for (const char* op : {"ArgMax", "ArgMin"})
      for (const bool last : {false, true})
        for (const char* cpu : {"generic", "x86-64-v3", "x86-64-v4"})
          testing::expect_equal(extreme(op, {50, classes}, 1, last), "places", cpu);
  testing::expect_equal(extreme("ArgMax", {2, 9, 33, 21}, -1, false), "places");
  testing::expect_equal(extreme("ArgMax", {9000, 5}, -1, false), "places");
  testing::expect_equal(extreme("ArgMax", {15, 21}, -1, false), "naive");
}

TEST(CpuArgReduce, AlongRows) {
  for (const int64_t columns : {32, 33, 50, 64, 65, 79, 127, 128, 200, 513, 1000})
    for (const char* op : {"ArgMax", "ArgMin"})
      for (const bool last : {false, true})
        for (const char* cpu : {"generic", "x86-64-v3", "x86-64-v4"})
          testing::expect_equal(extreme(op, {5, columns}, 1, last), "places", cpu);
  testing::expect_equal(extreme("ArgMax", {1, 40000}, -1, false), "places");
  testing::expect_equal(extreme("ArgMin", {2, 3, 300}, -1, true), "places");
}

TEST(CpuArgReduce, NanIsTheExtremeOfARow) {
  for (const char* op : {"ArgMax", "ArgMin"})
    for (const bool last : {false, true}) {
      const testing::TestFunction f = extreme(op, {6, 150}, 1, last);
      MutableTensor t = new_tensor(DType::F32, {6, 150});
      for (int64_t i = 0; i < 900; i++)
        t.as<float>()[i] = i < 150                  ? NAN
                           : i < 300                ? -INFINITY
                           : i % 97 == 3 && i > 600 ? NAN
                           : i % 5 == 0             ? INFINITY
                                                    : float(i % 11);
      testing::expect_equal(f, "places", "x86-64-v4", {std::make_shared<const TensorData>(std::move(t.data))});
    }
}

// Columns that are too few for a vector, and rows that lie in one piece, are left to others.
TEST(CpuArgReduce, LeavesOthersAlone) {
  const auto family = [](const testing::TestFunction& f) {
    return schedule_cpu(f.fn, f.constant, *find_cpu("generic")).family;
  };
  EXPECT_EQ(family(extreme("ArgMax", {40, 15}, 0, false)), "naive");
  EXPECT_EQ(family(extreme("ArgMax", {4, 31}, 1, false)), "naive");
  EXPECT_EQ(family(extreme("ArgMax", {4, 70, 2}, 1, false)), "naive");
}

}  // namespace
}  // namespace tc::arg_reduce_test
