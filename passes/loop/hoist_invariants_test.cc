#include "passes/loop/hoist_invariants.h"

#include <gtest/gtest.h>

#include "ir/interpreter.h"
#include "ir/loop/build.h"
#include "ir/loop/print.h"
#include "ir/verify.h"

namespace tc::hoist_invariants_test {
namespace {

Buffer f32s(const char* name, Dims d) { return make_buffer(name, DType::F32, to_shape(d)); }
Expr f32(double v) { return make_float(DType::F32, v); }

std::string text(const Stmt& s, const std::vector<Buffer>& buffers) {
  Stmt r = hoist_invariants(s);
  verify(r, buffers);
  return to_text(r);
}

TEST(HoistInvariants, OutOfBothLoopsAsFarAsItGoes) {
  Buffer x = f32s("x", {4, 64}), y = f32s("y", {4, 64}), scale = f32s("scale", {4}), all = f32s("all", {1});
  Var m = make_var("m"), k = make_var("k");
  Expr e = load(x, {m, k}) * (f32(1) / load(scale, {m})) + exp(load(all, {0}));
  EXPECT_EQ(text(loop(m, 4, loop(k, 64, store(y, {m, k}, e))), {x, y, scale, all}),
            "let exp_v = exp(all[0])\n"
            "for m in 0 .. +4:\n"
            "  let quot = 1.0f / scale[m]\n"
            "  for k in 0 .. +64:\n"
            "    y[m, k] = x[m, k] * quot + exp_v\n");
}

TEST(HoistInvariants, ChainsOfLetsMoveTogether) {
  Buffer x = f32s("x", {4}), y = f32s("y", {64});
  Var k = make_var("k"), a = make_var("a", DType::F32), b = make_var("b", DType::F32);
  Stmt s = loop(k, 64, let(a, exp(load(x, {0})), let(b, Expr(a) * Expr(a), store(y, {k}, Expr(a) + Expr(b)))));
  EXPECT_EQ(text(s, {x, y}),
            "let a = exp(x[0])\n"
            "let b = a * a\n"
            "let sum = a + b\n"
            "for k in 0 .. +64:\n"
            "  y[k] = sum\n");
}

TEST(HoistInvariants, StoredBuffersAndUntakenSidesStay) {
  Buffer x = f32s("x", {4}), y = f32s("y", {64});
  Var k = make_var("k"), n = make_var("n");
  Stmt s = loop(k, 63, store(y, {Expr(k) + 1}, load(y, {0}) * load(y, {0})));
  EXPECT_EQ(text(s, {x, y}), to_text(s));
  s = loop(k, 64, store(y, {k}, select(Expr(k) < 0, load(x, {3}), f32(0))));
  EXPECT_EQ(text(s, {x, y}), to_text(s));
  // a loop that may not run must not load
  s = loop(n, 9, loop(k, n, store(y, {k}, load(x, {Expr(n) - 8}))));
  EXPECT_EQ(text(s, {x, y}), to_text(s));
}

TEST(HoistInvariants, DivisionsOfIndices) {
  Buffer x = f32s("x", {8, 64}), y = f32s("y", {100, 64});
  Var m = make_var("m"), k = make_var("k");
  EXPECT_EQ(text(loop(m, 100, loop(k, 64, store(y, {m, k}, load(x, {floor_mod(m, 8), k})))), {x, y}),
            "for m in 0 .. +100:\n"
            "  let rest = floor_mod(m, 8)\n"
            "  for k in 0 .. +64:\n"
            "    y[m, k] = x[rest, k]\n");
}

TEST(HoistInvariants, ParallelAndThreadLoopsKeepTheirBodies) {
  Buffer x = f32s("x", {1}), y = f32s("y", {64});
  Var k = make_var("k");
  for (ForKind kind : {ForKind::Parallel, ForKind::ThreadX, ForKind::BlockX}) {
    Stmt s = loop(k, 64, store(y, {k}, exp(load(x, {0}))), kind);
    EXPECT_TRUE(hoist_invariants(s).same_as(s));
  }
}

TEST(HoistInvariants, MeansTheSame) {
  Buffer x = f32s("x", {8}), y = f32s("y", {8, 8});
  Var m = make_var("m"), k = make_var("k");
  Expr e = load(x, {k}) / sqrt(load(x, {m}) + f32(1)) + load(x, {floor_mod(Expr(m) * 3, 8)});
  Stmt s = loop(m, 8, loop(k, 8, store(y, {m, k}, e)));
  std::vector<float> in(8), a(64), b(64);
  for (size_t i = 0; i < 8; ++i) in[i] = float(i * i) / 3;
  run(s, {{x, reinterpret_cast<uint8_t*>(in.data())}, {y, reinterpret_cast<uint8_t*>(a.data())}});
  run(hoist_invariants(s), {{x, reinterpret_cast<uint8_t*>(in.data())}, {y, reinterpret_cast<uint8_t*>(b.data())}});
  EXPECT_EQ(a, b);
}

}  // namespace
}  // namespace tc::hoist_invariants_test
