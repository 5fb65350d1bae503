// cache_read, cache_write, pipeline.
#include "ir/loop/visit.h"
#include "passes/schedule/test_schedules.h"

namespace tc::cache_test {
namespace {

using namespace tc::testing;

TensorFn matmul(int64_t m, int64_t n, int64_t k) { return product(1, m, n, k, false, false).fn; }

TEST(ScheduleCache, ReadCopiesWhatOneIterationReads) {
  const TensorFn fn = twice(2, 10);
  Schedule s(fn);
  const auto [o, i] = s.split(s.loops()[1], 4);
  s.cache_read(fn.inputs[0], o, Scope::Register);
  EXPECT_EQ(to_text(s.body()),
            "for i0 in 0 .. +2:\n"
            "  for i1_o in 0 .. +3:\n"
            "    alloc x_tile: f32[1,4] register\n"
            "    for c0 in 0 .. +1:\n"
            "      for c1 in 0 .. +4:\n"
            "        if i1_o * 4 + c1 < 10:\n"
            "          x_tile[0, c1] = x[i0, i1_o * 4 + c1]\n"
            "    for i1_i in 0 .. +4:\n"
            "      if i1_o * 4 + i1_i < 10:\n"
            "        add[i0, i1_o * 4 + i1_i] = x_tile[0, i1_i] + x_tile[0, i1_i]\n");
  EXPECT_EQ(s.steps()[1], "cache_read(x, i1_o, register) as x_tile");
  expect_same(fn, s.body());
}

// y[i, j] = select(i < n[], x[i, j], 0): nobody says that x has rows behind n.
TEST(ScheduleCache, ReadStaysBehindWhatDataDecides) {
  const Buffer n = make_buffer("n", DType::I64, {}), x = make_buffer("x", DType::F32, {4, 8}),
               y = make_buffer("y", DType::F32, {4, 8});
  const Var i = make_var("i"), j = make_var("j");
  const auto where = [&](const Expr& condition) {
    return loop(i, 4, loop(j, 8, store(y, {i, j}, select(condition, load(x, {i, j}), make_float(DType::F32, 0)))));
  };
  Schedule rows(where(Expr(i) < load(n, {})));
  rows.cache_read(x, i, Scope::Stack);
  EXPECT_EQ(to_text(rows.body()),
            "for i in 0 .. +4:\n"
            "  alloc x_tile: f32[1,8] stack\n"
            "  for c0 in 0 .. +1:\n"
            "    for c1 in 0 .. +8:\n"
            "      if i < n[]:\n"
            "        x_tile[0, c1] = x[i, c1]\n"
            "  for j in 0 .. +8:\n"
            "    y[i, j] = select(i < n[], x_tile[0, j], 0.0f)\n");
  Schedule elements(where(Expr(j) < load(n, {})));
  const std::string told = refusal([&] { elements.cache_read(x, i, Scope::Stack); });
  EXPECT_EQ(told.substr(0, told.find('\n')),
            "cache_read(x, i, stack): \"x\" is read behind a condition that data decides, and would be without it");
  // A condition that is read from a copy which begins behind that place.
  const Buffer mask = make_buffer("mask", DType::Bool, {4});
  Schedule copied(where(load(mask, {i})));
  copied.cache_read(mask, j, Scope::Stack);
  EXPECT_NE(refusal([&] { copied.cache_read(x, i, Scope::Stack); }).find("behind a condition that data decides"),
            std::string::npos);
  // A condition whose memory ends before the loop does: the guard of a split's last piece stands behind the copy.
  const Buffer two = make_buffer("two", DType::I64, {Dim(3)});
  Schedule beyond(loop(
      i, 4,
      if_then(
          Expr(i) < Expr(3),
          loop(j, 8, store(y, {i, j}, select(load(two, {i}) < Expr(9), load(x, {i, j}), make_float(DType::F32, 0)))))));
  EXPECT_NE(refusal([&] { beyond.cache_read(x, i, Scope::Stack); }).find("behind a condition that data decides"),
            std::string::npos);
  // What numbers decide is asked of every element of the copy.
  Schedule known(where(Expr(j) < Expr(5)));
  known.cache_read(x, i, Scope::Stack);
  EXPECT_NE(to_text(known.body()).find("x_tile[0, c1] = x[i, c1]"), std::string::npos);
}

// The last of four rows of x has two elements in the tile, and a copy of the tile reads those two.
TEST(ScheduleCache, ATileOfATileCopiesWhatWasCopied) {
  const TensorFn fn = twice(2, 10);
  Schedule s(fn);
  const auto [o, i] = s.split(s.loops()[1], 4);
  const Buffer tile = s.cache_read(fn.inputs[0], o, Scope::Stack);
  s.cache_read(tile, i, Scope::Register);
  EXPECT_EQ(to_text(s.body()),
            "for i0 in 0 .. +2:\n"
            "  for i1_o in 0 .. +3:\n"
            "    alloc x_tile: f32[1,4] stack\n"
            "    for c0 in 0 .. +1:\n"
            "      for c1 in 0 .. +4:\n"
            "        if i1_o * 4 + c1 < 10:\n"
            "          x_tile[0, c1] = x[i0, i1_o * 4 + c1]\n"
            "    for i1_i in 0 .. +4:\n"
            "      alloc x_tile_tile: f32[1,1] register\n"
            "      for c0_2 in 0 .. +1:\n"
            "        for c1_2 in 0 .. +1:\n"
            "          if i1_o * 4 + i1_i < 10:\n"
            "            x_tile_tile[0, 0] = x_tile[0, i1_i]\n"
            "      if i1_o * 4 + i1_i < 10:\n"
            "        add[i0, i1_o * 4 + i1_i] = x_tile_tile[0, 0] + x_tile_tile[0, 0]\n");
  expect_same(fn, s.body());
  // A tile that is filled whole is copied whole.
  const TensorFn even = twice(2, 8);
  Schedule whole(even);
  const auto [a, b] = whole.split(whole.loops()[1], 4);
  whole.cache_read(whole.cache_read(even.inputs[0], a, Scope::Stack), b, Scope::Register);
  EXPECT_EQ(to_text(whole.body()).find("if "), std::string::npos) << to_text(whole.body());
}

TEST(ScheduleCache, ReadRefusesWhatTheLoopWrites) {
  const Buffer a = make_buffer("a", DType::F32, {8, 8});
  const Var i = make_var("i"), j = make_var("j");
  Schedule s(loop(i, 7, loop(j, 8, store(a, {Expr(i) + 1, j}, load(a, {i, j})))));
  EXPECT_EQ(refusal([&] { s.cache_read(a, i, Scope::Register); }),
            "cache_read(a, i, register): loop i writes \"a\"\n"
            "  for i in 0 .. +7:\n"
            "    for j in 0 .. +8:\n"
            "      a[i + 1, j] = a[i, j]\n");
  EXPECT_NE(
      refusal([&] { s.cache_read(make_buffer("b", DType::F32, {1}), i, Scope::Register); }).find("does not read \"b\""),
      std::string::npos);
  EXPECT_NE(refusal([&] { s.cache_read(a, i, Scope::Shared); }).find("every thread"), 0u);
}

// Whatever comes first: registers and the stack are of one thread.
TEST(ScheduleCache, MemoryOfAThreadIsNotSharedByThreads) {
  const TensorFn fn = twice(4, 8);
  for (const Scope scope : {Scope::Register, Scope::Stack}) {
    Schedule inside(fn), outside(fn);
    const std::vector<Var> in = inside.loops(), out = outside.loops();
    inside.parallel(in[1]);
    const std::string why =
        "_tile\" would be " + scope_name(scope) + " memory outside of \"i1\", whose iterations are threads";
    EXPECT_NE(refusal([&] { inside.cache_read(fn.inputs[0], in[0], scope); }).find("\"x" + why), std::string::npos);
    EXPECT_NE(refusal([&] { inside.cache_write(fn.outputs[0], in[0], scope); }).find("\"add" + why), std::string::npos);
    inside.cache_read(fn.inputs[0], in[0], Scope::Workspace);
    expect_same(fn, inside.body());
    outside.cache_read(fn.inputs[0], out[0], scope);
    EXPECT_NE(refusal([&] { outside.parallel(out[1]); }).find("\"x_tile\" outside is"), std::string::npos);
  }
}

TEST(ScheduleCache, WriteCopiesOut) {
  const TensorFn fn = twice(2, 10);
  Schedule s(fn);
  const auto [o, i] = s.split(s.loops()[1], 4);
  s.cache_write(fn.outputs[0], o, Scope::Register);
  EXPECT_EQ(to_text(s.body()),
            "for i0 in 0 .. +2:\n"
            "  for i1_o in 0 .. +3:\n"
            "    alloc add_tile: f32[1,4] register\n"
            "    for i1_i in 0 .. +4:\n"
            "      if i1_o * 4 + i1_i < 10:\n"
            "        add_tile[0, i1_i] = x[i0, i1_o * 4 + i1_i] + x[i0, i1_o * 4 + i1_i]\n"
            "    for c0 in 0 .. +1:\n"
            "      for c1 in 0 .. +4:\n"
            "        if i1_o * 4 + c1 < 10:\n"
            "          add[i0, i1_o * 4 + c1] = add_tile[0, c1]\n");
  expect_same(fn, s.body());
}

// The sums begin outside of the loop: the tile takes over what is there.
TEST(ScheduleCache, WriteOfSumsCopiesInFirst) {
  const Buffer x = make_buffer("x", DType::F32, {6, 4}), y = make_buffer("y", DType::F32, {4});
  const Var k = make_var("k"), i = make_var("i");
  Schedule s(loop(k, 6, loop(i, 4, store(y, {i}, load(x, {k, i}), Op::Add))));
  s.cache_write(y, k, Scope::Register);
  EXPECT_EQ(to_text(s.body()),
            "for k in 0 .. +6:\n"
            "  alloc y_tile: f32[4] register\n"
            "  for c0 in 0 .. +4:\n"
            "    y_tile[c0] = y[c0]\n"
            "  for i in 0 .. +4:\n"
            "    y_tile[i] += x[k, i]\n"
            "  for c0_2 in 0 .. +4:\n"
            "    y[c0_2] = y_tile[c0_2]\n");
}

TEST(ScheduleCache, WriteRefusesGaps) {
  const Buffer x = make_buffer("x", DType::F32, {20}), y = make_buffer("y", DType::F32, {20});
  const Var i = make_var("i"), j = make_var("j");
  Schedule s(loop(i, 2, loop(j, 5, store(y, {Expr(i) * 10 + Expr(j) * 2}, load(x, {j})))));
  EXPECT_EQ(refusal([&] { s.cache_write(y, i, Scope::Register); }),
            "cache_write(y, i, register): an iteration of i does not fill its part of \"y\" completely\n"
            "  for i in 0 .. +2:\n"
            "    for j in 0 .. +5:\n"
            "      y[i * 10 + j * 2] = x[j]\n");
}

// A block of a matrix product on a GPU: tiles of both operands in shared memory, loaded one step ahead.
TEST(ScheduleCache, SharedTilesOfAMatrixProduct) {
  for (const Dims& d : {Dims{32, 32, 24}, Dims{19, 21, 13}, Dims{1, 5, 1}}) {
    const TensorFn fn = matmul(d[0], d[1], d[2]);
    Schedule s(fn);
    const Buffer y = s.buffer("matmul");
    const auto l = s.loops(y);
    const auto r = s.reduction_loops(y);
    const auto [mo, mi] = s.split(l[1], 8);
    const auto [no, ni] = s.split(l[2], 8);
    const auto [ko, ki] = s.split(r[0], 4);
    s.reorder({mo, no, mi, ni});
    s.fuse(l[0], mo);
    const auto now = s.loops(y);
    s.bind(now[0], ForKind::BlockY), s.bind(now[1], ForKind::BlockX);
    s.bind(now[2], ForKind::ThreadY), s.bind(now[3], ForKind::ThreadX);
    if (d[0] != 32) {  // the guard of a tail stands between the threads and the loop: not all of them load
      EXPECT_NE(refusal([&, ko = ko] {
                  s.cache_read(fn.inputs[0], ko, Scope::Shared);
                }).find("not all threads of the block come by here"),
                std::string::npos);
      continue;
    }
    const Buffer a = s.cache_read(fn.inputs[0], ko, Scope::Shared), b = s.cache_read(fn.inputs[1], ko, Scope::Shared);
    expect_same(fn, s.body());
    EXPECT_EQ(to_text(s.body()),
              "block.y i0_i1_o in 0 .. +4:\n"
              "  block.x i2_o in 0 .. +4:\n"
              "    alloc a_tile: f32[1,8,4] shared\n"
              "    alloc b_tile: f32[1,4,8] shared\n"
              "    thread.y i1_i in 0 .. +8:\n"
              "      thread.x i2_i in 0 .. +8:\n"
              "        alloc acc: f32[] register\n"
              "        acc[] = 0.0f\n"
              "        for r0_o in 0 .. +6:\n"
              "          barrier shared\n"
              "          for copy in 0 .. +1:\n"
              "            if i1_i * 8 + i2_i < 32:\n"
              "              a_tile[0, i1_i * 2 + floor_div(i2_i, 4), floor_mod(i2_i, 4)] = a[0, i0_i1_o * 8 + i1_i * "
              "2 + floor_div(i2_i, 4), r0_o * 4 + floor_mod(i2_i, 4)]\n"
              "          for copy_2 in 0 .. +1:\n"
              "            if i1_i * 8 + i2_i < 32:\n"
              "              b_tile[0, i1_i, i2_i] = b[0, r0_o * 4 + i1_i, i2_o * 8 + i2_i]\n"
              "          barrier shared\n"
              "          for r0_i in 0 .. +4:\n"
              "            acc[] += a_tile[0, i1_i, r0_i] * b_tile[0, r0_i, i2_i]\n"
              "        matmul[0, i0_i1_o * 8 + i1_i, i2_o * 8 + i2_i] = acc[]\n");
    Schedule ahead = s;
    ahead.pipeline({a, b}, 2);
    EXPECT_EQ(
        to_text(ahead.body()),
        "block.y i0_i1_o in 0 .. +4:\n"
        "  block.x i2_o in 0 .. +4:\n"
        "    alloc a_tile: f32[2,1,8,4] shared\n"
        "    alloc b_tile: f32[2,1,4,8] shared\n"
        "    thread.y i1_i in 0 .. +8:\n"
        "      thread.x i2_i in 0 .. +8:\n"
        "        alloc acc: f32[] register\n"
        "        acc[] = 0.0f\n"
        "        for copy in 0 .. +1:\n"
        "          if i1_i * 8 + i2_i < 32:\n"
        "            a_tile[0, 0, i1_i * 2 + floor_div(i2_i, 4), floor_mod(i2_i, 4)] = a[0, i0_i1_o * 8 + i1_i * 2 + "
        "floor_div(i2_i, 4), floor_mod(i2_i, 4)]\n"
        "        for copy_2 in 0 .. +1:\n"
        "          if i1_i * 8 + i2_i < 32:\n"
        "            b_tile[0, 0, i1_i, i2_i] = b[0, i1_i, i2_o * 8 + i2_i]\n"
        "        for r0_o in 0 .. +6:\n"
        "          barrier shared\n"
        "          if r0_o + 1 < 6:\n"
        "            for copy_3 in 0 .. +1:\n"
        "              if i1_i * 8 + i2_i < 32:\n"
        "                a_tile[floor_mod(r0_o + 1, 2), 0, i1_i * 2 + floor_div(i2_i, 4), floor_mod(i2_i, 4)] = a[0, "
        "i0_i1_o * 8 + i1_i * 2 + floor_div(i2_i, 4), r0_o * 4 + floor_mod(i2_i, 4) + 4]\n"
        "            for copy_4 in 0 .. +1:\n"
        "              if i1_i * 8 + i2_i < 32:\n"
        "                b_tile[floor_mod(r0_o + 1, 2), 0, i1_i, i2_i] = b[0, r0_o * 4 + i1_i + 4, i2_o * 8 + i2_i]\n"
        "          for r0_i in 0 .. +4:\n"
        "            acc[] += a_tile[floor_mod(r0_o, 2), 0, i1_i, r0_i] * b_tile[floor_mod(r0_o, 2), 0, r0_i, i2_i]\n"
        "        matmul[0, i0_i1_o * 8 + i1_i, i2_o * 8 + i2_i] = acc[]\n");
    expect_same(fn, ahead.body());
    EXPECT_NE(refusal([&, a = a] { s.pipeline(a, 2); }).find("something else is loaded between the barriers"),
              std::string::npos);
    s.pipeline({b, a}, 4);
    expect_same(fn, s.body());
  }
}

// Copied once by all threads, before the condition that some of them do not meet; names of blocks and threads stay names.
TEST(ScheduleCache, SharedTilesAtTheBeginOfAThread) {
  FunctionBuilder b;
  const Buffer x = b.input("x", {3, 12}), w = b.input("w", {3});
  const TensorFn fn = b.take(b.reduce("window", Op::Add, {3, 10}, {3}, [&](const Exprs& i, const Exprs& r) {
                         return load(x, {i[0], i[1] + r[0]}) * load(w, {r[0]});
                       })).fn;
  Schedule s(fn);
  const auto [block, thread] = s.split(s.loops()[1], 4);
  s.bind(s.fuse({s.loops()[0], block}, {{"block"}, true}), ForKind::BlockX);
  s.bind(thread, ForKind::ThreadX);
  s.cache_read(x, thread, Scope::Shared);
  s.cache_read(w, thread, Scope::Shared);
  EXPECT_EQ(to_text(s.body()),
            "block.x block in 0 .. +9:\n"
            "  let i0 = floor_div(block, 3)\n"
            "  let i1_o = floor_mod(block, 3)\n"
            "  alloc x_tile: f32[1,6] shared\n"
            "  alloc w_tile: f32[3] shared\n"
            "  thread.x i1_i in 0 .. +4:\n"
            "    for copy in 0 .. +2:\n"
            "      if copy * 4 + i1_i < 6:\n"
            "        if i1_o * 4 + copy * 4 + i1_i < 12:\n"
            "          x_tile[0, copy * 4 + i1_i] = x[i0, i1_o * 4 + copy * 4 + i1_i]\n"
            "    for copy_2 in 0 .. +1:\n"
            "      if i1_i < 3:\n"
            "        w_tile[i1_i] = w[i1_i]\n"
            "    barrier shared\n"
            "    if i1_o * 4 + i1_i < 10:\n"
            "      alloc acc: f32[] register\n"
            "      acc[] = 0.0f\n"
            "      for r0 in 0 .. +3:\n"
            "        acc[] += x_tile[0, i1_i + r0] * w_tile[r0]\n"
            "      window[i0, i1_o * 4 + i1_i] = acc[]\n");
  expect_same(fn, s);
}

// Where a loop stands around that of threads, the next iteration's copy waits for those who still read.
TEST(ScheduleCache, SharedTilesOfThreadsThatComeAgain) {
  FunctionBuilder b;
  const Buffer x = b.input("x", {6, 16});
  const TensorFn fn = b.take(b.compute("y", {6, 16}, [&](const Exprs& i) { return -load(x, {i[0], i[1]}); })).fn;
  Schedule s(fn);
  const std::vector<Var> loops = s.loops();
  const auto [block, rest] = s.split(loops[1], 8);
  const auto [thread, each] = s.split(rest, 2);
  s.reorder({block, loops[0], thread, each});
  s.bind(block, ForKind::BlockX);
  s.bind(thread, ForKind::ThreadX);
  s.cache_read(x, thread, Scope::Shared);
  const std::string text = to_text(s.body());
  EXPECT_NE(text.find("barrier shared"), text.rfind("barrier shared")) << text;
  expect_same(fn, s);
}

TEST(ScheduleCache, LargeArraysOfThreadsAreRefused) {
  FunctionBuilder b;
  const Buffer x = b.input("x", {4, 2000});
  const TensorFn fn = b.take(b.compute("y", {4, 2000}, [&](const Exprs& i) { return -load(x, {i[0], i[1]}); })).fn;
  Schedule s(fn);
  const Var i = s.loops()[0];
  s.bind(i, ForKind::BlockX);
  EXPECT_NE(refusal([&] { s.cache_read(x, i, Scope::Stack); }).find("more than 4 KiB of a thread's stack"),
            std::string::npos);
  Schedule later(fn);
  const Var row = later.loops()[0];
  later.cache_read(x, row, Scope::Stack);
  EXPECT_NE(refusal([&] { later.bind(row, ForKind::BlockX); }).find("more than 4 KiB of a thread's stack"),
            std::string::npos);
}

TEST(ScheduleCache, PipelineOfAPrivateTile) {
  const TensorFn fn = twice(3, 8);
  Schedule s(fn);
  const auto [o, i] = s.split(s.loops()[1], 4);
  const Buffer tile = s.cache_read(fn.inputs[0], o, Scope::Register);
  s.double_buffer(tile);
  EXPECT_EQ(to_text(s.body()),
            "for i0 in 0 .. +3:\n"
            "  alloc x_tile: f32[2,1,4] register\n"
            "  for c0 in 0 .. +1:\n"
            "    for c1 in 0 .. +4:\n"
            "      x_tile[0, 0, c1] = x[i0, c1]\n"
            "  for i1_o in 0 .. +2:\n"
            "    if i1_o + 1 < 2:\n"
            "      for c0_2 in 0 .. +1:\n"
            "        for c1_2 in 0 .. +4:\n"
            "          x_tile[1, 0, c1_2] = x[i0, c1_2 + 4]\n"
            "    for i1_i in 0 .. +4:\n"
            "      add[i0, i1_o * 4 + i1_i] = x_tile[i1_o, 0, i1_i] + x_tile[i1_o, 0, i1_i]\n");
  expect_same(fn, s.body());
  EXPECT_NE(refusal([&] { s.pipeline(tile, 2); }).find("\"x_tile\" is not allocated here"), std::string::npos);
  EXPECT_NE(refusal([&] { s.pipeline(tile, 1); }).find("fewer than 2 stages"), std::string::npos);
}

}  // namespace
}  // namespace tc::cache_test
