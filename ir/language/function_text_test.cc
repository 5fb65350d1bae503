#include "ir/language/function_text.h"

#include <gtest/gtest.h>

#include <cmath>

#include "ir/identity.h"
#include "ir/language/test_round_trip.h"
#include "ir/loop/build.h"

namespace tc::language::function_text_test {
namespace {

/// y[i] = f(x[i])
TensorFn pointwise(DType from, DType to, const std::function<Expr(const Expr& x, const Expr& i)>& f) {
  const Buffer x = make_buffer("x", from, {Dim(4)}), y = make_buffer("y", to, {Dim(4)});
  Stage s;
  s.name = "stage";
  const Var i = make_var("i");
  s.axes = {{i, Dim(4)}};
  s.values = {f(load(x, {Expr(i)}), Expr(i))};
  s.outputs = {y};
  return {{x}, {s}, {y}, {}};
}

std::string reason(const TensorFn& fn) { return function_text(fn).why_not; }

TEST(FunctionText, SaysEverything) {
  const TensorFn fn = pointwise(DType::F32, DType::F32, [](const Expr& x, const Expr& i) {
    return select(i < Expr(2), x * make_float(DType::F32, double(0.1f)), make_float(DType::F32, -0.0)) +
           cast(DType::F32, i);
  });
  EXPECT_EQ(function_text(fn, "g").text,
            "fn g(x: f32[4]) -> y: f32[4]\n"
            "  y: f32[i: 4] as stage = where(i < 2, x[i] * 0.1, -0.0) + f32(i)\n");
  testing::expect_round_trip(fn);
}

TEST(FunctionText, KeepsTheBitsOfConstants) {
  for (const double v : {0.1, 1e300, 5e-324, -0.0, double(INFINITY), -double(INFINITY), std::nan("")})
    testing::expect_round_trip(
        pointwise(DType::F64, DType::F64, [&](const Expr& x, const Expr&) { return x + make_float(DType::F64, v); }));
  for (const DType t : {DType::I64, DType::U64, DType::I8, DType::U32})
    for (const Expr& end : {lowest(t), highest(t), make_int(t, 7)})
      testing::expect_round_trip(pointwise(t, t, [&](const Expr& x, const Expr&) { return max(x, end); }));
}

TEST(FunctionText, TellsTensorsOfOneNameApart) {
  const Buffer a = make_buffer("b", DType::F32, {}), b = make_buffer("b", DType::F32, {});
  Stage s;
  s.name = "b";
  s.values = {load(a, {}) - load(b, {})};
  s.outputs = {make_buffer("b", DType::F32, {})};
  const TensorFn fn{{a, b}, {s}, {s.outputs[0], a}, {4, 2}};
  EXPECT_EQ(function_text(fn).text,
            "fn f(b @ 4: f32[], b~2 @ 2: f32[]) -> b~3: f32[], b: f32[]\n  b~3: f32[] = b[] - b~2[]\n");
  testing::expect_round_trip(fn);
}

TEST(FunctionText, SaysWhatItCannotSay) {
  TensorFn nest = pointwise(DType::F32, DType::F32, [](const Expr& x, const Expr&) { return x; });
  nest.stages[0].kind = Stage::Kind::Nest;
  EXPECT_EQ(reason(nest), "stage stage is made of loops and of formulas");
  EXPECT_EQ(reason(pointwise(DType::C64, DType::C64, [](const Expr& x, const Expr&) { return x; })),
            "there are no formulas of " + std::string(info(DType::C64).name));
  EXPECT_EQ(reason(pointwise(DType::F32, DType::F32,
                             [](const Expr& x, const Expr&) { return x + make_float(DType::F32, 0.1); })),
            "a number that its type does not have");
  TensorFn named = pointwise(DType::F32, DType::F32, [](const Expr& x, const Expr&) { return x; });
  named.stages[0].name = "two words";
  EXPECT_EQ(reason(named), "\"two words\" is no name");
}

TEST(FunctionText, MistakesOfAFunction) {
  const auto first = [](const std::string& text) {
    Problems problems;
    EXPECT_FALSE(parse_function(text, problems).has_value());
    return problems.empty() ? "" : problems[0].message;
  };
  EXPECT_EQ(first(""), "one fn is needed");
  EXPECT_EQ(first("op a.B(x: f32[2]) -> y: f32[2]\n y[i] = x[i]"), "a fn is needed, without types and attributes");
  EXPECT_EQ(first("fn f(x @ 1: f32[2], z: f32[2]) -> y: f32[2]\n y[i] = x[i] + z[i]"),
            "'@' stands at all operands or at none");
  EXPECT_EQ(first("fn f(x: i32[2]) -> y: f32[2]\n y[i] = x[i]"), "this is i32, but f32 is needed; f32(...) converts");
  EXPECT_EQ(first("fn f(x: f32[2], i: i32[2]) -> y: f32[2]\n y[j] = x[i[j]]"),
            "this is i32, but i64 is needed; i64(...) converts");
}

}  // namespace
}  // namespace tc::language::function_text_test
