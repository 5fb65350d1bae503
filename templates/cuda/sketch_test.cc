// Sketches of the CUDA target. See templates/test_sketch.h.
#include "templates/cuda/test_exact.h"
#include "templates/test_sketch.h"

namespace tc::sketch_test {
namespace {

using namespace tc::testing;

Scheduled for_cuda(const TestFunction& f, const ScheduleOptions& o) {
  return schedule_cuda(f.fn, f.constant, *find_arch("sm_80"), o);
}

std::optional<Sketched> sketch(const TestFunction& f, const std::vector<PlanLine>& lines, bool strict = false) {
  return testing::sketch(for_cuda, f, lines, strict);
}

// As the steps leave the loops, and as they are printed, with barriers and exchanges of threads lowered; without races.
void expect_sound(const TestFunction& f, int steps, size_t least) {
  const auto same = [](const Scheduled& loops, const TestFunction& g, const std::vector<Constant>& in,
                       const Constant& expected) {
    Scheduled s = loops;
    s.body = synchronise(s.body);
    ScheduleMemory memory(s, g.fn, in);
    expect_close(memory.run()[0], expected, 0, "");
  };
  testing::expect_sound(for_cuda, same, f, steps, least);
}

/// The steps of a sketch; "" if it is refused.
std::string steps_of(const TestFunction& f, const std::vector<PlanNumber>& numbers, bool strict = false) {
  const std::optional<Sketched> made = sketch(f, {{"sketch", numbers}}, strict);
  return made ? text_of(made->written) : "";
}

/// Sums of rows that lie apart.
TestFunction strided_sum(int64_t rows, int64_t n) {
  FunctionBuilder b;
  const Buffer x = b.input("x", {rows, 2 * n, 3});
  return b.take(b.reduce("sum", Op::Add, {rows}, {n, 3}, [&](const Exprs& a, const Exprs& r) {
    return load(x, {a[0], r[0] * Expr(2), r[1]});
  }));
}

/// A band of a matrix times columns.
TestFunction banded(int64_t rows, int64_t n, int64_t w) {
  FunctionBuilder b;
  const Buffer a = b.input("a", {n, n}), x = b.input("x", {rows, n});
  return b.take(b.reduce("banded", Op::Add, {rows, n}, {2 * w + 1}, [&](const Exprs& i, const Exprs& r) {
    const Expr k = i[1] + r[0] - Expr(w);
    return select(k >= Expr(0) && k < Expr(n), load(a, {i[1], k}) * load(x, {i[0], k}), make_float(DType::F32, 0));
  }));
}

/// The largest values of rows and where they are: no formula of one value. Its loops are called as those of launches are.
TestFunction tops(int64_t rows, int64_t columns) {
  Stage s;
  s.kind = Stage::Kind::Reduce;
  s.name = "tops";
  s.axes = {{make_var("i"), Dim(rows)}, {make_var("block"), Dim(3)}};
  s.raxes = {{make_var("k"), Dim(columns)}};
  const Buffer x = make_buffer("x", DType::F32, {rows, 3, columns});
  s.values = {load(x, {s.axes[0].var, s.axes[1].var, s.raxes[0].var}), Expr(s.raxes[0].var)};
  s.combiner.lhs = {make_var("a", DType::F32), make_var("m")};
  s.combiner.rhs = {make_var("b", DType::F32), make_var("n")};
  const Expr a = s.combiner.lhs[0], b = s.combiner.rhs[0], m = s.combiner.lhs[1], n = s.combiner.rhs[1];
  const Expr first = a > b || (eq(a, b) && m < n);
  s.combiner.result = {select(first, a, b), select(first, m, n)};
  s.init = {lowest(DType::F32), Expr(int64_t(1) << 40)};
  s.outputs = {make_buffer("top", DType::F32, {rows, 3}), make_buffer("where", DType::I64, {rows, 3})};
  TestFunction f;
  f.fn.inputs = {x};
  f.fn.outputs = s.outputs;
  f.fn.stages = {std::move(s)};
  f.constant = {false};
  return f;
}

TEST(CudaSketch, KeepsABilinearForm) { expect_sound(bilinear(6, 5, 3, 40), 80, 25); }
TEST(CudaSketch, KeepsAFilter) { expect_sound(filter(6, 20, 3), 80, 25); }
TEST(CudaSketch, KeepsSeveralStages) { expect_sound(spread_rows(2, 3, 4, 18), 80, 25); }
TEST(CudaSketch, KeepsAStridedSum) { expect_sound(strided_sum(3, 70), 60, 15); }
TEST(CudaSketch, KeepsABand) { expect_sound(banded(5, 40, 3), 80, 25); }

TEST(CudaSketch, KeepsWhatNoFormulaSays) { expect_sound(tops(20, 9), 10, 1); }

TEST(CudaSketch, SharesSumsOfWhichThereAreFew) {
  EXPECT_NE(steps_of(strided_sum(3, 70), {}).find("bind_reduction(r0_thread)"), std::string::npos);
  EXPECT_EQ(steps_of(strided_sum(3, 70), {}, true).find("bind_reduction"), std::string::npos) << "another order";
  EXPECT_EQ(steps_of(strided_sum(3, 70), {{"lanes", 2}}, true), "");
}

TEST(CudaSketch, CopiesWhatThreadsReadAgain) {
  const std::string steps = steps_of(bilinear(32, 32, 4, 16), {{"lanes", 2}});
  EXPECT_NE(steps.find("cache_read(w, thread, shared)"), std::string::npos) << steps;
}

TEST(CudaSketch, IsNeverTheModelsChoice) {
  EXPECT_EQ(text_of(sketch(bilinear(6, 5, 3, 40), {})->lines).find("sketch"), std::string::npos);
}

}  // namespace
}  // namespace tc::sketch_test
