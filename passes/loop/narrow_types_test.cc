#include "passes/loop/narrow_types.h"

#include <gtest/gtest.h>

#include "ir/interpreter.h"
#include "ir/loop/build.h"
#include "ir/loop/print.h"
#include "ir/verify.h"

namespace tc::narrow_types_test {
namespace {

Buffer buffer(const char* name, DType t, int64_t n) { return make_buffer(name, t, {Dim(n)}); }

TEST(NarrowTypes, LoadsWidenAndStoresRound) {
  Buffer x = buffer("x", DType::F16, 8), y = buffer("y", DType::F16, 8);
  Var i = make_var("i"), v = make_var("v", DType::F16);
  Expr e(v);
  Stmt s = loop(i, 8, let(v, load(x, {i}), store(y, {i}, max(e * make_float(DType::F16, 0.5) + e, zero(DType::F16)))));
  Stmt r = lower_narrow_types(s);
  EXPECT_EQ(to_text(r),
            "for i in 0 .. +8:\n"
            "  let v = f32(x[i])\n"
            "  y[i] = f16(max(v * 0.5f + v, 0.0f))\n");
  verify(r, {x, y});
}

TEST(NarrowTypes, PartsOfALoopShareTheirVariables) {
  Buffer x = buffer("x", DType::F16, 8), y = buffer("y", DType::F16, 8);
  Var i = make_var("i"), v = make_var("v", DType::F16);
  const Stmt body = let(v, load(x, {i}), store(y, {i}, Expr(v) + Expr(v)));
  const Stmt r = lower_narrow_types(seq({loop(i, 4, body), loop(i, 4, body, ForKind::Serial, 4)}));
  EXPECT_EQ(to_text(r),
            "for i in 0 .. +4:\n"
            "  let v = f32(x[i])\n"
            "  y[i] = f16(v + v)\n"
            "for i in 4 .. +4:\n"
            "  let v = f32(x[i])\n"
            "  y[i] = f16(v + v)\n");
  verify(r, {x, y});
}

TEST(NarrowTypes, SumsCastsAndCopies) {
  Buffer x = buffer("x", DType::BF16, 8), y = buffer("y", DType::BF16, 8), z = buffer("z", DType::F32, 8);
  Stmt s = seq({store(y, {0}, load(x, {0}), Op::Add), store(y, {1}, load(x, {1})),
                store(z, {2}, cast(DType::F32, cast(DType::BF16, load(z, {3})))),
                store(y, {3}, cast(DType::BF16, load(z, {1}))), store(z, {4}, cast(DType::F32, load(x, {2})))});
  Stmt r = lower_narrow_types(s);
  EXPECT_EQ(to_text(r),
            "y[0] = bf16(f32(y[0]) + f32(x[0]))\n"
            "y[1] = x[1]\n"
            "z[2] = f32(bf16(z[3]))\n"
            "y[3] = bf16(z[1])\n"
            "z[4] = f32(x[2])\n");
  verify(r, {x, y, z});
}

TEST(NarrowTypes, SmallIntegersWrap) {
  Buffer x = buffer("x", DType::I4, 8), y = buffer("y", DType::I4, 8);
  Stmt s = store(y, {0}, load(x, {0}) + load(x, {1}) * make_int(DType::I4, 3));
  Stmt r = lower_narrow_types(s);
  EXPECT_EQ(to_text(r), "y[0] = i4(i32(x[0]) + i32(i4(i32(x[1]) * i32(3))))\n");
  int8_t in[8] = {7, 5, 0, 0, 0, 0, 0, 0}, a[8] = {}, b[8] = {};
  run(s, {{x, reinterpret_cast<uint8_t*>(in)}, {y, reinterpret_cast<uint8_t*>(a)}});
  run(r, {{x, reinterpret_cast<uint8_t*>(in)}, {y, reinterpret_cast<uint8_t*>(b)}});
  EXPECT_EQ(a[0], 6);  // 15 wraps to -1, 7 - 1
  EXPECT_EQ(b[0], 6);
}

TEST(NarrowTypes, MeansTheSameToTheInterpreter) {
  Buffer x = buffer("x", DType::F16, 64), y = buffer("y", DType::F16, 64);
  Var i = make_var("i");
  Expr v = load(x, {i});
  Stmt s = loop(i, 64, store(y, {i}, select(v < zero(DType::F16), exp(v) - make_float(DType::F16, 1), v * v)));
  std::vector<uint16_t> in(64), a(64), b(64);
  for (size_t k = 0; k < 64; ++k) in[k] = double_to_narrow_float(DType::F16, (double(k) - 32) / 7);
  run(s, {{x, reinterpret_cast<uint8_t*>(in.data())}, {y, reinterpret_cast<uint8_t*>(a.data())}});
  run(lower_narrow_types(s), {{x, reinterpret_cast<uint8_t*>(in.data())}, {y, reinterpret_cast<uint8_t*>(b.data())}});
  EXPECT_EQ(a, b);
}

TEST(NarrowTypes, LeavesTheRestAlone) {
  Buffer x = buffer("x", DType::F32, 8), y = buffer("y", DType::F32, 8);
  Var i = make_var("i");
  Stmt s = loop(i, 8, store(y, {i}, load(x, {i}) + load(x, {0})));
  EXPECT_TRUE(lower_narrow_types(s).same_as(s));
}

}  // namespace
}  // namespace tc::narrow_types_test
