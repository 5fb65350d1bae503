// rfactor, decompose_reduction, pad, partition.
#include "passes/schedule/test_schedules.h"

namespace tc {
namespace {

using namespace tc::testing;

TEST(ScheduleReduction, RfactorKeepsPartialResults) {
  const TensorFn fn = row_sums(2, 12);
  Schedule s(fn);
  const auto [ko, ki] = s.split(s.reduction_loops(s.buffer("sum"))[0], 4);
  s.rfactor(ki);
  EXPECT_EQ(to_text(s.body()),
            "for i0 in 0 .. +2:\n"
            "  alloc acc: f32[] register\n"
            "  acc[] = 0.0f\n"
            "  alloc acc_part: f32[4] register\n"
            "  for p in 0 .. +4:\n"
            "    acc_part[p] = 0.0f\n"
            "  for r0_o in 0 .. +3:\n"
            "    for r0_i in 0 .. +4:\n"
            "      acc_part[r0_i] += x[i0, r0_o * 4 + r0_i]\n"
            "  for p_2 in 0 .. +4:\n"
            "    acc[] += acc_part[p_2]\n"
            "  sum[i0] = acc[]\n");
  EXPECT_EQ(s.steps()[1], "rfactor(r0_i, register) as acc_part");
  expect_same(fn, s.body());
  s.vectorize(ki);  // nothing is carried any more
  expect_same(fn, s.body());
}

TEST(ScheduleReduction, RfactorRefuses) {
  const TensorFn fn = row_sums(2, 12);
  Schedule strict(fn, {.strict_fp = true});
  const auto loops = strict.loops();
  EXPECT_EQ(refusal([&] { strict.rfactor(loops[1]); }),
            "rfactor(r0, register): strict floating point keeps the order of the sum\n"
            "  for r0 in 0 .. +12:\n"
            "    acc[] += x[i0, r0]\n");
  EXPECT_NE(refusal([&] { strict.rfactor(loops[0]); }).find("is not the loop of one joining store"), std::string::npos);
  const Buffer x = make_buffer("x", DType::F32, {4}), y = make_buffer("y", DType::F32, {1});
  const Var i = make_var("i");
  Schedule differences(loop(i, 4, store(y, {0}, load(x, {i}), Op::Sub)));
  EXPECT_NE(refusal([&] { differences.rfactor(i); }).find("is not known to be associative"), std::string::npos);
}

TEST(ScheduleReduction, DecomposeMakesThreeNests) {
  const TensorFn fn = row_sums(3, 4);
  Schedule s(fn);
  const Var i = s.loops(s.buffer("sum"))[0], k = s.reduction_loops(s.buffer("sum"))[0];
  s.decompose_reduction(i);
  EXPECT_EQ(to_text(s.body()),
            "alloc acc: f32[3] register\n"
            "for i0 in 0 .. +3:\n"
            "  acc[i0] = 0.0f\n"
            "for i0_2 in 0 .. +3:\n"
            "  for r0 in 0 .. +4:\n"
            "    acc[i0_2] += x[i0_2, r0]\n"
            "for i0_3 in 0 .. +3:\n"
            "  sum[i0_3] = acc[i0_3]\n");
  s.reorder({k, i});
  s.vectorize(i);
  expect_same(fn, s.body());
}

TEST(ScheduleReduction, DecomposeRefusesOtherLoops) {
  Schedule s(twice(2, 3));
  EXPECT_NE(refusal([&] { s.decompose_reduction(s.loops()[0]); }).find("do not lead to accumulators"),
            std::string::npos);
}

TEST(ScheduleReduction, PadGuardsOrJoinsTheIdentity) {
  const TensorFn fn = row_sums(2, 10);
  Schedule guard(fn), identity(fn);
  const Var k = guard.reduction_loops(guard.buffer("sum"))[0];
  guard.pad(k, 4), identity.pad(k, 4, PadWith::Identity);
  EXPECT_EQ(to_text(guard.body()),
            "for i0 in 0 .. +2:\n"
            "  alloc acc: f32[] register\n"
            "  acc[] = 0.0f\n"
            "  for r0 in 0 .. +12:\n"
            "    if r0 < 10:\n"
            "      acc[] += x[i0, r0]\n"
            "  sum[i0] = acc[]\n");
  EXPECT_EQ(to_text(identity.body()),
            "for i0 in 0 .. +2:\n"
            "  alloc acc: f32[] register\n"
            "  acc[] = 0.0f\n"
            "  for r0 in 0 .. +12:\n"
            "    acc[] += select(r0 < 10, x[i0, r0], -0.0f)\n"
            "  sum[i0] = acc[]\n");
  expect_same(fn, guard.body()), expect_same(fn, identity.body());
  EXPECT_NE(refusal([&] { guard.pad(guard.loops()[0], 4, PadWith::Identity); }).find("is no single joining store"),
            std::string::npos);
}

TEST(ScheduleReduction, PartitionDecidesConditions) {
  const TensorFn fn = twice(1, 10);
  Schedule s(fn);
  const auto [o, i] = s.split(s.loops()[1], 4);
  const auto parts = s.partition(o, {2});
  EXPECT_EQ(parts.size(), 2u);
  EXPECT_EQ(to_text(s.body()),
            "for i0 in 0 .. +1:\n"
            "  for i1_o in 0 .. +2:\n"
            "    for i1_i in 0 .. +4:\n"
            "      add[0, i1_o * 4 + i1_i] = x[0, i1_o * 4 + i1_i] + x[0, i1_o * 4 + i1_i]\n"
            "  for i1_o_2 in 2 .. +1:\n"
            "    for i1_i_2 in 0 .. +4:\n"
            "      if i1_i_2 + 8 < 10:\n"
            "        add[0, i1_i_2 + 8] = x[0, i1_i_2 + 8] + x[0, i1_i_2 + 8]\n");
  expect_same(fn, s.body());
  EXPECT_NE(refusal([&, o = o] { s.partition(o, {2}); }).find("the cuts do not ascend strictly inside 0 .. 2"),
            std::string::npos);
}

}  // namespace
}  // namespace tc
