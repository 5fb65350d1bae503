// rfactor, bind_reduction, decompose_reduction, pad, partition.
#include "passes/schedule/test_schedules.h"

namespace tc::reduction_test {
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

TEST(ScheduleReduction, ThreadsShareASum) {
  const TensorFn fn = row_sums(2, 80);
  Schedule s(fn);
  const Var i = s.loops()[0], k = s.loops()[1];
  const auto [turns, thread] = s.split(k, 32);
  s.bind(i, ForKind::BlockX);
  s.bind_reduction(thread);
  EXPECT_EQ(to_text(s.body()),
            "block.x i0 in 0 .. +2:\n"
            "  thread.x r0_i in 0 .. +32:\n"
            "    alloc acc: f32[] register\n"
            "    acc[] = 0.0f\n"
            "    for r0_o in 0 .. +3:\n"
            "      if r0_o * 32 + r0_i < 80:\n"
            "        acc[] += x[i0, r0_o * 32 + r0_i]\n"
            "    allreduce_add(32, acc)\n"
            "    if r0_i == 0:\n"
            "      sum[i0] = acc[]\n");
  EXPECT_EQ(s.steps().back(), "bind_reduction(r0_i)");
  expect_same(fn, s);
}

TEST(ScheduleReduction, ThreadsShareSumsOfATile) {
  const TensorFn fn = row_sums(8, 64);
  Schedule s(fn);
  const Var k = s.loops()[1];
  const auto [outer, row] = s.split(s.loops()[0], 4);
  s.decompose_reduction(row);
  const auto [turns, thread] = s.split(k, 32);
  s.reorder({turns, thread, row});
  s.bind(outer, ForKind::ThreadY);
  s.bind_reduction(thread);
  EXPECT_EQ(to_text(s.body()),
            "thread.y i0_o in 0 .. +2:\n"
            "  thread.x r0_i in 0 .. +32:\n"
            "    alloc acc: f32[4] register\n"
            "    for i0_i in 0 .. +4:\n"
            "      acc[i0_i] = 0.0f\n"
            "    for r0_o in 0 .. +2:\n"
            "      for i0_i_2 in 0 .. +4:\n"
            "        acc[i0_i_2] += x[i0_o * 4 + i0_i_2, r0_o * 32 + r0_i]\n"
            "    unroll c0 in 0 .. +4:\n"
            "      alloc acc_all: f32[] register\n"
            "      acc_all[] = acc[c0]\n"
            "      allreduce_add(32, acc_all)\n"
            "      acc[c0] = acc_all[]\n"
            "    if r0_i == 0:\n"
            "      for i0_i_3 in 0 .. +4:\n"
            "        sum[i0_o * 4 + i0_i_3] = acc[i0_i_3]\n");
  expect_same(fn, s);
}

TEST(ScheduleReduction, StartValuesAreJoinedOnce) {
  const Buffer x = make_buffer("x", DType::F32, {2, 32}), y = make_buffer("y", DType::F32, {2}),
               acc = make_buffer("acc", DType::F32, {}, Scope::Register);
  const Var i = make_var("i"), k = make_var("k");
  const Stmt nest =
      alloc(acc, seq({store(acc, {}, make_float(DType::F32, 3)), loop(k, 32, store(acc, {}, load(x, {i, k}), Op::Add)),
                      store(y, {i}, load(acc, {}))}));
  Schedule s(loop(i, 2, nest));
  s.bind_reduction(k);
  EXPECT_EQ(to_text(s.body()),
            "thread.x k in 0 .. +32:\n"
            "  for i in 0 .. +2:\n"
            "    alloc acc: f32[] register\n"
            "    acc[] = select(k == 0, 3.0f, 0.0f)\n"
            "    acc[] += x[i, k]\n"
            "    allreduce_add(32, acc)\n"
            "    if k == 0:\n"
            "      y[i] = acc[]\n");
  EXPECT_NE(refusal([&] { s.decompose_reduction(i); }).find("there is an instruction"), std::string::npos);
}

TEST(ScheduleReduction, BindReductionRefuses) {
  const TensorFn fn = row_sums(4, 64);
  const auto why = [&](const std::function<void(Schedule&, const Var& row, const Var& k)>& steps,
                       const ScheduleOptions& options = {}) {
    Schedule s(fn, options);
    const std::string message = refusal([&] { steps(s, s.loops()[0], s.loops()[1]); });
    return message.substr(0, message.find('\n'));
  };
  EXPECT_EQ(why([](Schedule& s, const Var&, const Var& k) { s.bind_reduction(k); }, {.strict_fp = true}),
            "bind_reduction(r0): strict floating point keeps the order of the sum");
  EXPECT_EQ(why([](Schedule& s, const Var& row, const Var&) { s.bind_reduction(row); }),
            "bind_reduction(i0): the loop is not the loop of one joining store");
  EXPECT_EQ(why([](Schedule& s, const Var&, const Var& k) { s.bind_reduction(s.split(k, 24).second); }),
            "bind_reduction(r0_i): the number of iterations is no power of two");
  EXPECT_EQ(why([](Schedule& s, const Var&, const Var& k) { s.bind_reduction(s.split(k, 8).second); }),
            "bind_reduction(r0_i): a block would have 8 threads, which are no whole warps, or too many");
  EXPECT_EQ(why([](Schedule& s, const Var& row, const Var& k) {
              s.bind(row, ForKind::ThreadX);
              s.bind_reduction(k);
            }),
            "bind_reduction(r0): loop i0 is thread.x too");
  EXPECT_EQ(why([](Schedule& s, const Var& row, const Var& k) {
              s.bind(row, ForKind::ThreadY);
              s.bind_reduction(k);
            }),
            "bind_reduction(r0): more threads than a warp's share a sum, and the block has other ones");
  EXPECT_EQ(why([](Schedule& s, const Var& row, const Var& k) {
              const auto [block, thread] = s.split(row, 3);
              s.reorder({block, thread});
              s.bind(block, ForKind::BlockX), s.bind(thread, ForKind::ThreadY);
              s.bind_reduction(s.split(k, 32).second);
            }),
            "bind_reduction(r0_i): what stands around the sum in the loops of the GPU is more than loops");
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
}  // namespace tc::reduction_test
