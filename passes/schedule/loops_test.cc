// split, fuse, reorder, tile, unroll, vectorize, parallel, bind.
#include "passes/schedule/test_schedules.h"

namespace tc::loops_test {
namespace {

using namespace tc::testing;

TEST(ScheduleLoops, SplitGuardsTheTail) {
  const TensorFn fn = twice(2, 10);
  Schedule s(fn);
  const auto [o, i] = s.split(s.loops()[1], 4);
  EXPECT_EQ(to_text(s.body()),
            "for i0 in 0 .. +2:\n"
            "  for i1_o in 0 .. +3:\n"
            "    for i1_i in 0 .. +4:\n"
            "      if i1_o * 4 + i1_i < 10:\n"
            "        add[i0, i1_o * 4 + i1_i] = x[i0, i1_o * 4 + i1_i] + x[i0, i1_o * 4 + i1_i]\n");
  EXPECT_EQ(s.steps(), std::vector<std::string>{"split(i1, 4, guard) as i1_o, i1_i"});
  expect_same(fn, s.body());
}

TEST(ScheduleLoops, ThreadsShareANumberOfIterationsThatIsKnown) {
  const Buffer count = make_buffer("count", DType::I64, {}), y = make_buffer("y", DType::F32, {8});
  const Var i = make_var("i");
  Schedule s(loop(i, min(load(count, {}), Expr(8)), store(y, {i}, make_float(DType::F32, 1))));
  EXPECT_NE(refusal([&] { s.parallel(i); }).find("the extent is no constant"), std::string::npos);
}

TEST(ScheduleLoops, NothingStandsBesideTheThreadsOfABlock) {
  for (const bool threads_first : {false, true}) {
    const Buffer x = make_buffer("x", DType::F32, {4, 8}), y = make_buffer("y", DType::F32, {4, 8});
    const Var i = make_var("i"), j = make_var("j");
    Schedule s(loop(i, 4, loop(j, 8, store(y, {i, j}, load(x, {i, j})))));
    const std::vector<Var> parts = s.partition(j, {3});
    const auto block = [&] { s.bind(i, ForKind::BlockX); };
    const auto thread = [&] { s.bind(parts[0], ForKind::ThreadX); };
    if (threads_first) thread();
    if (!threads_first) block();
    const std::string why = threads_first ? refusal(block) : refusal(thread);
    EXPECT_NE(why.find("all threads of a block would do what stands beside their loop in \"i\""), std::string::npos)
        << why;
  }
}

TEST(ScheduleLoops, SplitByADivisorHasNoGuard) {
  const TensorFn fn = twice(1, 8);
  Schedule s(fn);
  s.split(s.loops()[1], 4);
  EXPECT_EQ(to_text(s.body()).find("if"), std::string::npos);
  expect_same(fn, s.body());
}

TEST(ScheduleLoops, SplitEndsEarlier) {
  const TensorFn fn = twice(1, 10);
  Schedule s(fn);
  s.split(s.loops()[1], 4, Tail::Min);
  EXPECT_EQ(to_text(s.body()),
            "for i0 in 0 .. +1:\n"
            "  for i1_o in 0 .. +3:\n"
            "    for i1_i in 0 .. +min(4, 10 - i1_o * 4):\n"
            "      add[i0, i1_o * 4 + i1_i] = x[i0, i1_o * 4 + i1_i] + x[i0, i1_o * 4 + i1_i]\n");
  expect_same(fn, s.body());
}

TEST(ScheduleLoops, FuseDivides) {
  const TensorFn fn = twice(4, 6);
  Schedule s(fn);
  const Var v = s.fuse(s.loops());
  EXPECT_EQ(to_text(s.body()),
            "for i0_i1 in 0 .. +24:\n"
            "  add[floor_div(i0_i1, 6), floor_mod(i0_i1, 6)] = x[floor_div(i0_i1, 6), floor_mod(i0_i1, 6)] + "
            "x[floor_div(i0_i1, 6), floor_mod(i0_i1, 6)]\n");
  s.parallel(v);
  expect_same(fn, s.body());
}

TEST(ScheduleLoops, WhatIsCutAndJoinedAgainStaysShort) {
  const TensorFn fn = twice(4, 1 << 10);
  Schedule s(fn);
  Var v = s.loops()[1];
  for (int i = 0; i < 40; i++) {
    const auto [outer, inner] = s.split(v, 2);
    v = s.fuse({outer, inner});
  }
  EXPECT_LT(to_text(s.body()).size(), 2000u);
  expect_same(fn, s.body());
}

TEST(ScheduleLoops, SplitAndFuseKeepCoordinatesInLets) {
  const TensorFn fn = twice(5, 7);
  Schedule s(fn);
  const Var i = s.fuse(s.loops(), {{"i"}, true});
  const auto [block, thread] = s.split(i, 8, Tail::Guard, {{"block", "thread"}, true});
  s.bind(block, ForKind::BlockX), s.bind(thread, ForKind::ThreadX);
  EXPECT_EQ(to_text(s.body()),
            "block.x block in 0 .. +5:\n"
            "  thread.x thread in 0 .. +8:\n"
            "    let i = block * 8 + thread\n"
            "    if i < 35:\n"
            "      let i0 = floor_div(i, 7)\n"
            "      let i1 = floor_mod(i, 7)\n"
            "      add[i0, i1] = x[i0, i1] + x[i0, i1]\n");
  EXPECT_EQ(s.steps(), (std::vector<std::string>{"fuse(i0, i1, let) as i", "split(i, 8, guard, let) as block, thread",
                                                 "bind(block, block.x)", "bind(thread, thread.x)"}));
  expect_same(fn, s.body());
}

TEST(ScheduleLoops, FuseOfSeveralIsOneStep) {
  const Buffer x = make_buffer("x", DType::F32, {2, 1, 3, 4}), y = make_buffer("y", DType::F32, {2, 1, 3, 4});
  const std::vector<Var> v = {make_var("a"), make_var("b"), make_var("c"), make_var("d")};
  Stmt nest = store(y, {v[0], v[1], v[2], v[3]}, load(x, {v[0], v[1], v[2], v[3]}));
  for (size_t k = 4; k-- > 0;) nest = loop(v[k], y->shape[k], nest);
  Schedule s(nest);
  s.fuse(v, {{}, true});
  EXPECT_EQ(s.steps(), std::vector<std::string>{"fuse(a, b, c, d, let) as a_b_c_d"});
  EXPECT_EQ(to_text(s.body()),
            "for a_b_c_d in 0 .. +24:\n"
            "  let a = floor_div(a_b_c_d, 12)\n"
            "  let c = floor_mod(floor_div(a_b_c_d, 4), 3)\n"
            "  let d = floor_mod(a_b_c_d, 4)\n"
            "  y[a, 0, c, d] = x[a, 0, c, d]\n");
}

// What is known of the loops is not proved again: an index that is read from memory tells nothing.
TEST(ScheduleLoops, IndependenceIsKeptThroughFuseSplitAndBind) {
  const Buffer at = make_buffer("at", DType::I64, {12}), y = make_buffer("y", DType::F32, {12});
  const Var i = make_var("i"), j = make_var("j");
  const Stmt nest =
      loop(i, 3, loop(j, 4, store(y, {load(at, {Expr(i) * Expr(4) + Expr(j)})}, make_float(DType::F32, 1))));
  auto launch = [&](Schedule s) {
    const auto [block, thread] = s.split(s.fuse({i, j}, {{"all"}, true}), 5);
    s.bind(block, ForKind::BlockX), s.bind(thread, ForKind::ThreadX);
    return s.steps().size();
  };
  EXPECT_EQ(launch(Schedule(nest, {}, {i, j})), 4u);
  EXPECT_NE(refusal([&] { launch(Schedule(nest, {}, {i})); }).find("may depend on each other"), std::string::npos);
  EXPECT_NE(refusal([&] { launch(Schedule(nest)); }).find("may depend on each other"), std::string::npos);
}

TEST(ScheduleLoops, BlocksAndThreadsMayHaveVectorsInside) {
  const TensorFn fn = twice(4, 16);
  Schedule s(fn);
  const std::vector<Var> l = s.loops();
  const auto [o, i] = s.split(l[1], 4);
  s.vectorize(i);
  s.bind(l[0], ForKind::BlockX), s.bind(o, ForKind::ThreadX);
  expect_same(fn, s.body());
}

TEST(ScheduleLoops, FuseRefusesWhatIsNotRightInside) {
  Schedule s(row_sums(3, 4));
  const auto loops = s.loops();
  EXPECT_EQ(refusal([&] { s.fuse(loops[0], loops[1]); }),
            "fuse(i0, r0): loop r0 is not the only statement of loop i0\n"
            "  for i0 in 0 .. +3:\n"
            "    alloc acc: f32[] register\n"
            "    acc[] = 0.0f\n"
            "    for r0 in 0 .. +4:\n"
            "      acc[] += x[i0, r0]\n"
            "    sum[i0] = acc[]\n");
  EXPECT_TRUE(s.steps().empty());
}

TEST(ScheduleLoops, ReorderMovesGuardsInside) {
  const TensorFn fn = twice(3, 10);
  Schedule s(fn);
  const auto t = s.tile(s.loops()[0], s.loops()[1], 2, 4);
  EXPECT_EQ(to_text(s.body()),
            "for i0_o in 0 .. +2:\n"
            "  for i1_o in 0 .. +3:\n"
            "    for i0_i in 0 .. +2:\n"
            "      for i1_i in 0 .. +4:\n"
            "        if i0_o * 2 + i0_i < 3:\n"
            "          if i1_o * 4 + i1_i < 10:\n"
            "            add[i0_o * 2 + i0_i, i1_o * 4 + i1_i] = x[i0_o * 2 + i0_i, i1_o * 4 + i1_i] + "
            "x[i0_o * 2 + i0_i, i1_o * 4 + i1_i]\n");
  expect_same(fn, s.body());
  s.parallel(t[0]), s.unroll(t[3]);
  expect_same(fn, s.body());
}

// The bounds are read once; a guard would read them in every iteration.
TEST(ScheduleLoops, SplitAndFuseRefuseBoundsInMemory) {
  const Buffer n = make_buffer("n", DType::I64, {1}), a = make_buffer("a", DType::I64, {64});
  const Var i = make_var("i"), j = make_var("j");
  Schedule s(loop(i, load(n, {0}), loop(j, 4, seq({store(a, {j}, 0), store(n, {0}, 1)}))));
  EXPECT_NE(refusal([&] { s.split(i, 4); }).find("the bounds of loop i read memory"), std::string::npos);
  EXPECT_NE(refusal([&] { s.fuse(i, j); }).find("the bounds of loop i read memory"), std::string::npos);
  EXPECT_NE(refusal([&] { s.reorder({j, i}); }).find("both carry dependences"), std::string::npos);
}

// Within one k all elements differ; across k they alias: threads must not come to stand outside.
TEST(ScheduleLoops, ReorderRefusesLoopsOfThreads) {
  const Buffer x = make_buffer("x", DType::F32, {4, 8}), y = make_buffer("y", DType::F32, {16});
  const Var k = make_var("k"), i = make_var("i");
  Schedule s(loop(k, 4, loop(i, 8, store(y, {Expr(i) + Expr(k)}, load(x, {k, i}), Op::Add))));
  s.parallel(i);
  EXPECT_NE(refusal([&] { s.reorder({i, k}); }).find("loop i is parallel"), std::string::npos);
}

TEST(ScheduleLoops, ReorderKeepsBoundsVisible) {
  Schedule s(twice(1, 10));
  const auto [o, i] = s.split(s.loops()[1], 4, Tail::Min);
  EXPECT_NE(refusal([&, o = o, i = i] {
              s.reorder({i, o});
            }).find("the bounds of loop i1_i depend on a loop that would stand inside it"),
            std::string::npos);
}

// The order of a float sum is kept under strict_fp.
TEST(ScheduleLoops, ReorderOfTwoReductions) {
  const Buffer x = make_buffer("x", DType::F32, {4, 5}), y = make_buffer("y", DType::F32, {1});
  const Var i = make_var("i"), j = make_var("j");
  const Stmt sum = loop(i, 4, loop(j, 5, store(y, {0}, load(x, {i, j}), Op::Add)));
  Schedule strict(sum, {.strict_fp = true}), free(sum);
  EXPECT_NE(refusal([&] { strict.reorder({j, i}); }).find("loops i and j both carry dependences"), std::string::npos);
  free.reorder({j, i});
  EXPECT_EQ(free.loops(), (std::vector<Var>{j, i}));
}

// a[i + 1, j - 1] after a[i, j]: swapping would read before it is written.
TEST(ScheduleLoops, ReorderRefusesSkewedDependences) {
  const Buffer a = make_buffer("a", DType::F32, {8, 8});
  const Var i = make_var("i"), j = make_var("j");
  const Stmt s = loop(i, 7, loop(j, 7, store(a, {Expr(i) + 1, j}, load(a, {i, Expr(j) + 1})), ForKind::Serial));
  Schedule sc(s);
  EXPECT_NE(refusal([&] { sc.reorder({j, i}); }).find("both carry dependences"), std::string::npos);
  EXPECT_NE(refusal([&] { sc.parallel(i); }), "");
  sc.parallel(j);  // row i is complete before row i + 1 begins
}

TEST(ScheduleLoops, ParallelRefusesReductionsAndDependences) {
  Schedule s(row_sums(3, 4));
  const auto loops = s.loops();
  const std::string why = refusal([&] { s.parallel(loops[1]); });
  EXPECT_EQ(why,
            "parallel(r0): loop r0 carries a reduction: it joins into acc[]\n"
            "  for r0 in 0 .. +4:\n"
            "    acc[] += x[i0, r0]\n");
  EXPECT_NE(refusal([&] { s.vectorize(loops[1]); }).find("carries a reduction"), std::string::npos);
  EXPECT_NE(refusal([&] { s.bind(loops[1], ForKind::ThreadX); }).find("carries a reduction"), std::string::npos);
  s.parallel(loops[0]);
  EXPECT_NE(refusal([&] { s.parallel(loops[0]); }).find("is parallel already"), std::string::npos);
  const Buffer a = make_buffer("a", DType::F32, {9});
  const Var i = make_var("i");
  Schedule past(loop(i, 8, store(a, {Expr(i) + 1}, load(a, {i}))));
  EXPECT_EQ(refusal([&] { past.parallel(i); }),
            "parallel(i): iterations of loop i may depend on each other: it reads a[i] and writes a[i + 1]\n"
            "  for i in 0 .. +8:\n"
            "    a[i + 1] = a[i]\n");
}

TEST(ScheduleLoops, ScattersAreNotUnderstood) {
  const Buffer a = make_buffer("a", DType::F32, {9}), at = make_buffer("at", DType::I64, {8});
  const Var i = make_var("i");
  Schedule s(loop(i, 8, store(a, {load(at, {i})}, make_float(DType::F32, 1))));
  EXPECT_NE(refusal([&] { s.parallel(i); }).find("it writes a[at[i]] more than once"), std::string::npos);
}

TEST(ScheduleLoops, BindMakesOneLaunch) {
  for (const Dims& d : {Dims{7, 11}, Dims{1, 1}, Dims{16, 32}}) {
    const TensorFn fn = twice(d[0], d[1]);
    Schedule s(fn);
    const auto [block, thread] = s.split(s.fuse(s.loops()), 256);
    s.bind(block, ForKind::BlockX), s.bind(thread, ForKind::ThreadX);
    expect_same(fn, s.body());
    EXPECT_EQ(s.loop_of(block).kind, ForKind::BlockX);
    EXPECT_NE(refusal([&, b = block] { s.bind(b, ForKind::BlockX); }).find("is block.x already"), std::string::npos);
  }
}

TEST(ScheduleLoops, BindKeepsTheLimits) {
  Schedule s(twice(4, 2048));
  const auto loops = s.loops();
  EXPECT_NE(refusal([&] { s.bind(loops[1], ForKind::ThreadX); }).find("the extent is not in 1 .. 1024"),
            std::string::npos);
  s.bind(loops[0], ForKind::ThreadX);
  EXPECT_NE(refusal([&] { s.bind(loops[1], ForKind::BlockX); }).find("a loop of threads stands around"),
            std::string::npos);
  EXPECT_NE(refusal([&] { s.bind(loops[1], ForKind::Unroll); }).find("not a kind of a GPU"), std::string::npos);
  const Buffer a = make_buffer("a", DType::F32, {9});
  const Var i = make_var("i");
  Schedule shifted(loop(i, 8, store(a, {i}, make_float(DType::F32, 1)), ForKind::Serial, 1));
  shifted.bind(i, ForKind::ThreadX);
  EXPECT_EQ(to_text(shifted.body()), "thread.x i in 0 .. +8:\n  a[1 + i] = 1.0f\n");
}

TEST(ScheduleLoops, UnrollRefusesLongLoops) {
  Schedule s(twice(2, 5000));
  EXPECT_NE(refusal([&] { s.unroll(s.loops()[1]); }).find("no constant up to 1024"), std::string::npos);
  s.unroll(s.loops()[0]);
  EXPECT_EQ(s.steps(), std::vector<std::string>{"unroll(i0)"});
}

TEST(ScheduleLoops, AttemptsLeaveNothingHalfDone) {
  Schedule s(row_sums(3, 8));
  const Var i = s.loops()[0], k = s.loops()[1];
  EXPECT_FALSE(s.attempt([&](Schedule& t) { t.split(i, 2), t.parallel(k); }));
  EXPECT_TRUE(s.steps().empty());
  EXPECT_EQ(s.loops(), (std::vector<Var>{i, k}));
  EXPECT_TRUE(s.attempt([&](Schedule& t) { t.split(i, 2), t.unroll(k); }));
  EXPECT_EQ(s.steps().size(), 2u);
}

TEST(ScheduleLoops, StagesAreFoundByName) {
  FunctionBuilder b;
  const Buffer x = b.input("x", {4, 6});
  const Buffer sum = b.reduce("sum", Op::Add, {4}, {6}, [&](const Exprs& i, const Exprs& r) {
    return load(x, {i[0], r[0]});
  });
  const TensorFn fn = b.take(b.compute("y", {4, 6}, [&](const Exprs& i) { return load(x, i) * load(sum, {i[0]}); })).fn;
  Schedule s(fn);
  EXPECT_EQ(s.buffer("sum")->scope, Scope::Workspace);
  EXPECT_EQ(s.buffer("y"), fn.outputs[0]);
  EXPECT_EQ(s.loops(s.buffer("sum")).size(), 1u);
  EXPECT_EQ(s.reduction_loops(s.buffer("sum")), std::vector<Var>{fn.stages[0].raxes[0].var});
  EXPECT_EQ(s.loops(s.buffer("y")).size(), 2u);
  EXPECT_EQ(s.buffer(fn.stages[0]), s.buffer("sum"));
  EXPECT_THROW(s.buffer("z"), ScheduleError);
}

}  // namespace
}  // namespace tc::loops_test
