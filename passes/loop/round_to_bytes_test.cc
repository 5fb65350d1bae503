// Quantised vectors: what they become, that it is the same number, and what stays as it is.
#include "passes/loop/round_to_bytes.h"

#include <gtest/gtest.h>

#include <cmath>

#include "ir/loop/build.h"
#include "ir/loop/print.h"

namespace tc::round_to_bytes_test {
namespace {

Expr number(double v) { return broadcast(make_float(DType::F32, v)); }
Expr integer(int64_t v) { return broadcast(make_int(DType::I32, v)); }
Expr floats() { return load(make_buffer("x", DType::F32, {Dim(64)}), {ramp(0)}); }
Expr scaled_sums() {
  return cast(DType::F32, load(make_buffer("sums", DType::I32, {Dim(64)}), {ramp(0)})) * number(0.25);
}
Expr rounded(const Expr& e) { return apply(Op::Round, {e}); }
Expr between(const Expr& e, double least, double most) { return min(max(e, number(least)), number(most)); }
// What gives `least` for NaN.
Expr chosen_between(const Expr& e, double least, double most) {
  return min(select(apply(Op::Gt, {e, number(least)}), e, number(least)), number(most));
}

std::string after(const Expr& e) {
  const Buffer y = make_buffer("y", e->dtype, {Dim(64)});
  const std::string s = to_text(round_to_bytes(store(y, {ramp(0)}, e)));
  return s.substr(s.find("= ") + 2, s.size() - s.find("= ") - 3);
}
bool stays(const Expr& e) {
  const Stmt s = store(make_buffer("y", e->dtype, {Dim(64)}), {ramp(0)}, e);
  return to_text(round_to_bytes(s)) == to_text(s);
}

TEST(RoundToBytes, BoundsComeFirst) {
  EXPECT_EQ(after(cast(DType::U8, between(rounded(scaled_sums()), 0, 255))),
            "u8(i32(round(min(max(f32(sums[0:VL]) * all(0.25f), all(0.0f)), all(255.0f)))))");
  EXPECT_EQ(after(cast(DType::I8, between(rounded(scaled_sums()) + number(3), -128, 127))),
            "i8(i32(round(min(max(f32(sums[0:VL]) * all(0.25f), all(-131.0f)), all(124.0f)))) + all(i32(3)))");
  EXPECT_EQ(after(cast(DType::U8, chosen_between(rounded(floats()) + number(3), 0, 255))),
            "u8(i32(round(min(select(x[0:VL] > all(-3.0f), x[0:VL], all(-3.0f)), all(252.0f)))) + all(i32(3)))");
}

// Of a choice the two values are equal, whether they are one expression or two: a graph that was read from text has two.
TEST(RoundToBytes, EqualExpressionsNeedNotBeOne) {
  const Buffer x = make_buffer("x", DType::F32, {Dim(64)});
  auto whole = [&] { return rounded(load(x, {ramp(0)})) + number(3); };
  const Expr chosen = select(apply(Op::Gt, {whole(), number(0)}), whole(), number(0));
  EXPECT_EQ(after(cast(DType::U8, min(chosen, number(255)))),
            "u8(i32(round(min(select(x[0:VL] > all(-3.0f), x[0:VL], all(-3.0f)), all(252.0f)))) + all(i32(3)))");
}

TEST(RoundToBytes, AConstantDividesByItsReciprocal) {
  const Expr e = cast(DType::U8, between(rounded(floats() / number(0.5)), 0, 255));
  EXPECT_EQ(after(e), "u8(i32(round(min(select(x[0:VL] > all(0.0f), x[0:VL], all(0.0f)), all(127.5f)) / all(0.5f))))");
  const Stmt s = round_to_bytes(store(make_buffer("y", DType::U8, {Dim(64)}), {ramp(0)}, e));
  const Cast* outer = as<Cast>(as<Store>(s)->value);
  const Apply* round = as<Apply>(as<Cast>(outer->value)->value);
  EXPECT_EQ(as<Apply>(round->args[0])->op, Op::Quotient);
  EXPECT_EQ(after(cast(DType::U8, between(rounded(floats() / number(-0.5)), 0, 255))),
            "u8(i32(round(max(select(x[0:VL] < all(0.0f), x[0:VL], all(0.0f)), all(-127.5f)) / all(-0.5f))))");
}

TEST(RoundToBytes, DequantisedBytesAreWhatTheyWereRoundedTo) {
  const Expr byte = cast(DType::U8, between(rounded(scaled_sums()) + number(95), 0, 255));
  const std::string whole = "round(min(max(f32(sums[0:VL]) * all(0.25f), all(-95.0f)), all(160.0f)))";
  EXPECT_EQ(after(cast(DType::F32, cast(DType::I32, byte) - integer(95))), whole);
  EXPECT_EQ(after(cast(DType::F32, cast(DType::I32, byte) - integer(90))), whole + " + all(5.0f)");
}

TEST(RoundToBytes, NoByteIsNaN) {
  EXPECT_EQ(after(cast(DType::U8, between(floats(), 0, 9))),
            "u8(min(select(x[0:VL] > all(0.0f), x[0:VL], all(0.0f)), all(9.0f)))");
  EXPECT_EQ(after(cast(DType::I8, between(rounded(floats()) + number(3), -128, 127))),
            "i8(i32(round(min(select(x[0:VL] > all(-131.0f), x[0:VL], all(-131.0f)), all(124.0f)))) + all(i32(3)))");
  EXPECT_EQ(after(cast(DType::F32, cast(DType::U8, between(rounded(floats()), 0, 255)))),
            "round(min(select(x[0:VL] > all(0.0f), x[0:VL], all(0.0f)), all(255.0f)))");
}

TEST(RoundToBytes, OthersStay) {
  EXPECT_TRUE(stays(cast(DType::U8, between(rounded(scaled_sums()), 0, 256)))) << "more than a byte";
  EXPECT_TRUE(stays(cast(DType::U8, between(rounded(scaled_sums()), -1, 255)))) << "less than a byte";
  EXPECT_TRUE(stays(cast(DType::U8, max(rounded(scaled_sums()), number(0))))) << "no upper bound";
  EXPECT_TRUE(stays(cast(DType::U8, between(rounded(scaled_sums()), 0.5, 254)))) << "a bound that is no integer";
  EXPECT_TRUE(stays(cast(DType::U8, between(rounded(scaled_sums()) + number(0.5), 0, 255)))) << "half a zero point";
  EXPECT_TRUE(stays(cast(DType::U8, between(scaled_sums(), 0, 255)))) << "not rounded";
  EXPECT_TRUE(stays(rounded(floats() / number(0.5)))) << "no bytes";
  const Buffer one = make_buffer("one", DType::F32, {Dim(1)});
  const Expr scalar = apply(Op::Round, {load(one, {0}) / make_float(DType::F32, 0.5)});
  EXPECT_TRUE(
      stays(broadcast(cast(DType::U8, min(max(scalar, make_float(DType::F32, 0)), make_float(DType::F32, 255))))));
}

// Every float near the middle between two integers, by hundreds of scales.
TEST(RoundToBytes, QuotientsRoundAsDivisionsDo) {
  uint32_t seed = 1;
  int exact = 0;
  for (int turn = 0; turn < 300; turn++) {
    seed = seed * 1664525u + 1013904223u;
    const float d = std::ldexp(1.0f + float(seed >> 9) / float(1 << 23), int(seed % 24) - 20);
    exact += quotient_rounds_exactly(d, 1100) ? 1 : 0;
  }
  EXPECT_GE(exact, 295);
  EXPECT_FALSE(quotient_rounds_exactly(0, 1100));
  EXPECT_FALSE(quotient_rounds_exactly(1e-40f, 1100));
  EXPECT_FALSE(quotient_rounds_exactly(1e30f, 1100));
  EXPECT_FALSE(quotient_rounds_exactly(INFINITY, 1100));
  EXPECT_FALSE(quotient_rounds_exactly(NAN, 1100));
}

}  // namespace
}  // namespace tc::round_to_bytes_test
