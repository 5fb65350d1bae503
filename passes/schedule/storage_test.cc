// set_scope, storage_align, prefetch, tensorize.
#include "ir/loop/visit.h"
#include "passes/loop/flatten_buffers.h"
#include "passes/schedule/test_schedules.h"

namespace tc {
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
  EXPECT_NE(refusal([&] { s.storage_align(t, 0, 4, 4); }).find("the offset not below it"), std::string::npos);
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

// c[0] += sum of a[k] * b[k] over four elements.
Intrinsic dot4() {
  const Buffer c = make_buffer("c", DType::F32, {1}), a = make_buffer("a", DType::F32, {4}),
               b = make_buffer("b", DType::F32, {4});
  const Var k = make_var("k");
  return {"dot4", {c, a, b}, loop(k, 4, store(c, {0}, load(a, {k}) * load(b, {k}), Op::Add))};
}

TEST(ScheduleTensorize, FindsTheInstruction) {
  const Buffer x = make_buffer("x", DType::F32, {3, 8}), w = make_buffer("w", DType::F32, {5, 8}),
               y = make_buffer("y", DType::F32, {3, 5});
  const Var i = make_var("i"), j = make_var("j"), k = make_var("k");
  const Stmt product = loop(i, 3, loop(j, 5, loop(k, 8, store(y, {i, j}, load(x, {i, k}) * load(w, {j, k}), Op::Add))));
  Schedule s(product);
  const auto [ko, ki] = s.split(k, 4);
  s.tensorize(ki, dot4());
  EXPECT_EQ(to_text(s.body()),
            "for i in 0 .. +3:\n"
            "  for j in 0 .. +5:\n"
            "    for k_o in 0 .. +2:\n"
            "      dot4(i, j, i, k_o * 4, j, k_o * 4, y, x, w)\n");
  EXPECT_EQ(s.steps()[1], "tensorize(k_i, dot4)");
  std::vector<float> a(24), b(40), c(15, 1.0f), d(15, 1.0f);
  for (size_t n = 0; n < 40; n++) b[n] = float(int(n * 7 % 5) - 2), a[n % 24] = float(int(n * 3 % 7) - 3);
  auto compute = [&](const Stmt& body, std::vector<float>& out) {
    run(body, {{x, reinterpret_cast<uint8_t*>(a.data())},
               {w, reinterpret_cast<uint8_t*>(b.data())},
               {y, reinterpret_cast<uint8_t*>(out.data())}});
  };
  compute(product, c), compute(expand_intrinsics(s.body(), {dot4()}), d);
  EXPECT_EQ(c, d);
  EXPECT_NE(refusal([&] { s.parallel(i); }).find("contains an instruction"), std::string::npos);
}

TEST(ScheduleTensorize, RefusesOtherComputations) {
  const Buffer x = make_buffer("x", DType::F32, {3, 4}), y = make_buffer("y", DType::F32, {3});
  const Var i = make_var("i"), k = make_var("k");
  auto nest = [&](const Expr& value, Op op) { return loop(i, 3, loop(k, 4, store(y, {i}, value, op))); };
  Schedule sum(nest(load(x, {i, k}) + load(x, {i, k}), Op::Add));
  EXPECT_EQ(refusal([&] { sum.tensorize(k, dot4()); }),
            "tensorize(k, dot4): the loop does not compute what the instruction computes; here:\n"
            "  y[i] += x[i, k] + x[i, k]\n"
            "the instruction:\n"
            "  c[0] += a[k] * b[k]\n"
            "\n"
            "  for k in 0 .. +4:\n"
            "    y[i] += x[i, k] + x[i, k]\n");
  Schedule reversed(nest(load(x, {i, k}) * load(x, {i, Expr(3) - Expr(k)}), Op::Add));
  EXPECT_NE(refusal([&] { reversed.tensorize(k, dot4()); }), "");
  Schedule largest(nest(load(x, {i, k}) * load(x, {i, k}), Op::Max));
  EXPECT_NE(refusal([&] { largest.tensorize(k, dot4()); }), "");
  Schedule longer(loop(k, 5, store(y, {0}, load(x, {0, k}) * load(x, {0, k}), Op::Add)));
  EXPECT_NE(refusal([&] { longer.tensorize(k, dot4()); }), "");
}

}  // namespace
}  // namespace tc
