#include "ir/loop/simplify.h"

#include <gtest/gtest.h>

#include "ir/loop/build.h"
#include "ir/loop/print.h"
#include "ir/loop/visit.h"

namespace tc::simplify_test {
namespace {

// Variables with ranges, and the text of what simplify makes of an expression.
struct Scope1 {
  Ranges ranges;
  Var var(const std::string& name, int64_t min, int64_t max) {
    Var v = make_var(name);
    ranges[v.get()] = {min, max};
    return v;
  }
  std::string text(const Expr& e) const { return to_text(simplify(e, ranges)); }
};

TEST(Simplify, CollectsTermsInOrderOfAppearance) {
  Scope1 s;
  Var i = s.var("i", 0, 9), j = s.var("j", 0, 9);
  EXPECT_EQ(s.text((Expr(i) + 1) * 4 + Expr(j) - 4 + Expr(i)), "i * 5 + j");
  EXPECT_EQ(s.text(Expr(j) - Expr(i) - Expr(j) + 3), "3 - i");
  EXPECT_EQ(s.text(Expr(i) - Expr(i)), "0");
  EXPECT_EQ(s.text(-(Expr(i) - Expr(j)) - 2), "j - i - 2");
}

TEST(Simplify, ConvertsConstantsThatTheTypeHas) {
  Scope1 s;
  const Expr byte = make_int(DType::I8, -3), large = make_int(DType::I64, (int64_t(1) << 24) + 1);
  EXPECT_EQ(s.text(cast(DType::F32, byte)), s.text(make_float(DType::F32, -3)));
  EXPECT_EQ(s.text(cast(DType::I32, byte)), s.text(make_int(DType::I32, -3)));
  for (const DType t : {DType::F32, DType::F16, DType::U8}) {
    const Expr e = cast(t, large);
    EXPECT_TRUE(simplify(e, s.ranges).same_as(e)) << info(t).name;
  }
}

TEST(Cast, TakesNoDetourThroughBytesThatChangesNothing) {
  const Expr x = load(make_buffer("x", DType::F32, {}, Scope::Register), {});
  const auto f32 = [](double v) { return make_float(DType::F32, v); };
  const auto clamped = [&](const Expr& v, double low, double high) {
    return min(select(v > f32(low), v, f32(low)), f32(high));
  };
  const Expr whole = apply(Op::Round, {x}) + f32(3), byte = clamped(whole, 0, 255),
             signed_byte = clamped(whole, -128, 127);
  const auto detour = [](DType t, const Expr& v) { return cast(DType::F32, cast(DType::I32, cast(t, v))); };
  EXPECT_TRUE(detour(DType::U8, byte).same_as(byte));
  EXPECT_TRUE(structurally_equal(detour(DType::I8, signed_byte), signed_byte + f32(0)));
  const Expr taken = cast(DType::I32, cast(DType::U8, byte)) - cast(DType::I32, make_int(DType::U8, 7));
  EXPECT_TRUE(structurally_equal(cast(DType::F32, taken), byte - f32(7)));
  // One thing more each: a fraction, a range that the type lacks, no lower bound, no upper one, another type.
  const auto stays = [&](DType t, const Expr& v) { return as<Cast>(detour(t, v)) != nullptr; };
  EXPECT_TRUE(stays(DType::U8, clamped(x, 0, 255)));
  EXPECT_TRUE(stays(DType::U8, clamped(whole + f32(0.5), 0, 255)));
  EXPECT_TRUE(stays(DType::U8, clamped(whole, 0.5, 255)));
  EXPECT_TRUE(stays(DType::I8, byte));
  EXPECT_TRUE(stays(DType::U8, signed_byte));
  EXPECT_TRUE(stays(DType::U8, min(whole, f32(255))));
  EXPECT_TRUE(stays(DType::U8, select(whole > f32(0), whole, f32(0))));
  EXPECT_TRUE(stays(DType::U8, min(select(whole > f32(1), whole, f32(0)), f32(255))));
}

TEST(Simplify, KeepsTheNodeWhenNothingChanges) {
  Scope1 s;
  Var i = s.var("i", 0, 9), j = s.var("j", 0, 9);
  Expr e = Expr(i) * 5 + Expr(j);
  EXPECT_TRUE(simplify(e, s.ranges).same_as(e));
}

TEST(Simplify, DividesAffineForms) {
  Scope1 s;
  Var i = s.var("i", 0, 99), j = s.var("j", 0, 11), k = s.var("k", 0, 63);
  Expr e = Expr(i) * 12 + Expr(j);
  EXPECT_EQ(s.text(floor_div(e, 12)), "i");
  EXPECT_EQ(s.text(floor_mod(e, 12)), "j");
  EXPECT_EQ(s.text(floor_div(e + 12, 12)), "i + 1");
  EXPECT_EQ(s.text(floor_div(e + 1, 12)), "i + floor_div(j + 1, 12)");
  EXPECT_EQ(s.text(floor_div(Expr(i) * 64 + Expr(k), 768)), "floor_div(i, 12)");
  EXPECT_EQ(s.text(floor_mod(Expr(i) * 64 + Expr(k), 768)), "floor_mod(i, 12) * 64 + k");
  EXPECT_EQ(s.text(floor_mod(Expr(j) - 12, 12)), "j");
  EXPECT_EQ(s.text(floor_div(Expr(j) - 12, 12)), "-1");
}

TEST(Simplify, NestsAndRecombinesDivisions) {
  Scope1 s;
  Var x = s.var("x", 0, 100000);
  Expr e(x);
  EXPECT_EQ(s.text(floor_div(floor_div(e, 4), 3)), "floor_div(x, 12)");
  EXPECT_EQ(s.text(floor_mod(floor_mod(e, 12), 4)), "floor_mod(x, 4)");
  EXPECT_EQ(s.text(floor_div(e, 12) * 12 + floor_mod(e, 12)), "x");
  EXPECT_EQ(s.text(floor_mod(e, 12) * 5 + floor_div(e, 12) * 60 + 7), "x * 5 + 7");
  EXPECT_EQ(s.text(floor_mod(floor_div(e, 64), 12) * 64 + floor_mod(e, 64)), "floor_mod(x, 768)");
  EXPECT_EQ(s.text(floor_div(floor_mod(e, 768), 64)), "floor_mod(floor_div(x, 64), 12)");
  EXPECT_EQ(s.text((e * 3) / 3), "x");
}

// The value of a one-variable-at-a-time substitution, by folding.
int64_t value(Expr e, const std::vector<Var>& vars, const std::vector<int64_t>& at) {
  VarMap m;
  for (size_t i = 0; i < vars.size(); ++i) m[vars[i].get()] = Expr(at[i]);
  return as_const_int(substitute(e, m)).value();
}

TEST(Simplify, DivisionsKeepTheirValuesOnNegativeNumbersToo) {
  Scope1 s;
  std::vector<Var> v = {s.var("a", -7, 7), s.var("b", -3, 5)};
  int64_t multipliers[] = {-6, -4, -1, 1, 2, 3, 4, 6, 12};
  for (int64_t p : multipliers) {
    for (int64_t q : multipliers) {
      for (int64_t c : {2, 3, 4, 6, 12}) {
        Expr l = Expr(v[0]) * p + Expr(v[1]) * q + 5;
        Expr d = floor_div(l, c), m = floor_mod(l, c);
        for (Expr e : {d, m, floor_div(d, 2), floor_mod(m, 2), d * c + m, floor_mod(d, 3) * c + m, floor_div(m, 2)}) {
          Expr r = simplify(e, s.ranges);
          for (int64_t a = -7; a <= 7; ++a)
            for (int64_t b = -3; b <= 5; ++b) ASSERT_EQ(value(r, v, {a, b}), value(e, v, {a, b})) << to_text(e);
        }
      }
    }
  }
}

Expr flat(const Exprs& index, const std::vector<int64_t>& dims) {
  Expr e = 0;
  for (size_t i = 0; i < dims.size(); ++i) e = e * Expr(dims[i]) + index[i];
  return e;
}

Exprs unflatten(Expr e, const std::vector<int64_t>& dims) {
  Exprs index(dims.size());
  for (size_t i = dims.size(); i-- > 0;) {
    index[i] = i == 0 ? e : floor_mod(e, Expr(dims[i]));
    e = floor_div(e, Expr(dims[i]));
  }
  return index;
}

TEST(Simplify, ThePartsOfAThreadsNumberMakeItUp) {
  // A block of 256 threads shares factors with some axes and none with others.
  Scope1 s;
  const int64_t sizes[] = {2, 3, 4, 5, 6, 7, 8, 10, 12, 16, 24, 32, 48, 100};
  const Var block = s.var("block", 0, 9);
  for (int64_t threads : {64, 96, 256})
    for (int64_t m : sizes)
      for (int64_t n : sizes) {
        const Var thread = s.var("thread", 0, threads - 1);
        const Expr i = Expr(block) * Expr(threads) + Expr(thread);
        const Exprs parts = {floor_div(i, m * n), floor_mod(floor_div(i, n), m), floor_mod(i, n)};
        EXPECT_EQ(s.text(flat(parts, {10 * threads, m, n})), to_text(i)) << m << " x " << n;
      }
}

TEST(Simplify, ReshapesAndTransposesComeOutAffine) {
  // [128, 768] -> [128, 12, 64] -> transpose -> [12, 128, 64] -> [1536, 64]
  Scope1 s;
  Var h = s.var("h", 0, 11), m = s.var("m", 0, 127), d = s.var("d", 0, 63);
  Exprs heads = unflatten(flat({m, h, d}, {128, 12, 64}), {128, 768});
  EXPECT_EQ(s.text(heads[0]), "m");
  EXPECT_EQ(s.text(heads[1]), "h * 64 + d");
  // and back: [12, 128, 64] read through [128, 768] of (m, c)
  Var c = s.var("c", 0, 767);
  Exprs back = unflatten(flat({m, c}, {128, 768}), {128, 12, 64});
  EXPECT_EQ(s.text(back[0]), "m");
  EXPECT_EQ(s.text(back[1]), "floor_div(c, 64)");
  EXPECT_EQ(s.text(back[2]), "floor_mod(c, 64)");
  // there and back again is the identity
  Exprs there = unflatten(flat(back, {128, 12, 64}), {128, 768});
  EXPECT_EQ(s.text(there[0]), "m");
  EXPECT_EQ(s.text(there[1]), "c");
  // through one flat axis and a third shape
  Exprs odd = unflatten(flat(unflatten(flat({m, h, d}, {128, 12, 64}), {64, 1536}), {64, 1536}), {128, 12, 64});
  EXPECT_EQ(s.text(odd[0]), "m");
  EXPECT_EQ(s.text(odd[1]), "h");
  EXPECT_EQ(s.text(odd[2]), "d");
}

TEST(Simplify, RangesDecideComparisonsAndBounds) {
  Scope1 s;
  Var i = s.var("i", 0, 9), j = s.var("j", 0, 3);
  EXPECT_EQ(s.text(Expr(i) < 10), "true");
  EXPECT_EQ(s.text(Expr(i) * 4 + Expr(j) >= 40), "false");
  EXPECT_EQ(s.text(eq(Expr(i) * 2, 5)), "false");
  EXPECT_EQ(s.text(Expr(i) * 4 < 13), "i < 4");
  EXPECT_EQ(s.text(Expr(5) > Expr(i)), "i < 5");
  EXPECT_EQ(s.text(Expr(i) + Expr(j) < Expr(i) + 2), "j < 2");
  EXPECT_EQ(s.text(min(Expr(i), 12)), "i");
  EXPECT_EQ(s.text(max(Expr(i) + Expr(j), Expr(i) - 1)), "i + j");
  EXPECT_EQ(s.text(min(min(Expr(i), 5), 7)), "min(i, 5)");
  EXPECT_EQ(s.text(max(floor_div(Expr(i) + 1, 4), floor_div(Expr(i) + 3, 4))), "floor_div(i + 3, 4)");
  EXPECT_EQ(s.text(min(floor_div(Expr(i) + 3, 7), floor_div(Expr(i) + 5, 7))), "floor_div(i + 3, 7)");
  EXPECT_EQ(s.text(select(Expr(i) < 0, Expr(j), Expr(i))), "i");
  EXPECT_EQ(s.text(select(Expr(i) < 4, min(Expr(i), 4), 0)), "select(i < 4, i, 0)");
  EXPECT_EQ(s.text(apply(Op::Index, {Expr(i), 10})), "i");
  EXPECT_EQ(s.text(apply(Op::Index, {Expr(j) - 4, 10})), "j + 6");
  EXPECT_EQ(s.text(apply(Op::Index, {Expr(i), 9})), "index(i, 9)");
}

TEST(Simplify, Booleans) {
  const Expr minus_infinity = lowest(DType::F32);
  EXPECT_EQ(to_text(apply(Op::IsNan, {minus_infinity})), "false");
  EXPECT_EQ(to_text(apply(Op::IsInf, {minus_infinity})), "true");
  Scope1 s;
  Var i = s.var("i", 0, 9);
  EXPECT_EQ(s.text((Expr(i) >= 0) && (Expr(i) < 5)), "i < 5");
  EXPECT_EQ(s.text((Expr(i) < 5) && (Expr(i) < 7)), "i < 5");
  EXPECT_EQ(s.text((Expr(i) < 5) || (Expr(i) >= 5)), "true");
  EXPECT_EQ(s.text(logical_not(Expr(i) < 5)), "i >= 5");
  Var x = make_var("x", DType::F32);
  EXPECT_EQ(s.text(logical_not(Expr(x) < make_float(DType::F32, 5))), "!(x < 5.0f)");  // NaN
}

// Compilers warn of what compares with itself, whichever way round it stands.
TEST(Simplify, MirroredComparisonsAreOne) {
  const Scope1 s;
  const Expr x = make_var("x", DType::F32), y = make_var("y", DType::F32), n = make_var("n"), m = make_var("m");
  EXPECT_EQ(s.text(ne(x > y, y < x)), "false");
  EXPECT_EQ(s.text(eq(x <= y, y >= x)), "true");
  EXPECT_EQ(s.text(eq((x + y) > y, y < (y + x))), "true");
  EXPECT_EQ(s.text(eq(eq(n * m, 1), eq(1, m * n))), "true");
  EXPECT_EQ(s.text(eq(cast(DType::I32, x > y), cast(DType::I32, y < x))), "true");
  EXPECT_EQ(s.text(ne(select(x > y, n, 3), select(y < x, n, 3))), "false");
  EXPECT_EQ(s.text(eq(x > y, x < y)), "x > y == x < y");
  EXPECT_EQ(s.text(eq(x > y, y <= x)), "x > y == y <= x");  // NaN
}

TEST(Simplify, TensorDataMayWrap) {
  // An int64 of the model may hold anything: no decision rests on its arithmetic not overflowing.
  Buffer b = make_buffer("b", DType::I64, {Dim(4)});
  Scope1 s;
  Expr x = load(b, {0});
  EXPECT_EQ(s.text(floor_div(x * 4, 4)), "floor_div(b[0] * 4, 4)");
  EXPECT_EQ(s.text(x < x + 1), "b[0] < b[0] + 1");
  EXPECT_EQ(s.text(x < x), "false");
  EXPECT_EQ(s.text(apply(Op::Ge, {x, x})), "true");
  const Expr f = Expr(make_var("f", DType::F32));
  EXPECT_EQ(s.text(apply(Op::Ge, {f, f})), "f >= f");  // NaN
  EXPECT_EQ(s.text(x + 1 - x), "1");                   // exact in wrapping arithmetic
  Var u = make_var("u", DType::U8);
  s.ranges[u.get()] = {0, 255};
  EXPECT_EQ(range_of(Expr(u) + Expr(u), s.ranges)->max, 255);  // wraps
}

// What the model's integers are added up to may wrap, whatever bounds the summands.
TEST(Simplify, NothingRestsOnSumsThatMayWrap) {
  Scope1 s;
  const Expr x = load(make_buffer("x", DType::I64, {Dim(4)}), {Expr(0)}), positive = max(x, 0);
  EXPECT_EQ(s.text(max(positive * 31, 0)), "max(max(x[0], 0) * 31, 0)");
  EXPECT_EQ(s.text(positive + 1 > 0), "max(x[0], 0) + 1 > 0");
  EXPECT_EQ(s.text(max(apply(Op::Abs, {x}), 0)), "max(abs(x[0]), 0)");
  EXPECT_EQ(s.text(floor_mod(positive * 5 + 3, 1000)), "floor_mod(max(x[0], 0) * 5 + 3, 1000)");
  EXPECT_EQ(s.text(floor_mod(floor_mod(x, 7) - Expr(INT64_MIN), Expr(INT64_MAX))),
            "floor_mod(floor_mod(x[0], 7) + -9223372036854775808, 9223372036854775807)");
  EXPECT_EQ(s.text(max(positive, 0)), "max(x[0], 0)");
}

// The largest int64 says "not bounded", and uint64 has larger ones.
TEST(Simplify, HalfOfUint64IsNoBound) {
  Scope1 s;
  const Expr x = load(make_buffer("x", DType::U64, {Dim(4)}), {Expr(0)});
  for (const int64_t n : {INT64_MAX - 1, INT64_MAX, int64_t(-1)}) {
    const Expr least = min(x, make_int(DType::U64, n)), most = max(x, make_int(DType::U64, n));
    EXPECT_TRUE(simplify(least, s.ranges).same_as(least)) << n;
    EXPECT_TRUE(simplify(most, s.ranges).same_as(most)) << n;
  }
  const Expr zero = make_int(DType::U64, 0);
  EXPECT_EQ(s.text(x < zero) + s.text(zero > x), "falsefalse");
  EXPECT_EQ(s.text(apply(Op::Ge, {x, zero})) + s.text(apply(Op::Le, {zero, x})), "truetrue");
  EXPECT_EQ(s.text(zero < x), "u64(0) < x[0]");
}

TEST(Simplify, Ranges) {
  Scope1 s;
  Var i = s.var("i", -3, 9);
  EXPECT_EQ(range_of(floor_mod(i, 4), s.ranges)->max, 3);
  EXPECT_EQ(range_of(floor_div(i, 4), s.ranges)->min, -1);
  EXPECT_EQ(range_of(Expr(i) * -2 + 1, s.ranges)->min, -17);
  EXPECT_FALSE(range_of(make_var("n"), s.ranges).has_value());
  EXPECT_EQ(range_of(max(make_var("n"), 0), s.ranges)->min, 0);
}

TEST(SimplifyStmt, DropsSubstitutesAndResolves) {
  Buffer y = make_buffer("y", DType::F32, {Dim(64)});
  Expr one = make_float(DType::F32, 1);
  Var i = make_var("i"), j = make_var("j"), k = make_var("k"), n = make_var("n");
  Stmt s = seq({loop(i, 0, store(y, {i}, one)),
                loop(j, 1, loop(k, 8, store(y, {Expr(j) * 8 + Expr(k)}, one)), ForKind::Serial, 3),
                loop(n, 16, if_then(Expr(n) < 16, store(y, {n}, one), store(y, {0}, one)))});
  EXPECT_EQ(to_text(simplify(s)),
            "for k in 0 .. +8:\n"
            "  y[k + 24] = 1.0f\n"
            "for n in 0 .. +16:\n"
            "  y[n] = 1.0f\n");
}

TEST(SimplifyStmt, UsesConditionsAndLets) {
  Buffer y = make_buffer("y", DType::F32, {Dim(64)});
  Expr one = make_float(DType::F32, 1);
  Var i = make_var("i"), a = make_var("a"), unused = make_var("unused");
  Stmt inner = if_then(Expr(i) < 20, store(y, {min(i, 40)}, one), store(y, {max(i, 10)}, one));
  Stmt s = loop(
      i, 64,
      let(a, Expr(i) * 2,
          let(unused, Expr(i) * 3, if_then(Expr(i) < 30, inner, store(y, {min(i, 20) + max(a, 126) - 100}, one)))));
  EXPECT_EQ(to_text(simplify(s)),
            "for i in 0 .. +64:\n"
            "  if i < 30:\n"
            "    if i < 20:\n"
            "      y[i] = 1.0f\n"
            "    else:\n"
            "      y[i] = 1.0f\n"
            "  else:\n"
            "    y[46] = 1.0f\n");
}

// What is computed of a tensor's bytes may leave 64 bits, in one expression and by way of a name; places do not.
TEST(SimplifyStmt, DataMayWrapByAnyName) {
  const Buffer x = make_buffer("x", DType::U32, {Dim(64)}), y = make_buffer("y", DType::I64, {Dim(64)});
  const Var i = make_var("i"), v = make_var("v"), w = make_var("w"), z = make_var("z");
  const auto asks = [&](const Expr& e) { return store(y, {i}, select(e < Expr(0), Expr(-1), e)); };
  const Expr data = cast(DType::I64, load(x, {i}));
  const auto asked = [&](const Stmt& s) { return to_text(simplify(loop(i, 64, s))).find("< 0") != std::string::npos; };
  EXPECT_FALSE(asked(let(v, data, asks(v))));
  EXPECT_TRUE(asked(let(v, data, asks(Expr(v) * Expr(v) * Expr(v)))));
  EXPECT_TRUE(asked(let(v, data, let(w, Expr(v) * Expr(v), let(z, Expr(w) * Expr(v), asks(z))))));
  EXPECT_TRUE(asked(let(v, data, let(w, Expr(v) * Expr(v), asks(Expr(w) + 1)))));
  EXPECT_FALSE(asked(let(v, Expr(i) * 7 + 3, let(w, Expr(v) * Expr(v), asks(w)))));
}

TEST(SimplifyStmt, DropsBuffersThatNobodyUses) {
  Buffer y = make_buffer("y", DType::F32, {Dim(64)}), t = make_buffer("t", DType::F32, {Dim(4)}, Scope::Stack);
  Var i = make_var("i");
  Stmt keep = store(y, {0}, make_float(DType::F32, 1));
  EXPECT_EQ(to_text(simplify(alloc(t, seq({loop(i, 0, store(t, {i}, make_float(DType::F32, 1))), keep})))),
            "y[0] = 1.0f\n");
}

TEST(SimplifyStmt, KeepsWhatIsClean) {
  Buffer y = make_buffer("y", DType::F32, {Dim(64)});
  Var i = make_var("i");
  Stmt s = loop(i, 64, store(y, {i}, make_float(DType::F32, 1)));
  EXPECT_TRUE(simplify(s).same_as(s));
}

}  // namespace
}  // namespace tc::simplify_test
