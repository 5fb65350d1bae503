// Sums of products of bytes: every template gives the bits of the definition, for every number of lanes.
#include <cstring>

#include "ir/loop/build.h"
#include "templates/cpu/test_schedule.h"

namespace tc::bytes_test {
namespace {

using namespace tc::testing;

struct ByteConv {
  int64_t h = 6, w = 7, c = 8, oc = 16, kernel = 3, stride = 1, groups = 1;
  DType x = DType::U8, weights = DType::I8, y = DType::U8;
  int64_t zero = 0, weight_zero = 0;
  bool run_time_zero = false;
};

std::vector<Axis> axes_of(const std::string& name, const Dims& dims) {
  std::vector<Axis> a;
  for (size_t d = 0; d < dims.size(); d++) a.push_back({make_var(name + std::to_string(d)), Dim(dims[d])});
  return a;
}

Exprs vars(const std::vector<Axis>& axes) {
  Exprs v;
  for (const Axis& a : axes) v.push_back(Expr(a.var));
  return v;
}

Expr i32(const Expr& e) { return cast(DType::I32, e); }

// y[h, w, oc] = clamp(round(f32(sum + bias[oc]) * scale[oc]) + 3), or the sum with its bias where y is i32
TestFunction convolution(const ByteConv& s) {
  TestFunction f;
  const int64_t per_group = s.c / s.groups, out_per_group = s.oc / s.groups;
  const Buffer x = make_buffer("x", s.x, to_shape({s.h, s.w, s.c}));
  const Buffer w = make_buffer("w", s.weights, to_shape({s.oc, per_group, s.kernel, s.kernel}));
  const Buffer bias = make_buffer("bias", DType::I32, to_shape({s.oc})),
               scale = make_buffer("scale", DType::F32, to_shape({s.oc}));
  const Buffer zero = make_buffer("zero", s.x, to_shape({1}));
  f.fn.inputs = {x, w, bias, scale};
  f.constant = {false, true, true, true};
  if (s.run_time_zero) {
    f.fn.inputs.push_back(zero);
    f.constant.push_back(false);
  }
  const Dims out = {(s.h - s.kernel) / s.stride + 1, (s.w - s.kernel) / s.stride + 1, s.oc};
  Stage sum;
  sum.name = "conv2d";
  sum.kind = Stage::Kind::Reduce;
  sum.axes = axes_of("i", out);
  sum.raxes = axes_of("r", {per_group, s.kernel, s.kernel});
  const Exprs i = vars(sum.axes), r = vars(sum.raxes);
  const Expr channel = s.groups == 1 ? r[0] : floor_div(i[2], out_per_group) * per_group + r[0];
  Expr left = i32(load(x, {i[0] * s.stride + r[1], i[1] * s.stride + r[2], channel}));
  if (s.run_time_zero) left = left - i32(load(zero, {0}));
  if (s.zero != 0) left = left - i32(make_int(s.x, s.zero));
  Expr right = i32(load(w, {i[2], r[0], r[1], r[2]}));
  if (s.weight_zero != 0) right = right - i32(make_int(s.weights, s.weight_zero));
  sum.values = {left * right};
  sum.combiner.op = Op::Add;
  sum.init = {make_int(DType::I32, 0)};
  sum.outputs = {make_buffer("sum", DType::I32, to_shape(out))};
  Stage last;
  last.name = "requantize";
  last.axes = axes_of("j", out);
  const Exprs j = vars(last.axes);
  Expr value = load(sum.outputs[0], j) + load(bias, {j[2]});
  if (s.y != DType::I32) {
    value = apply(Op::Round, {cast(DType::F32, value) * load(scale, {j[2]})}) + make_float(DType::F32, 3);
    const double low = double(*as_const_int(lowest(s.y))), high = double(*as_const_int(highest(s.y)));
    value = cast(s.y, min(max(value, make_float(DType::F32, low)), make_float(DType::F32, high)));
  }
  last.values = {value};
  last.outputs = {make_buffer("y", s.y, to_shape(out))};
  f.fn.stages = {sum, last};
  f.fn.outputs = last.outputs;
  return f;
}

// Bytes of the whole range, with long runs of its ends: where 16 bits would overflow.
Constant random_bytes(DType t, const Dims& dims, uint32_t seed) {
  MutableTensor m = new_tensor(t, dims);
  for (int64_t i = 0; i < num_elements(dims); i++) {
    seed = seed * 1664525u + 1013904223u;
    const uint32_t kind = seed >> 30;
    m.as<uint8_t>()[i] = uint8_t(kind == 0 ? (t == DType::U8 ? 255 : 128) : seed >> 16);
  }
  return std::make_shared<const TensorData>(std::move(m.data));
}

std::vector<Constant> operands(const TestFunction& f) {
  std::vector<Constant> in;
  for (size_t k = 0; k < f.fn.inputs.size(); k++) {
    const Buffer& b = f.fn.inputs[k];
    const Dims dims = static_dims(b->shape);
    if (b->dtype == DType::I8 || b->dtype == DType::U8) {
      in.push_back(random_bytes(b->dtype, dims, uint32_t(k + 1)));
      continue;
    }
    MutableTensor m = new_tensor(b->dtype, dims);
    for (int64_t i = 0; i < num_elements(dims); i++)
      if (b->dtype == DType::I32)
        m.as<int32_t>()[i] = int32_t(i * 977 - 5000);
      else
        m.as<float>()[i] = 0.5f / float(256 + i % 7);  // exact halves among the products
    in.push_back(std::make_shared<const TensorData>(std::move(m.data)));
  }
  return in;
}

void expect_exact(const ByteConv& s, const std::string& family, const char* cpu = "x86-64-v4") {
  const TestFunction f = convolution(s);
  expect_equal(f, family, cpu, operands(f));
}

TEST(Bytes, RunsThatAreNoMultipleOfFour) {
  expect_exact({.c = 3, .oc = 20}, "matmul");
  expect_exact({.c = 1, .oc = 16, .zero = 7}, "matmul");
  expect_exact({.c = 5, .oc = 37, .kernel = 1, .zero = 128}, "matmul");
  expect_exact({.h = 9, .w = 9, .c = 6, .oc = 24, .stride = 2, .groups = 3}, "matmul");
}

TEST(Bytes, SignedBytesAndZeroPoints) {
  expect_exact({.x = DType::I8}, "matmul");
  expect_exact({.oc = 21, .x = DType::I8, .y = DType::I8, .zero = -5}, "matmul");
  expect_exact({.weights = DType::U8, .zero = 200, .weight_zero = 128}, "matmul");
  expect_exact({.y = DType::I32, .run_time_zero = true}, "matmul");
  expect_exact({.x = DType::I8, .y = DType::I32, .run_time_zero = true}, "matmul");
}

TEST(Bytes, EveryCpu) {
  for (const CpuModel& cpu : cpu_models()) {
    expect_exact({.c = 12, .oc = 70, .zero = 3}, "matmul", std::string(cpu.name).c_str());
    expect_exact({.h = 1, .w = 1, .c = 30, .oc = 50, .kernel = 1}, "matrix_vector", std::string(cpu.name).c_str());
    expect_exact({.c = 20, .oc = 20, .groups = 20, .zero = 3}, "window", std::string(cpu.name).c_str());
  }
}

// Weights, scales and biases that come with a run are packed in front of the loops.
TEST(Bytes, WeightsOfEveryRun) {
  const auto expect_packed = [](const ByteConv& s, const char* family, const char* cpu = "x86-64-v4",
                                bool all = false) {
    TestFunction f = convolution(s);
    f.constant[1] = false;
    if (all) f.constant.assign(f.constant.size(), false);
    expect_equal(f, family, cpu, operands(f));
    EXPECT_NE(schedule_cpu(f.fn, f.constant, *find_cpu(cpu)).description.find("packed in every run"),
              std::string::npos);
  };
  expect_packed({.c = 5, .oc = 37, .kernel = 1, .zero = 128}, "matmul");
  expect_packed({.h = 19, .w = 19, .c = 6, .oc = 24, .stride = 2, .groups = 3}, "matmul");
  expect_packed({.weights = DType::U8, .zero = 200, .weight_zero = 128}, "matmul");
  expect_packed({.weights = DType::U8, .zero = 200, .weight_zero = 17}, "matmul", "x86-64-v4", true);
  expect_packed({.x = DType::I8, .y = DType::I32, .run_time_zero = true}, "matmul");
  for (const CpuModel& cpu : cpu_models()) {
    expect_packed({.h = 9, .w = 9, .c = 12, .oc = 70, .zero = 3}, "matmul", std::string(cpu.name).c_str());
    expect_packed({.h = 9, .w = 9, .c = 12, .oc = 70, .zero = 3}, "matmul", std::string(cpu.name).c_str(), true);
  }
}

// A stage that stores element [c, h, w] of `from` as [h, w, c] of `to`, or back.
Stage moved(const Buffer& from, const Buffer& to, bool back) {
  Stage s;
  s.name = "transpose";
  s.axes = axes_of("t", static_dims(to->shape));
  const Exprs i = vars(s.axes);
  s.values = {load(from, back ? Exprs{i[1], i[2], i[0]} : Exprs{i[2], i[0], i[1]})};
  s.outputs = {to};
  return s;
}

// Transposes around a sum are parts of their own.
TEST(Bytes, MovesAreApart) {
  const auto expect_parts = [](const ByteConv& s, bool first, bool last, const std::string& parts) {
    TestFunction f = convolution(s);
    if (first) {
      const Buffer x = f.fn.inputs[0];
      f.fn.inputs[0] = make_buffer("x0", s.x, to_shape({s.c, s.h, s.w}));
      f.fn.stages.insert(f.fn.stages.begin(), moved(f.fn.inputs[0], x, false));
    }
    if (last) {
      const Buffer y = f.fn.outputs[0];
      const Dims d = static_dims(y->shape);
      f.fn.outputs[0] = make_buffer("transpose", y->dtype, to_shape({d[2], d[0], d[1]}));
      f.fn.stages.push_back(moved(y, f.fn.outputs[0], true));
    }
    expect_equal(f, "stages", "x86-64-v4", operands(f));
    EXPECT_EQ(schedule_cpu(f.fn, f.constant, *find_cpu("x86-64-v4")).description, "stage by stage: " + parts);
  };
  const ByteConv dense = {.h = 9, .w = 20, .c = 24, .oc = 37, .kernel = 1, .zero = 7},
                 depthwise = {.h = 9, .w = 20, .c = 24, .oc = 24, .groups = 24, .zero = 7};
  expect_parts(dense, true, false, "transpose, matmul");
  expect_parts(dense, false, true, "matmul, transpose");
  expect_parts(dense, true, true, "transpose, stages");
  expect_parts(depthwise, false, true, "window, transpose");
}

// Rows and columns in tiles, whole and cut; two rows of pixels together, and the last one alone; runs, one and several; signed.
TEST(Bytes, Tiles) {
  const auto expect_tiles = [](const ByteConv& s, const char* described) {
    expect_exact(s, "matmul", "sapphirerapids");
    const TestFunction f = convolution(s);
    EXPECT_EQ(schedule_cpu(f.fn, f.constant, *find_cpu("sapphirerapids")).description.substr(0, std::strlen(described)),
              described);
  };
  expect_tiles({.h = 7, .w = 7, .c = 64, .oc = 40, .kernel = 1, .zero = 3}, "32 rows by 32 columns; weights in panels");
  expect_tiles({.h = 9, .w = 9, .c = 64, .oc = 32}, "twice 7 rows by 32 columns");
  expect_tiles({.h = 10, .w = 9, .c = 16, .oc = 12, .x = DType::I8, .y = DType::I8, .zero = -7},
               "twice 7 rows by 16 columns");
  expect_tiles({.h = 4, .w = 35, .c = 24, .oc = 64, .x = DType::I8, .run_time_zero = true}, "11 rows by 32 columns");
  expect_tiles({.h = 27, .w = 27, .c = 16, .oc = 33, .stride = 2},
               "twice 13 rows");  // threads share rows: 6 pairs, and one
  expect_tiles({.h = 13, .w = 13, .c = 32, .oc = 70, .stride = 2, .weights = DType::U8, .weight_zero = 128},
               "twice 6 rows");
  expect_tiles({.h = 5, .w = 5, .c = 128, .oc = 64, .kernel = 1, .groups = 2, .y = DType::I32},
               "25 rows by 32 columns; w");
}

// No tiles: a run that no step divides, zero points of weights, too few columns, a single row.
TEST(Bytes, NoTiles) {
  const auto has_tiles = [](const ByteConv& s) {
    const TestFunction f = convolution(s);
    return schedule_cpu(f.fn, f.constant, *find_cpu("sapphirerapids")).description.find("tiles") != std::string::npos;
  };
  EXPECT_TRUE(has_tiles({.c = 64}));
  EXPECT_FALSE(has_tiles({.c = 1, .kernel = 5}));
  EXPECT_FALSE(has_tiles({.c = 64, .weights = DType::U8, .weight_zero = 5}));
  EXPECT_FALSE(has_tiles({.c = 64, .oc = 4}));
  EXPECT_FALSE(has_tiles({.h = 1, .w = 1, .c = 64, .kernel = 1}));
}

TEST(Bytes, Depthwise) {
  expect_exact({.c = 1, .oc = 33, .kernel = 1, .x = DType::I8, .zero = 3},
               "window");  // one product: rows times columns
  expect_exact({.h = 9, .w = 12, .c = 32, .oc = 32, .groups = 32, .zero = 7}, "window");
  expect_exact({.h = 9, .w = 12, .c = 48, .oc = 48, .groups = 48, .x = DType::I8, .weights = DType::U8}, "window");
  expect_exact({.h = 9, .w = 12, .c = 35, .oc = 35, .stride = 2, .groups = 35}, "window");
  expect_exact({.c = 16, .oc = 16, .groups = 16, .x = DType::I8, .y = DType::I8, .zero = -128}, "window");
}

// What a byte cannot hold: the tile sums rows of the left factor, too.
TEST(Bytes, OtherZeroPointsOfWeights) {
  expect_exact({.weights = DType::U8, .weight_zero = 5}, "matmul");
  expect_exact({.weights = DType::U8}, "matmul");
  expect_exact({.c = 6, .oc = 37, .x = DType::I8, .weights = DType::U8, .zero = -9, .weight_zero = 250}, "matmul");
  expect_exact({.c = 5, .oc = 21, .weights = DType::I8, .zero = 77, .weight_zero = -3}, "matmul");
  expect_exact({.h = 1, .w = 1, .c = 30, .oc = 50, .kernel = 1, .weights = DType::U8, .weight_zero = 1},
               "matrix_vector");
  expect_exact({.weights = DType::U8, .y = DType::I32, .weight_zero = 99, .run_time_zero = true}, "matmul");
  expect_exact({.c = 16, .oc = 16, .groups = 16, .weights = DType::U8, .weight_zero = 5}, "window");
}

}  // namespace
}  // namespace tc::bytes_test
