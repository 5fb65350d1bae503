// compute_inline, compute_at, reverse_compute_at.
#include "passes/schedule/test_schedules.h"

namespace tc::compute_at_test {
namespace {

using namespace tc::testing;

// t = x * 2; y[j] = t[j] + t[j + 1]
TensorFn neighbours(int64_t n) {
  FunctionBuilder b;
  const Buffer x = b.input("x", {n});
  const Buffer t = b.compute("t", {n}, [&](const Exprs& i) { return load(x, i) * make_float(DType::F32, 2); });
  return b.take(b.compute("y", {n - 1}, [&](const Exprs& i) { return load(t, i) + load(t, {i[0] + Expr(1)}); })).fn;
}

// sum over columns, then divided by it (multiplied: exact)
TensorFn sum_and_scale(int64_t rows, int64_t columns) {
  FunctionBuilder b;
  const Buffer x = b.input("x", {rows, columns});
  const Buffer s = b.reduce("sum", Op::Add, {rows}, {columns}, [&](const Exprs& i, const Exprs& r) {
    return load(x, {i[0], r[0]});
  });
  return b.take(b.compute("y", {rows, columns}, [&](const Exprs& i) { return load(x, i) * load(s, {i[0]}); })).fn;
}

TEST(ScheduleComputeAt, InlineReplacesReads) {
  const TensorFn fn = neighbours(6);
  Schedule s(fn);
  s.compute_inline(s.buffer("t"));
  EXPECT_EQ(to_text(s.body()),
            "for i0 in 0 .. +5:\n"
            "  y[i0] = x[i0] * 2.0f + x[i0 + 1] * 2.0f\n");
  EXPECT_EQ(s.steps(), std::vector<std::string>{"compute_inline(t)"});
  expect_same(fn, s.body());
}

TEST(ScheduleComputeAt, InlineRefusesReductionsAndOutputs) {
  Schedule s(sum_and_scale(3, 4));
  EXPECT_EQ(refusal([&] { s.compute_inline(s.buffer("sum")); }),
            "compute_inline(sum): \"sum\" is not filled by one formula in plain loops\n"
            "  for i0 in 0 .. +3:\n"
            "    alloc acc: f32[] register\n"
            "    acc[] = 0.0f\n"
            "    for r0 in 0 .. +4:\n"
            "      acc[] += x[i0, r0]\n"
            "    sum[i0] = acc[]\n");
  EXPECT_NE(refusal([&] { s.compute_inline(s.buffer("y")); }).find("\"y\" is no temporary of these loops"),
            std::string::npos);
}

// The operand is overwritten between the formula and its reader.
TEST(ScheduleComputeAt, InlineRefusesChangedOperands) {
  const Buffer x = make_buffer("x", DType::F32, {4}), y = make_buffer("y", DType::F32, {4}),
               t = make_buffer("t", DType::F32, {4}, Scope::Workspace);
  const Var i = make_var("i"), j = make_var("j"), k = make_var("k");
  Schedule s(
      alloc(t, seq({loop(i, 4, store(t, {i}, load(x, {i}))), loop(j, 4, store(x, {j}, make_float(DType::F32, 0))),
                    loop(k, 4, store(y, {k}, load(t, {k})))})));
  EXPECT_NE(refusal([&] { s.compute_inline(t); }).find("\"x\", which \"t\" reads, is overwritten later"),
            std::string::npos);
  EXPECT_NE(refusal([&] { s.compute_at(t, k); }).find("is overwritten later"), std::string::npos);
}

TEST(ScheduleComputeAt, ComputeAtMakesWhatOneIterationNeeds) {
  const TensorFn fn = neighbours(11);
  Schedule s(fn);
  const auto [o, i] = s.split(s.loops(s.buffer("y"))[0], 4);
  const Buffer t = s.compute_at(s.buffer("t"), o, Scope::Stack);
  EXPECT_EQ(to_text(s.body()),
            "for i0_o in 0 .. +3:\n"
            "  alloc t: f32[5] stack\n"
            "  for i0 in 0 .. +5:\n"
            "    if i0_o * 4 + i0 < 11:\n"
            "      t[i0] = x[i0_o * 4 + i0] * 2.0f\n"
            "  for i0_i in 0 .. +4:\n"
            "    if i0_o * 4 + i0_i < 10:\n"
            "      y[i0_o * 4 + i0_i] = t[i0_i] + t[i0_i + 1]\n");
  EXPECT_EQ(s.steps()[1], "compute_at(t, i0_o, stack) as t");
  EXPECT_EQ(s.buffer("t"), t);
  expect_same(fn, s.body());
}

TEST(ScheduleComputeAt, ComputeAtOfAReduction) {
  const TensorFn fn = sum_and_scale(3, 4);
  Schedule s(fn);
  s.compute_at(s.buffer("sum"), s.loops(s.buffer("y"))[0], Scope::Register);
  EXPECT_EQ(to_text(s.body()),
            "for i0 in 0 .. +3:\n"
            "  alloc sum: f32[1] register\n"
            "  for i0_2 in 0 .. +1:\n"
            "    alloc acc: f32[] register\n"
            "    acc[] = 0.0f\n"
            "    for r0 in 0 .. +4:\n"
            "      acc[] += x[i0, r0]\n"
            "    sum[0] = acc[]\n"
            "  for i1 in 0 .. +4:\n"
            "    y[i0, i1] = x[i0, i1] * sum[0]\n");
  expect_same(fn, s.body());
}

TEST(ScheduleComputeAt, ComputeAtRefuses) {
  const TensorFn fn = neighbours(11);
  Schedule s(fn);
  const Buffer t = s.buffer("t");
  EXPECT_NE(refusal([&] { s.compute_at(t, s.loops(t)[0]); }).find("does not stand behind the loops of \"t\""),
            std::string::npos);
  Schedule split = s;
  split.split(split.loops(t)[0], 2);
  EXPECT_NE(refusal([&] { split.compute_at(t, split.loops(split.buffer("y"))[0]); }).find("are not plain any more"),
            std::string::npos);
  Schedule cut = s;
  const auto parts = cut.partition(cut.loops(cut.buffer("y"))[0], {4});
  EXPECT_NE(refusal([&] { cut.compute_at(t, parts[0]); }).find("\"t\" is read outside loop i0 too"), std::string::npos);
}

TEST(ScheduleComputeAt, ReverseComputeAtFollowsTheOperand) {
  FunctionBuilder b;
  const Buffer x = b.input("x", {6, 5}), w = b.input("w", {5, 8});
  const Buffer m = b.reduce("matmul", Op::Add, {6, 8}, {5}, [&](const Exprs& i, const Exprs& r) {
    return load(x, {i[0], r[0]}) * load(w, {r[0], i[1]});
  });
  const TensorFn fn =
      b.take(b.compute("relu", {6, 8}, [&](const Exprs& i) { return max(load(m, i), make_float(DType::F32, 0)); })).fn;
  Schedule s(fn);
  const auto t = s.tile(s.loops(s.buffer("matmul"))[0], s.loops(s.buffer("matmul"))[1], 4, 4);
  s.reverse_compute_at(s.buffer("relu"), t[1]);
  EXPECT_EQ(to_text(s.body()),
            "alloc matmul: f32[6,8] workspace\n"
            "for i0_o in 0 .. +2:\n"
            "  for i1_o in 0 .. +2:\n"
            "    for i0_i in 0 .. +4:\n"
            "      for i1_i in 0 .. +4:\n"
            "        if i0_o * 4 + i0_i < 6:\n"
            "          alloc acc: f32[] register\n"
            "          acc[] = 0.0f\n"
            "          for r0 in 0 .. +5:\n"
            "            acc[] += x[i0_o * 4 + i0_i, r0] * w[r0, i1_o * 4 + i1_i]\n"
            "          matmul[i0_o * 4 + i0_i, i1_o * 4 + i1_i] = acc[]\n"
            "    for i0 in 0 .. +4:\n"
            "      for i1 in 0 .. +4:\n"
            "        if i0_o * 4 + i0 < 6:\n"
            "          relu[i0_o * 4 + i0, i1_o * 4 + i1] = max(matmul[i0_o * 4 + i0, i1_o * 4 + i1], 0.0f)\n");
  expect_same(fn, s.body());
}

TEST(ScheduleComputeAt, ReverseComputeAtWaitsForTheWholeSum) {
  const TensorFn fn = sum_and_scale(3, 8);
  Schedule s(fn);
  s.decompose_reduction(s.loops(s.buffer("sum"))[0]);
  const auto r = s.reduction_loops(s.buffer("sum"));
  EXPECT_NE(
      refusal([&] { s.reverse_compute_at(s.buffer("y"), s.loops(s.buffer("y"))[0]); }).find("is not filled behind"),
      std::string::npos);
  // k outermost: no iteration of it has a complete sum.
  const Buffer x = make_buffer("x", DType::F32, {3, 4}), y = make_buffer("y", DType::F32, {3}),
               t = make_buffer("t", DType::F32, {3}, Scope::Workspace);
  const Var i = make_var("i"), k = make_var("k"), j = make_var("j");
  Schedule sums(alloc(t, seq({loop(k, 4, loop(i, 3, store(t, {i}, load(x, {i, k}), Op::Add))),
                              loop(j, 3, store(y, {j}, load(t, {j})))})));
  EXPECT_EQ(refusal([&] { sums.reverse_compute_at(y, k); }),
            "reverse_compute_at(y, k): \"t\" is complete behind loop k only: it joins into t[i]\n"
            "  for k in 0 .. +4:\n"
            "    for i in 0 .. +3:\n"
            "      t[i] += x[i, k]\n");
}

// The sum goes on behind the loop.
TEST(ScheduleComputeAt, ReverseComputeAtWaitsForLaterLoops) {
  const Buffer x = make_buffer("x", DType::F32, {3, 4}), y = make_buffer("y", DType::F32, {3}),
               t = make_buffer("t", DType::F32, {3}, Scope::Workspace);
  const Var i = make_var("i"), k = make_var("k"), m = make_var("m"), j = make_var("j");
  const Stmt part = loop(k, 1, store(t, {i}, load(x, {i, 0}), Op::Add));
  const Stmt rest = loop(m, 3, store(t, {i}, load(x, {i, Expr(m) + 1}), Op::Add));
  Schedule s(alloc(t, seq({loop(i, 3, seq({part, rest})), loop(j, 3, store(y, {j}, load(t, {j})))})));
  EXPECT_NE(refusal([&] { s.reverse_compute_at(y, k); }).find("does not fill all of \"t\""), std::string::npos);
}

}  // namespace
}  // namespace tc::compute_at_test
