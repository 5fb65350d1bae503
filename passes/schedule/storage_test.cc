// set_scope, storage_align, prefetch, tensorize.
#include "ir/loop/visit.h"
#include "passes/loop/flatten_buffers.h"
#include "passes/schedule/test_schedules.h"

namespace tc::storage_test {
namespace {

using namespace tc::testing;

TensorFn two_steps(int64_t rows, int64_t columns) {
  FunctionBuilder b;
  const Buffer x = b.input("x", {rows, columns});
  const Buffer t = b.compute("t", {rows, columns}, [&](const Exprs& i) { return load(x, i) + load(x, i); });
  return b.take(b.compute("y", {columns, rows}, [&](const Exprs& i) { return load(t, {i[1], i[0]}); })).fn;
}

TEST(ScheduleStorage, SetScope) {
  const TensorFn fn = two_steps(4, 6);
  Schedule s(fn);
  const Buffer t = s.set_scope(s.buffer("t"), Scope::Stack);
  EXPECT_EQ(t->scope, Scope::Stack);
  EXPECT_EQ(s.buffer("t"), t);
  EXPECT_NE(to_text(s.body()).find("alloc t: f32[4,6] stack"), std::string::npos);
  expect_same(fn, s.body());
  EXPECT_NE(refusal([&] { s.set_scope(t, Scope::Shared); }).find("does not stand between blocks and threads"),
            std::string::npos);
  EXPECT_NE(refusal([&] { s.set_scope(fn.inputs[0], Scope::Stack); }).find("\"x\" is not allocated here"),
            std::string::npos);
  Schedule large(two_steps(64, 64));
  EXPECT_NE(refusal([&] { large.set_scope(large.buffer("t"), Scope::Stack); }).find("more than 4 KiB"),
            std::string::npos);
  Schedule huge(two_steps(1, 1 << 20));
  EXPECT_NE(refusal([&] { huge.set_scope(huge.buffer("t"), Scope::Register); }).find("more than 64 KiB of registers"),
            std::string::npos);
  const TensorFn wide = two_steps(2, 1 << 20);
  Schedule tiles(wide);
  EXPECT_NE(refusal([&] {
              tiles.cache_read(wide.inputs[0], tiles.loops(tiles.buffer("t"))[0], Scope::Register);
            }).find("more than 64 KiB of registers"),
            std::string::npos);
  Schedule threads(fn);
  threads.parallel(threads.loops()[0]);
  EXPECT_NE(refusal([&] { threads.set_scope(threads.buffer("t"), Scope::Register); }).find("threads inside share it"),
            std::string::npos);
}

TEST(ScheduleStorage, AlignChangesStrides) {
  const TensorFn fn = two_steps(4, 32);
  Schedule s(fn);
  const Buffer t = s.storage_align(s.buffer("t"), 0, 32, 1);
  EXPECT_EQ(t->strides, (std::vector<int64_t>{33, 1}));
  EXPECT_EQ(s.steps(), std::vector<std::string>{"storage_align(t, 0, 32, 1) as t"});
  expect_same(fn, s.body());
  BufferMap flat;
  const Stmt text = flatten_buffers(s.body(), flat);
  EXPECT_EQ(static_dims(flat.at(t.get())->shape), (Dims{3 * 33 + 32}));
  EXPECT_NE(to_text(text).find("alloc t: f32[131] workspace"), std::string::npos);
  EXPECT_NE(refusal([&] { s.storage_align(t, 1, 32, 1); }).find("there is no dimension behind it"), std::string::npos);
  EXPECT_NE(refusal([&] { s.storage_align(t, 0, 4, 4); }).find("the offset is not below the factor"),
            std::string::npos);
}

// What is printed has the unused ends of rows as well.
TEST(ScheduleStorage, AlignedSharedTilesKeepTheirStrides) {
  const TensorFn fn = row_sums(8, 32);
  Schedule s(fn);
  const auto [block, thread] = s.split(s.loops()[0], 4);
  s.bind(block, ForKind::BlockX), s.bind(thread, ForKind::ThreadX);
  s.storage_align(s.cache_read(fn.inputs[0], thread, Scope::Shared), 0, 2, 1);
  expect_same(fn, s.body());
  BufferMap flat;
  const std::string text = to_text(flatten_buffers(s.body(), flat));
  EXPECT_NE(text.find("alloc x_tile: f32[131] shared"), std::string::npos) << text;
  EXPECT_NE(text.find("acc[] += x_tile[i0_i * 33 + r0]"), std::string::npos) << text;
}

TEST(ScheduleStorage, PrefetchLooksAhead) {
  const TensorFn fn = twice(8, 3);
  Schedule s(fn);
  s.prefetch(fn.inputs[0], s.loops()[0], 2);
  EXPECT_EQ(to_text(s.body()),
            "for i0 in 0 .. +8:\n"
            "  if i0 + 2 < 8:\n"
            "    prefetch x[i0 + 2, 0]\n"
            "  for i1 in 0 .. +3:\n"
            "    add[i0, i1] = x[i0, i1] + x[i0, i1]\n");
  expect_same(fn, s.body());
  EXPECT_NE(refusal([&] { s.prefetch(fn.outputs[0], s.loops()[0], 2); }).find("at a place that depends on it"),
            std::string::npos);
}

// Sums of products of bytes, and the right factor packed as dot4 reads it.
TensorFn byte_product(int64_t m, int64_t n, int64_t k, DType left = DType::U8) {
  TensorFn fn;
  const Buffer x = make_buffer("x", left, {Dim(m), Dim(k)}), w = make_buffer("w", DType::I8, {Dim(k), Dim(n)});
  fn.inputs = {x, w};
  Stage s;
  s.kind = Stage::Kind::Reduce;
  s.name = "product";
  s.axes = {{make_var("i0"), Dim(m)}, {make_var("i1"), Dim(n)}};
  s.raxes = {{make_var("r0"), Dim(k)}};
  const Expr i = s.axes[0].var, j = s.axes[1].var, r = s.raxes[0].var;
  s.values = {cast(DType::I32, load(x, {i, r})) * cast(DType::I32, load(w, {r, j}))};
  s.combiner.op = Op::Add;
  s.init = {make_int(DType::I32, 0)};
  s.outputs = {make_buffer("product", DType::I32, {Dim(m), Dim(n)})};
  fn.stages = {s};
  fn.outputs = s.outputs;
  return fn;
}

TEST(SchedulePack, GivesAKnownOperandAnotherLayout) {
  const TensorFn fn = byte_product(3, 21, 10);
  Schedule s(fn, {}, {false, true});
  const Buffer packed = s.pack(fn.inputs[1], {1, 0}, {1, 0}, {16, 4});
  EXPECT_EQ(static_dims(packed->shape), (Dims{2, 3, 16, 4}));
  EXPECT_EQ(to_text(s.body()),
            "for i0 in 0 .. +3:\n"
            "  for i1 in 0 .. +21:\n"
            "    alloc acc: i32[] register\n"
            "    acc[] = i32(0)\n"
            "    for r0 in 0 .. +10:\n"
            "      acc[] += i32(x[i0, r0]) * i32(w_packed[floor_div(i1, 16), floor_div(r0, 4), floor_mod(i1, 16), "
            "floor_mod(r0, 4)])\n"
            "    product[i0, i1] = acc[]\n");
  EXPECT_EQ(s.steps(), (std::vector<std::string>{"pack(w, [1, 0], [1, 0], [16, 4]) as w_packed"}));
  expect_same(fn, s);
  Scheduled made;
  made.inputs = fn.inputs, made.input_index = {0, 1};
  s.hand_over(made);
  EXPECT_EQ(made.input_index, (std::vector<int>{0})) << "the loops do not read w any more";
  EXPECT_EQ(made.prologue_layouts, (std::vector<std::string>{"packed: d1 / 16, d0 / 4, d1 % 16, d0 % 4"}));
}

TEST(SchedulePack, RefusesWhatIsNotKnown) {
  const TensorFn fn = byte_product(3, 21, 10);
  Schedule s(fn, {}, {false, true});
  const Buffer x = fn.inputs[0], w = fn.inputs[1];
  auto why = [&](const Buffer& b, std::vector<int64_t> order, std::vector<int64_t> d, std::vector<int64_t> t) {
    const std::string text = refusal([&] { s.pack(b, order, d, t); });
    return text.substr(text.find("): ") + 3);
  };
  EXPECT_TRUE(why(x, {1, 0}, {}, {}).starts_with("\"x\" is no operand that is known while compiling"))
      << why(x, {1, 0}, {}, {});
  EXPECT_EQ(why(w, {1, 1}, {}, {}), "this is no order of its 2 dimensions");
  EXPECT_EQ(why(w, {1, 0}, {2}, {4}), "there is no dimension 2");
  EXPECT_EQ(why(w, {1, 0}, {0, 0}, {4, 2}), "dimension 0 is cut twice");
  EXPECT_EQ(why(w, {1, 0}, {0}, {11}), "a tile of dimension 0 has from 1 to 10 elements");
  EXPECT_EQ(why(w, {1, 0}, {0}, {}), "there is a tile for each dimension that is cut");
  s.pack(w, {1, 0});
  EXPECT_TRUE(why(w, {1, 0}, {}, {}).starts_with("the loops do not read \"w\"\n"));
}

// The loops of a product whose innermost ones are dot4's, and the outer one of these.
std::pair<Schedule, Var> quads(const TensorFn& fn) {
  Schedule s(fn, {}, {false, true});
  s.pack(fn.inputs[1], {1, 0}, {1, 0}, {16, 4});
  const Var n = s.loops(fn.outputs[0])[1];
  const auto [no, ni] = s.split(n, 16);
  const auto [ko, ki] = s.split(s.reduction_loops(fn.outputs[0])[0], 4);
  const std::vector<Var> parts = s.decompose_reduction(ni);
  s.reorder({ko, parts[1], ki});
  return {s, parts[1]};
}

TEST(ScheduleTensorize, FindsTheInstruction) {
  const TensorFn fn = byte_product(3, 32, 8);
  auto [s, add] = quads(fn);
  const auto v = s.tensorize(add, "dot4");
  ASSERT_TRUE(v.has_value());
  EXPECT_EQ(to_text(s.body()),
            "for i0 in 0 .. +3:\n"
            "  for i1_o in 0 .. +2:\n"
            "    alloc acc: i32[16] register\n"
            "    for i1_i in 0 .. +16:\n"
            "      acc[i1_i] = i32(0)\n"
            "    for r0_o in 0 .. +2:\n"
            "      unroll i1_i_v in 0 .. +16 / VL:\n"
            "        alloc acc_v: i32[16] register\n"
            "        acc_v[0:VL] = acc[(i1_i_v * VL):VL]\n"
            "        dot4(r0_o * 4 + i0 * 8, r0_o * 64 + i1_o * 128 + i1_i_v * VL * 4, 0, 4, acc_v, x, w_packed)\n"
            "        acc[(i1_i_v * VL):VL] = acc_v[0:VL]\n"
            "    for i1_i_2 in 0 .. +16:\n"
            "      product[i0, i1_o * 16 + i1_i_2] = acc[i1_i_2]\n");
  EXPECT_EQ(s.steps().back(), "tensorize(i1_i_2, dot4) as i1_i_v");
  expect_same(fn, s);
  EXPECT_NE(refusal([&] { s.parallel(s.loops()[0]); }).find("contains an instruction"), std::string::npos);
}

TEST(ScheduleTensorize, MovesTiles) {
  FunctionBuilder b;
  const Buffer x = b.input("x", {12, 20});
  const TensorFn fn = b.take(b.compute("turn", {20, 12}, [&](const Exprs& i) { return load(x, {i[1], i[0]}); })).fn;
  for (const bool turned : {false, true}) {
    Schedule s(fn);
    const std::vector<Var> loops = s.loops(fn.outputs[0]);
    const std::vector<Var> t = s.tile(loops[0], loops[1], 4, 4);
    if (turned) s.reorder({t[3], t[2]});
    EXPECT_FALSE(s.tensorize(turned ? t[3] : t[2], "transpose_tile").has_value());
    EXPECT_NE(to_text(s.body()).find("transpose_tile(i1_o * 4 + i0_o * 48, i0_o * 4 + i1_o * 80, 12, 20, turn, x)"),
              std::string::npos)
        << to_text(s.body());
    expect_same(fn, s);
  }
}

TEST(ScheduleTensorize, RefusesTilesOfAnotherType) {
  FunctionBuilder b;
  const Buffer x = b.input("x", {16, 16}, false, DType::U8);
  const TensorFn fn = b.take(b.compute("wide", {16, 16}, [&](const Exprs& i) {
                         return cast(DType::F32, load(x, {i[1], i[0]}));
                       })).fn;
  Schedule s(fn);
  EXPECT_NE(refusal([&] {
              s.tensorize(s.loops(fn.outputs[0])[0], "transpose_tile");
            }).find("the loop does not compute what the instruction does"),
            std::string::npos);
}

TEST(ScheduleTensorize, RefusesOtherComputations) {
  auto why = [](const TensorFn& fn, const char* name) {
    auto [s, add] = quads(fn);
    return refusal([&, &s = s, &add = add] { s.tensorize(add, name); });
  };
  const TensorFn fn = byte_product(3, 32, 8);
  EXPECT_NE(why(fn, "dot5").find("no instruction of that name is one thread's; there are dot4, "), std::string::npos);
  EXPECT_NE(why(fn, "transpose_tile").find("the loop does not compute what the instruction does"), std::string::npos);
  // Signed bytes are shifted by the instruction.
  const std::string text = why(byte_product(3, 32, 8, DType::I8), "dot4");
  EXPECT_NE(text.find("what the instruction does: sum[first + lane] += (i32(a[q]) + i32(128)) * i32(b[lane * 4 + q])"),
            std::string::npos)
      << text;
  EXPECT_NE(why(byte_product(3, 21, 8), "dot4"), "") << "columns that are no whole vectors";
}

TEST(ScheduleBlocks, StandAboveTheirNests) {
  const TensorFn fn = row_sums(4, 12);
  Schedule s(fn);
  const auto [ko, ki] = s.split(s.reduction_loops(fn.outputs[0])[0], 4);
  s.blockize(ki);
  s.annotate(s.loops()[0], "rows, one by one");
  EXPECT_EQ(to_text(s.body()),
            "# rows, one by one\n"
            "for i0 in 0 .. +4:\n"
            "  alloc acc: f32[] register\n"
            "  acc[] = 0.0f\n"
            "  for r0_o in 0 .. +3:\n"
            "    # block: reads x[1, 4]; writes acc[]\n"
            "    for r0_i in 0 .. +4:\n"
            "      acc[] += x[i0, r0_o * 4 + r0_i]\n"
            "  sum[i0] = acc[]\n");
  EXPECT_EQ(s.steps()[2], "annotate(i0, \"rows, one by one\")");
  expect_same(fn, s);
  EXPECT_NE(refusal([&] { s.fuse(ko, ki); }).find("is not the only statement of loop"), std::string::npos);
  EXPECT_NE(refusal([&] { s.annotate(ki, ""); }).find("the text has from 1 to 100 characters"), std::string::npos);
  for (const char* text : {"*/ int x; /*", "\"", "a\\", "// x"})
    EXPECT_NE(refusal([&] { s.annotate(ki, text); }).find("what no comment can have"), std::string::npos) << text;
}

}  // namespace
}  // namespace tc::storage_test
