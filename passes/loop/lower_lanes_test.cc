#include "passes/loop/lower_lanes.h"

#include <gtest/gtest.h>

#include <cmath>

#include "ir/interpreter.h"
#include "ir/loop/build.h"
#include "ir/loop/print.h"
#include "ir/verify.h"

namespace tc::lower_lanes_test {
namespace {

struct Fixture {
  Buffer x = make_buffer("x", DType::F32, {2, 100}), b = make_buffer("b", DType::F32, {2}),
         y = make_buffer("y", DType::F32, {2, 100});
  Var i = make_var("i"), j = make_var("j");

  Stmt nest(const Expr& value, int64_t n, std::optional<Op> reduce = {}) const {
    return loop(i, 2, loop(j, n, store(y, {i, j}, value, reduce), ForKind::Vector));
  }
  std::vector<float> run_it(const Stmt& s, int vl) const {
    std::vector<float> in(200), bias = {5, -3}, out(200, 1.0f);
    for (size_t k = 0; k < in.size(); k++) in[k] = float(int(k * 7 % 11) - 5);
    verify(s, {x, b, y});
    RunOptions o;
    o.vl = vl;
    run(s,
        {{x, reinterpret_cast<uint8_t*>(in.data())},
         {b, reinterpret_cast<uint8_t*>(bias.data())},
         {y, reinterpret_cast<uint8_t*>(out.data())}},
        o);
    return out;
  }
  void expect_same(const Stmt& s) const {
    for (const int vl : {1, 4, 8, 16}) EXPECT_EQ(run_it(s, 4), run_it(lower_lanes(s), vl)) << vl;
  }
};

TEST(LowerLanes, WholeVectorsAndAPartialOne) {
  const Fixture f;
  const Stmt s = f.nest(load(f.x, {f.i, f.j}) + load(f.b, {f.i}), 100);
  EXPECT_EQ(to_text(lower_lanes(s)),
            "for i in 0 .. +2:\n"
            "  for v in 0 .. +100 / VL:\n"
            "    y[i, (v * VL):VL] = x[i, (v * VL):VL] + all(b[i])\n"
            "  y[i, (100 / VL * VL):VL] = first(100 - 100 / VL * VL, x[i, (100 / VL * VL):VL]) + all(b[i])  "
            "(first 100 - 100 / VL * VL)\n");
  f.expect_same(s);
}

// Masks have lanes of 32 bits: what compares doubles is no vector, what chooses between them for all lanes is one.
TEST(LowerLanes, DoublesHaveLanesButNoMasks) {
  const Var j = make_var("j");
  const Buffer x = make_buffer("x", DType::F64, {64}), y = make_buffer("y", DType::F64, {64}),
               m = make_buffer("m", DType::Bool, {64});
  const auto is_vector = [&](const Expr& value) {
    return to_text(lower_lanes(loop(j, 64, store(y, {j}, value), ForKind::Vector))).find(":VL") != std::string::npos;
  };
  const Expr v = load(x, {j}), none = make_float(DType::F64, 0);
  EXPECT_TRUE(is_vector(max(v, none) * apply(Op::Exp, {v})));
  EXPECT_TRUE(is_vector(select(load(m, {0}), v, none)));
  EXPECT_FALSE(is_vector(select(load(m, {j}), v, none)));
  EXPECT_FALSE(is_vector(select(v < none, none, v)));
  EXPECT_FALSE(is_vector(apply(Op::Erf, {v})));
  EXPECT_FALSE(is_vector(cast(DType::F64, cast(DType::F32, v))));
}

// Bools are masks in registers and bytes in memory.
TEST(LowerLanes, BoolsAreMasks) {
  const Var j = make_var("j");
  const Buffer a = make_buffer("a", DType::F32, {37}), b = make_buffer("b", DType::Bool, {37}),
               y = make_buffer("y", DType::Bool, {37}), f = make_buffer("f", DType::F32, {37});
  std::vector<float> numbers(37), floats(37);
  std::vector<uint8_t> bools(37);
  for (size_t k = 0; k < 37; k++) numbers[k] = k % 7 == 2 ? NAN : float(int(k * 5 % 11) - 4), bools[k] = k % 3 == 0;
  auto bytes_of = [&](const Stmt& s, int vl) {
    std::vector<uint8_t> out(37, 9);
    RunOptions o;
    o.vl = vl;
    run(s,
        {{a, reinterpret_cast<uint8_t*>(numbers.data())},
         {b, bools.data()},
         {y, out.data()},
         {f, reinterpret_cast<uint8_t*>(floats.data())}},
        o);
    return out;
  };
  const Expr v = load(a, {j}), m = load(b, {j}), none = make_float(DType::F32, 0);
  for (const Expr& e : {v > none, apply(Op::And, {m, v <= none}), ne(m, v > none), logical_not(m), cast(DType::Bool, v),
                        select(v > none, m, logical_not(m)), apply(Op::IsNan, {v})}) {
    const Stmt s = loop(j, 37, store(y, {j}, e), ForKind::Vector), lanes = lower_lanes(s);
    EXPECT_NE(to_text(lanes).find(":VL"), std::string::npos) << to_text(lanes);
    for (const int vl : {1, 4, 8, 16}) EXPECT_EQ(bytes_of(s, 4), bytes_of(lanes, vl)) << to_text(e) << ", " << vl;
  }
  const Stmt s = lower_lanes(loop(j, 37, store(f, {j}, cast(DType::F32, m)), ForKind::Vector));
  EXPECT_NE(to_text(s).find(":VL"), std::string::npos) << to_text(s);
  bytes_of(s, 8);
  for (size_t k = 0; k < 37; k++) EXPECT_EQ(floats[k], float(bools[k]));
}

// j <= i ? a : b, as a triangle of a matrix has it, is a loop of a and one of b.
TEST(LowerLanes, StairsAreTwoLoops) {
  const Fixture f;
  const Expr below = load(f.x, {f.i, f.j}), above = load(f.b, {f.i}), row = Expr(f.i) * Expr(40), at = Expr(f.j);
  for (const Expr& c : {at - row <= Expr(3), at<row + Expr(9), at - row >= Expr(0), at> row - Expr(50),
                        row + Expr(60) > at, at - row<Expr(-5), at - row> Expr(200)}) {
    const Stmt s = f.nest(select(c, below, above), 100);
    const std::string text = to_text(lower_lanes(s));
    EXPECT_EQ(text.find("where"), std::string::npos) << text;
    EXPECT_EQ(text.find("vector"), std::string::npos) << text;
    f.expect_same(s);
  }
  EXPECT_EQ(to_text(lower_lanes(f.nest(select(at < Expr(64), below, above), 100))).find("where"), std::string::npos);
}

// What is the same in all lanes is stored from a whole vector on, before what replaces its first lanes.
TEST(LowerLanes, BehindAStairNoVectorLiesAcrossTwo) {
  const Fixture f;
  const Expr end = Expr(f.i) * Expr(40) + Expr(3), zero = make_float(DType::F32, 0);
  EXPECT_EQ(to_text(lower_lanes(f.nest(select(Expr(f.j) < end, load(f.x, {f.i, f.j}), zero), 96))),
            "for i in 0 .. +2:\n"
            "  for v in (i * 40 + 3) / VL .. +96 / VL - (i * 40 + 3) / VL:\n"
            "    y[i, (v * VL):VL] = all(0.0f)\n"
            "  for v_2 in 0 .. +(i * 40 + 3) / VL:\n"
            "    y[i, (v_2 * VL):VL] = x[i, (v_2 * VL):VL]\n"
            "  if (i * 40 + 3) / VL * VL < i * 40 + 3:\n"
            "    y[i, ((i * 40 + 3) / VL * VL):VL] = first(i * 40 + 3 - (i * 40 + 3) / VL * VL, "
            "x[i, ((i * 40 + 3) / VL * VL):VL])  (first i * 40 + 3 - (i * 40 + 3) / VL * VL)\n");
  for (const int64_t n : {96, 100}) {
    f.expect_same(f.nest(select(Expr(f.j) < end, load(f.x, {f.i, f.j}), zero), n));
    f.expect_same(f.nest(select(Expr(f.j) < end, load(f.y, {f.i, f.j}) * load(f.x, {f.i, f.j}), zero), n));
    f.expect_same(f.nest(select(Expr(f.j) < end, load(f.x, {f.i, f.j}), load(f.b, {f.i})), n, Op::Add));
  }
}

TEST(LowerLanes, MultiplesNeedNoPartialVector) {
  const Fixture f;
  const Stmt s = f.nest(load(f.x, {f.i, f.j}), 96);
  EXPECT_EQ(to_text(lower_lanes(s)),
            "for i in 0 .. +2:\n"
            "  for v in 0 .. +96 / VL:\n"
            "    y[i, (v * VL):VL] = x[i, (v * VL):VL]\n");
  f.expect_same(s);
}

TEST(LowerLanes, JoinsReadWhatIsThere) {
  const Fixture f;
  f.expect_same(f.nest(max(load(f.x, {f.i, f.j}), load(f.x, {0, f.j})), 99, Op::Add));
}

// alloc acc; acc = 0; for k in 0 .. +i: acc += x[0, j] * b[1]; y[i, j] = acc + x[i, j]
Stmt sum_of(const Fixture& f, const Buffer& acc, int64_t n, const Expr& steps) {
  const Var k = make_var("k");
  const Stmt body = alloc(acc, seq({store(acc, {}, make_float(DType::F32, 0)),
                                    loop(k, steps, store(acc, {}, load(f.x, {0, f.j}) * load(f.b, {1}), Op::Add)),
                                    store(f.y, {f.i, f.j}, load(acc, {}) + load(f.x, {f.i, f.j}))}));
  return loop(f.i, 2, loop(f.j, n, body, ForKind::Vector));
}

TEST(LowerLanes, WhatAnIterationHasForItselfBecomesAVector) {
  const Fixture f;
  const Buffer acc = make_buffer("acc", DType::F32, {}, Scope::Register);
  const Stmt s = sum_of(f, acc, 32, Expr(f.i) + Expr(2));
  EXPECT_EQ(to_text(lower_lanes(s)),
            "for i in 0 .. +2:\n"
            "  for v in 0 .. +32 / VL:\n"
            "    alloc acc: f32[16] register\n"
            "    acc[0:VL] = all(0.0f)\n"
            "    for k in 0 .. +i + 2:\n"
            "      acc[0:VL] = acc[0:VL] + x[0, (v * VL):VL] * all(b[1])\n"
            "    y[i, (v * VL):VL] = acc[0:VL] + x[i, (v * VL):VL]\n");
  for (const int64_t n : {8, 17, 32, 100}) f.expect_same(sum_of(f, acc, n, Expr(f.i) + Expr(2)));
}

TEST(LowerLanes, BoundsThatDifferFromLaneToLaneStay) {
  const Fixture f;
  const Buffer acc = make_buffer("acc", DType::F32, {}, Scope::Register);
  const Stmt s = sum_of(f, acc, 32, floor_mod(Expr(f.j), Expr(3)));
  EXPECT_EQ(to_text(lower_lanes(s)).find("VL"), std::string::npos);
  f.expect_same(s);
}

// for t in 0 .. +7: vector u in 0 .. +16: if t * 16 + u < n: y[0, t * 16 + u] = x[1, t * 16 + u]
Stmt tiled(const Fixture& f, int64_t n, ForKind outer = ForKind::Serial) {
  const Var t = make_var("t"), u = make_var("u");
  const Expr j = Expr(t) * Expr(16) + Expr(u);
  const Stmt body = if_then(j < Expr(n), store(f.y, {0, j}, load(f.x, {1, j})));
  return loop(t, (n + 15) / 16, loop(u, 16, body, ForKind::Vector), outer);
}

TEST(LowerLanes, AConditionEndsTheLoop) {
  const Fixture f;
  EXPECT_EQ(to_text(lower_lanes(tiled(f, 100))),
            "for t in 0 .. +6:\n"
            "  for v in 0 .. +16 / VL:\n"
            "    y[0, (t * 16 + v * VL):VL] = x[1, (t * 16 + v * VL):VL]\n"
            "for u in 0 .. +4:\n"
            "  y[0, u + 96] = x[1, u + 96]\n");
  for (const int64_t n : {1, 9, 16, 17, 31, 96, 100}) f.expect_same(tiled(f, n));
  // Chunks are not cut: the last one has fewer lanes.
  for (const int64_t n : {9, 17, 31, 100}) {
    EXPECT_NE(to_text(lower_lanes(tiled(f, n, ForKind::Parallel))).find("(first "), std::string::npos);
    f.expect_same(tiled(f, n, ForKind::Parallel));
  }
}

TEST(LowerLanes, OtherConditionsStay) {
  const Fixture f;
  auto nest = [&](const Expr& condition) {
    return loop(f.i, 2,
                loop(f.j, 32, if_then(condition, store(f.y, {f.i, f.j}, load(f.x, {1, f.j}))), ForKind::Vector));
  };
  const Expr scalar[] = {Expr(5) < Expr(f.j), Expr(f.j) * Expr(2) < Expr(31), floor_mod(Expr(f.j), Expr(3)) < Expr(1),
                         Expr(f.j) < Expr(f.j)};
  for (const Expr& c : scalar) {
    EXPECT_EQ(to_text(lower_lanes(nest(c))).find("VL"), std::string::npos) << to_text(c);
    f.expect_same(nest(c));
  }
  const Expr vectors[] = {Expr(f.i) < Expr(1),
                          Expr(f.j) < Expr(20),
                          Expr(f.j) <= Expr(20),
                          Expr(20) > Expr(f.j),
                          Expr(f.j) + Expr(f.i) < Expr(0),
                          apply(Op::And, {Expr(f.i) < Expr(1), Expr(f.j) < Expr(9)})};
  for (const Expr& c : vectors) {
    EXPECT_EQ(to_text(lower_lanes(nest(c))).find("vector"), std::string::npos) << to_text(c);
    f.expect_same(nest(c));
  }
}

// Registers that several loops share: acc[20] = x; y = acc + 1.
TEST(LowerLanes, RegistersHaveRoomForWholeVectors) {
  const Fixture f;
  const Buffer acc = make_buffer("acc", DType::F32, {20}, Scope::Register);
  const Var k = make_var("k");
  auto nest = [&](ForKind second) {
    return loop(f.i, 2,
                alloc(acc, seq({loop(f.j, 20, store(acc, {f.j}, load(f.x, {f.i, f.j})), ForKind::Vector),
                                loop(k, 20, store(f.y, {f.i, k}, load(acc, {k}) + load(f.b, {1})), second)})));
  };
  EXPECT_NE(to_text(lower_lanes(nest(ForKind::Vector))).find("alloc acc: f32[32] register"), std::string::npos)
      << to_text(lower_lanes(nest(ForKind::Vector)));
  EXPECT_NE(to_text(lower_lanes(nest(ForKind::Serial))).find("alloc acc: f32[32] stack"), std::string::npos);
  f.expect_same(nest(ForKind::Vector));
  f.expect_same(nest(ForKind::Serial));
}

// part[16] joins 10 elements a row, the last of them partial vectors; all 16 are read: those behind the tenth stay 0, not exp(0).
TEST(LowerLanes, RegistersKeepLanesThatAPartialVectorLacks) {
  const Fixture f;
  const Buffer part = make_buffer("part", DType::F32, {16}, Scope::Register);
  const Var p = make_var("p"), k = make_var("k");
  for (const ForKind last : {ForKind::Serial, ForKind::Vector})
    for (const int64_t rows : {1, 2}) {
      const Stmt sums =
          loop(f.j, 10, store(part, {f.j}, apply(Op::Exp, {load(f.x, {f.i, f.j})}), Op::Add), ForKind::Vector);
      const Stmt more =
          loop(f.j, 16, store(part, {f.j}, apply(Op::Exp, {load(f.x, {f.i, f.j})}), Op::Add), ForKind::Vector);
      const Stmt s = loop(
          f.i, 2,
          alloc(part,
                seq({loop(p, 16, store(part, {p}, Expr(make_float(DType::F32, 0))), ForKind::Vector),
                     rows == 1 ? sums : seq({more, sums}), loop(k, 16, store(f.y, {f.i, k}, load(part, {k})), last)})));
      f.expect_same(s);
    }
}

TEST(LowerLanes, OtherFormsBecomePlainLoops) {
  const Fixture f;
  const Stmt plain[] = {
      f.nest(load(f.x, {f.i, f.j}), 7),                                        // short
      f.nest(load(f.x, {f.i, Expr(99) - Expr(f.j)}), 100),                     // backwards
      f.nest(cast(DType::F32, Expr(f.j)), 100),                                // the index as a value
      loop(f.i, 2, store(f.y, {f.i, f.i}, load(f.b, {f.i})), ForKind::Vector)  // a diagonal
  };
  for (const Stmt& s : plain) {
    EXPECT_EQ(to_text(lower_lanes(s)).find("VL"), std::string::npos) << to_text(s);
    EXPECT_EQ(to_text(lower_lanes(s)).find("vector"), std::string::npos) << to_text(s);
    f.expect_same(s);
  }
}

}  // namespace
}  // namespace tc::lower_lanes_test
