#include "passes/loop/common_subexpr.h"

#include <gtest/gtest.h>

#include "ir/interpreter.h"
#include "ir/loop/build.h"
#include "ir/loop/print.h"
#include "ir/verify.h"

namespace tc::common_subexpr_test {
namespace {

Buffer f32s(const char* name, int64_t n = 16) { return make_buffer(name, DType::F32, {Dim(n)}); }
Expr f32(double v) { return make_float(DType::F32, v); }
Expr sigmoid(Expr e) { return apply(Op::Sigmoid, {e}); }

// The pass verifies and means the same; returns its text.
std::string text(const Stmt& s, const std::vector<Buffer>& buffers) {
  Stmt r = common_subexpr(s);
  verify(r, buffers);
  std::vector<std::vector<float>> a, b;
  for (const Buffer& x : buffers) {
    std::vector<float> v(size_t(x->shape[0].value));
    for (size_t i = 0; i < v.size(); ++i) v[i] = float(i) / 3 - 1;
    a.push_back(v), b.push_back(v);
  }
  auto bind = [&](std::vector<std::vector<float>>& data) {
    std::vector<Binding> l;
    for (size_t i = 0; i < buffers.size(); ++i) l.push_back({buffers[i], reinterpret_cast<uint8_t*>(data[i].data())});
    return l;
  };
  run(s, bind(a));
  run(r, bind(b));
  EXPECT_EQ(a, b);
  return to_text(r);
}

TEST(CommonSubexpr, OneLoadOneName) {
  Buffer x = f32s("x"), y = f32s("y");
  Var i = make_var("i");
  EXPECT_EQ(text(loop(i, 16, store(y, {i}, load(x, {i}) * sigmoid(load(x, {i})))), {x, y}),
            "for i in 0 .. +16:\n"
            "  let x_v = x[i]\n"
            "  y[i] = x_v * sigmoid(x_v)\n");
}

TEST(CommonSubexpr, OperandsFirstAndSharedNodes) {
  Buffer x = f32s("x"), y = f32s("y");
  Var i = make_var("i");
  Expr s = load(x, {i}) + f32(1);  // one node, used three times
  Expr e = exp(s);
  EXPECT_EQ(text(loop(i, 16, store(y, {i}, (e - s) / (e + s))), {x, y}),
            "for i in 0 .. +16:\n"
            "  let sum = x[i] + 1.0f\n"
            "  let exp_v = exp(sum)\n"
            "  y[i] = (exp_v - sum) / (exp_v + sum)\n");
}

TEST(CommonSubexpr, AcrossStatementsUntilAStore) {
  Buffer x = f32s("x"), y = f32s("y"), z = f32s("z");
  Var i = make_var("i");
  Expr v = load(x, {i}) * f32(2);
  Stmt s = loop(i, 15, seq({store(y, {i}, v), store(z, {i}, v), store(x, {i}, f32(0)), store(z, {Expr(i) + 1}, v)}));
  EXPECT_EQ(text(s, {x, y, z}),
            "for i in 0 .. +15:\n"
            "  let prod = x[i] * 2.0f\n"
            "  y[i] = prod\n"
            "  z[i] = prod\n"
            "  x[i] = 0.0f\n"
            "  z[i + 1] = x[i] * 2.0f\n");
}

TEST(CommonSubexpr, LoadsOfUntakenSidesStay) {
  Buffer x = f32s("x", 8), y = f32s("y");
  Var i = make_var("i");
  Expr v = load(x, {i});
  Stmt s = loop(i, 16, store(y, {i}, select(Expr(i) < 8, v * v, f32(0))));
  EXPECT_EQ(text(s, {x, y}), to_text(s));
  // evaluated for sure elsewhere: bound
  s = loop(i, 8, store(y, {i}, select(load(x, {i}) < f32(0), load(x, {i}) * f32(0.5), load(x, {i}))));
  EXPECT_EQ(text(s, {x, y}),
            "for i in 0 .. +8:\n"
            "  let x_v = x[i]\n"
            "  y[i] = select(x_v < 0.0f, x_v * 0.5f, x_v)\n");
}

TEST(CommonSubexpr, UsesLetsThatAreThere) {
  Buffer x = f32s("x"), y = f32s("y");
  Var i = make_var("i"), v = make_var("v", DType::F32);
  Expr e = exp(load(x, {i}));
  EXPECT_EQ(text(loop(i, 16, let(v, e, store(y, {i}, Expr(v) * e))), {x, y}),
            "for i in 0 .. +16:\n"
            "  let v = exp(x[i])\n"
            "  y[i] = v * v\n");
}

TEST(CommonSubexpr, AffineIndicesStay) {
  Buffer x = f32s("x", 64), y = f32s("y", 64);
  Var i = make_var("i");
  Expr at = Expr(i) * 4 + 3;
  Stmt s = loop(i, 15, store(y, {at}, load(x, {at})));
  EXPECT_TRUE(common_subexpr(s).same_as(s));
}

TEST(CommonSubexpr, IndicesWithDivisionsGetNames) {
  Buffer x = f32s("x", 10), y = f32s("y", 10);
  Expr whole = floor_div(10, lanes()) * lanes(), left = Expr(10) - whole;
  EXPECT_EQ(text(store(y, {ramp(whole)}, partial(load(x, {ramp(whole)}), left), std::nullopt, left), {x, y}),
            "let whole = floor_div(10, VL) * VL\n"
            "let left = 10 - whole\n"
            "y[whole:VL] = first(left, x[whole:VL])  (first left)\n");
}

TEST(CommonSubexpr, WhatIsTestedGetsAName) {
  Buffer x = f32s("x", 16), y = f32s("y", 16);
  Var oh = make_var("oh");
  Expr at = Expr(oh) - 1;
  EXPECT_EQ(text(loop(oh, 16, store(y, {oh}, select((at >= 0) && (at < 15), load(x, {at}), f32(0)))), {x, y}),
            "for oh in 0 .. +16:\n"
            "  let ih = oh - 1\n"
            "  y[oh] = select(ih >= 0 && ih < 15, x[ih], 0.0f)\n");
}

TEST(CommonSubexpr, Vectors) {
  Buffer x = f32s("x"), y = f32s("y");
  Var i = make_var("i");
  Expr v = load(x, {ramp(Expr(i) * lanes())});
  EXPECT_EQ(text(loop(i, 4, store(y, {ramp(Expr(i) * lanes())}, v * sigmoid(v))), {x, y}),
            "for i in 0 .. +4:\n"
            "  let x_v = x[(i * VL):VL]\n"
            "  y[(i * VL):VL] = x_v * sigmoid(x_v)\n");
}

}  // namespace
}  // namespace tc::common_subexpr_test
