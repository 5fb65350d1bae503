// Interleaved results equal the plain loops: repeated elements, channels that become columns, rows beside vectors.
#include "templates/cpu/test_schedule.h"

namespace tc::interleaved_store_test {
namespace {

using testing::FunctionBuilder;
using testing::TestFunction;

TestFunction repeated(int64_t rows, int64_t n, int64_t times) {
  FunctionBuilder b;
  const Buffer x = b.input("x", {rows, n}), z = b.input("z", {rows});
  return b.take(b.compute("y", {rows, n * times}, [&](const Exprs& i) {
    return load(x, {i[0], floor_div(i[1], times)}) + load(z, {i[0]});
  }));
}

TestFunction channels_to_columns(int64_t rows, int64_t n, int64_t times) {
  FunctionBuilder b;
  const Buffer x = b.input("x", {times, rows, n});
  return b.take(b.compute("y", {rows, n * times}, [&](const Exprs& i) {
    return load(x, {floor_mod(i[1], times), i[0], floor_div(i[1], times)});
  }));
}

TEST(CpuInterleavedStore, RowsBesideVectors) {
  for (const char* cpu : {"generic", "x86-64-v4"})
    for (const int64_t n : {16, 17, 28, 33, 64})
      for (const int64_t times : {2, 3, 4}) {
        testing::expect_equal(repeated(3, n, times), "interleave", cpu);
        testing::expect_equal(channels_to_columns(5, n, times), times < 4 ? "interleave" : "transpose", cpu);
      }
}

// A picture is quantised, and its colours come to lie side by side.
TEST(CpuInterleavedStore, Bytes) {
  for (const DType type : {DType::U8, DType::I8})
    for (const int64_t colours : {2, 3, 4})
      for (const int64_t n : {16, 37, 64}) {
        FunctionBuilder b;
        const Buffer x = b.input("x", {colours, 5, n});
        TestFunction f = b.take(b.compute("y", {5, n, colours}, [&](const Exprs& i) {
          const Expr whole = apply(Op::Round, {load(x, {i[2], i[0], i[1]}) / make_float(DType::F32, 0.75)});
          const double low = type == DType::U8 ? 0 : -128;
          return cast(type, min(max(whole, make_float(DType::F32, low)), make_float(DType::F32, low + 255)));
        }));
        Stage& last = f.fn.stages.back();
        last.outputs = {make_buffer("y", type, to_shape({5, n, colours}))};
        f.fn.outputs = last.outputs;
        for (const char* cpu : {"generic", "x86-64-v3", "x86-64-v4"}) testing::expect_equal(f, "interleave", cpu);
      }
}

TEST(CpuInterleavedStore, Parallel) { testing::expect_equal(repeated(70, 300, 2), "interleave"); }

TEST(CpuInterleavedStore, LeavesOthersAlone) {
  const auto family = [](const TestFunction& f) { return schedule_cpu(f.fn, f.constant, *find_cpu("generic")).family; };
  EXPECT_EQ(family(repeated(3, 40, 5)), "elementwise");
  EXPECT_EQ(family(repeated(3, 15, 2)), "elementwise");
}

}  // namespace
}  // namespace tc::interleaved_store_test
