// Pooling with the channels first equals the plain loops: strides, dilations, padding, rounding up, one to three axes.
#include "ir/ops/test_ops.h"
#include "templates/cpu/test_schedule.h"

namespace tc::window_rows_test {
namespace {

struct Shape {
  Dims in;  // batch, channels, spatial axes
  Dims kernel, strides, pads;
  Dims dilations = Dims(kernel.size(), 1);
  bool ceil = false;
};

testing::TestFunction pool(const char* op, const Shape& s) {
  Graph g;
  const std::vector<Value*> in = {g.add_constant(ModelText("x"), testing::small_integers(s.in, 1))};
  Attrs attrs = {
      {"kernel_shape", s.kernel}, {"strides", s.strides}, {"pads", s.pads}, {"ceil_mode", int64_t(s.ceil ? 1 : 0)}};
  if (std::string(op) != "LpPool") attrs["dilations"] = s.dilations;
  Node* n = g.append(op, in, {ModelText("y")}, attrs, "");
  infer_types(g, *n);
  return {tensor_fn(*n), {false}};
}

void expect_rows(const Shape& s, const char* op = "MaxPool") {
  for (const char* cpu : {"generic", "x86-64-v4"}) testing::expect_equal(pool(op, s), "window_rows", cpu);
}

TEST(CpuWindowRows, StridesAndKernels) {
  for (const int64_t stride : {2, 3, 5})
    for (const int64_t kernel : {1, 2, 3, 6})
      expect_rows({{2, 3, 19, 37}, {2, kernel}, {stride, stride}, {0, 0, 0, 0}});
}

TEST(CpuWindowRows, PaddingOnAnySide) {
  expect_rows({{1, 3, 14, 14}, {3, 3}, {2, 2}, {1, 1, 1, 1}});
  expect_rows({{1, 3, 14, 15}, {5, 5}, {1, 1}, {2, 2, 2, 2}});
  expect_rows({{2, 2, 9, 20}, {3, 4}, {1, 2}, {0, 3, 2, 0}});
  expect_rows({{1, 2, 3, 3}, {7, 7}, {1, 1}, {3, 3, 3, 3}});  // wider than the input
}

TEST(CpuWindowRows, DilationsAndRoundingUp) {
  expect_rows({{1, 3, 20, 21}, {3, 3}, {2, 2}, {1, 1, 1, 1}, {2, 3}});
  expect_rows({{1, 3, 20, 21}, {3, 3}, {2, 2}, {0, 0, 0, 0}, {1, 1}, true});
  expect_rows({{1, 3, 17, 40}, {3, 3}, {1, 1}, {2, 2, 2, 2}, {2, 2}});
}

TEST(CpuWindowRows, OneAndThreeAxes) {
  expect_rows({{2, 3, 1500}, {3}, {2}, {1, 1}});  // rows beyond a local array
  expect_rows({{1, 5, 50}, {5}, {1}, {2, 2}});
  expect_rows({{1, 3, 6, 9, 21}, {3, 3, 3}, {2, 2, 2}, {1, 1, 1, 1, 1, 1}});
  expect_rows({{1, 3, 6, 9, 21}, {1, 2, 2}, {1, 2, 2}, {0, 0, 0, 0, 0, 0}});
}

TEST(CpuWindowRows, SumsAndPointwiseWork) {
  expect_rows({{1, 3, 14, 30}, {2, 2}, {2, 2}, {0, 0, 0, 0}}, "AveragePool");
  expect_rows({{1, 3, 14, 30}, {3, 3}, {2, 2}, {1, 1, 1, 1}}, "LpPool");
}

TEST(CpuWindowRows, ChunksCoverAllRows) {
  expect_rows({{1, 23, 29, 64}, {3, 3}, {2, 2}, {1, 1, 1, 1}});
  expect_rows({{1, 1, 129, 300}, {3, 3}, {2, 2}, {1, 1, 1, 1}});
}

// Two passes take more steps than the few taps of a window in vectors; strict sums keep their order.
TEST(CpuWindowRows, LeavesOthersAlone) {
  const auto family = [](const testing::TestFunction& f, const ScheduleOptions& o) {
    return schedule_cpu(f.fn, f.constant, *find_cpu("generic"), o).family;
  };
  EXPECT_EQ(family(pool("MaxPool", {{1, 3, 14, 30}, {2, 2}, {1, 1}, {0, 0, 0, 0}}), {}), "window");
  const testing::TestFunction sums = pool("AveragePool", {{1, 3, 14, 30}, {2, 2}, {2, 2}, {0, 0, 0, 0}});
  EXPECT_NE(family(sums, {.strict_fp = true}), "window_rows");
}

}  // namespace
}  // namespace tc::window_rows_test
