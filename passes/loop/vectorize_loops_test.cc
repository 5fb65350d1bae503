#include "passes/loop/vectorize_loops.h"

#include <gtest/gtest.h>

#include "ir/loop/build.h"
#include "ir/loop/print.h"

namespace tc::vectorize_loops_test {
namespace {

struct Case {
  Var n = make_var("n"), j = make_var("j");
  Buffer y = make_buffer("y", DType::F32, {Dim(64)}), x = make_buffer("x", DType::F32, {Dim(64)}),
         b = make_buffer("b", DType::F32, {Dim(64)});
  // for n: vector j in 0 .. +count: y[at + j] = value
  std::string text(const Expr& at, const Expr& value, int64_t count = 4) const {
    return to_text(vectorize_loops(loop(n, 8, loop(j, count, store(y, {at + Expr(j)}, value), ForKind::Vector))));
  }
};

TEST(VectorizeLoops, AlignedAccessesAreGathered) {
  const Case c;
  const Expr at = Expr(c.n) * Expr(8);
  const std::string s =
      c.text(at, max(load(c.x, {at + Expr(c.j) + Expr(4)}) + load(c.b, {Expr(c.n)}), zero(DType::F32)));
  EXPECT_NE(s.find("load4"), std::string::npos) << s;
  EXPECT_NE(s.find("store4"), std::string::npos) << s;
  EXPECT_NE(s.find("b[n]"), std::string::npos) << s;  // the same in every iteration
  EXPECT_EQ(s.find("vector"), std::string::npos) << s;
  EXPECT_NE(c.text(at, zero(DType::F32), 2).find("store2"), std::string::npos);  // 8 bytes
}

TEST(VectorizeLoops, ARowOfRegistersIsStoredFromThere) {
  const Case c;
  auto text = [&](int64_t columns, const Expr& column) {
    const Buffer acc = make_buffer("acc", DType::F32, {2, Dim(columns)}, Scope::Register);
    return c.text(Expr(c.n) * Expr(8), load(acc, {1, column}));
  };
  const std::string s = text(4, Expr(c.j));
  EXPECT_NE(s.find("store4(n * 8, 1, y, acc)"), std::string::npos) << s;
  EXPECT_EQ(s.find("y_v"), std::string::npos) << s;
  EXPECT_NE(text(8, Expr(c.j)).find("y_v"), std::string::npos);            // a part of a row
  EXPECT_NE(text(4, Expr(3) - Expr(c.j)).find("y_v"), std::string::npos);  // backwards
}

// What is joined into registers is read together; where all of it may be outside, the array is filled before.
TEST(VectorizeLoops, ReadsOfRegistersAreGathered) {
  const Case c;
  const Buffer acc = make_buffer("acc", DType::F32, {4}, Scope::Register);
  const Expr at = Expr(c.n) * Expr(8);
  auto text = [&](const Expr& condition, const Expr& number) {
    const Expr read = load(c.x, {at + Expr(c.j)}), value = condition ? select(condition, read, number) : read;
    const Stmt join = store(acc, {c.j}, value * load(c.b, {at + Expr(4) + Expr(c.j)}), Op::Add);
    return to_text(vectorize_loops(loop(c.n, 8, loop(c.j, 4, join, ForKind::Vector))));
  };
  EXPECT_EQ(text({}, {}),
            "for n in 0 .. +8:\n"
            "  alloc x_v: f32[4] register\n"
            "  load4(n * 8, x_v, x)\n"
            "  alloc b_v: f32[4] register\n"
            "  load4(n * 8 + 4, b_v, b)\n"
            "  unroll j in 0 .. +4:\n"
            "    acc[j] += x_v[j] * b_v[j]\n");
  EXPECT_EQ(text(Expr(c.n) < Expr(3), zero(DType::F32)),
            "for n in 0 .. +8:\n"
            "  alloc x_v: f32[4] register\n"
            "  unroll j in 0 .. +4:\n"
            "    x_v[j] = 0.0f\n"
            "  if n < 3:\n"
            "    load4(n * 8, x_v, x)\n"
            "  alloc b_v: f32[4] register\n"
            "  load4(n * 8 + 4, b_v, b)\n"
            "  unroll j in 0 .. +4:\n"
            "    acc[j] += x_v[j] * b_v[j]\n");
  const std::string each = text(Expr(c.j) < Expr(3), zero(DType::F32));  // not the same for all
  EXPECT_EQ(each.find("load4(n * 8, "), std::string::npos) << each;
  const std::string other = text(Expr(c.n) < Expr(3), load(c.y, {Expr(c.n)}));  // no number
  EXPECT_EQ(other.find("load4(n * 8, "), std::string::npos) << other;
}

TEST(VectorizeLoops, OthersAreUnrolled) {
  const Case c;
  const Expr aligned = Expr(c.n) * Expr(8);
  auto plain = [&](const Expr& at, const Expr& value, int64_t count = 4) {
    const std::string s = c.text(at, value, count);
    EXPECT_EQ(s.find("store4"), std::string::npos) << s;
    EXPECT_NE(s.find("unroll"), std::string::npos) << s;
  };
  plain(Expr(c.n) * Expr(6), zero(DType::F32));  // not on 16 bytes
  plain(aligned + Expr(2), zero(DType::F32));    // neither
  plain(aligned + Expr(c.j), zero(DType::F32));  // two elements an iteration
  plain(aligned, zero(DType::F32), 3);           // no vector of the machine
  const Expr maybe = select(Expr(c.n) < Expr(3), load(c.x, {aligned + Expr(c.j)}), zero(DType::F32));
  const std::string s = c.text(aligned, maybe);
  EXPECT_EQ(s.find("load4"), std::string::npos) << s;  // may not be there
  EXPECT_NE(s.find("store4"), std::string::npos) << s;
}

TEST(VectorizeLoops, ARunTimeExtentIsNotUnrolled) {
  const Case c;
  const Stmt s = loop(c.n, 8,
                      loop(c.j, min(Expr(4), Expr(30) - Expr(c.n) * Expr(4)),
                           store(c.y, {Expr(c.n) * Expr(4) + Expr(c.j)}, load(c.x, {c.j})), ForKind::Vector));
  EXPECT_EQ(to_text(vectorize_loops(s)),
            "for n in 0 .. +8:\n"
            "  for j in 0 .. +min(4, 30 - n * 4):\n"
            "    y[n * 4 + j] = x[j]\n");
}

TEST(VectorizeLoops, LetsSayWhatIsAligned) {
  const Case c;
  const Var column = make_var("column");
  const Stmt s = loop(c.j, 4, store(c.y, {Expr(column) + Expr(c.j)}, zero(DType::F32)), ForKind::Vector);
  auto text = [&](const Expr& value) { return to_text(vectorize_loops(loop(c.n, 8, let(column, value, s)))); };
  EXPECT_NE(text(floor_mod(Expr(c.n) * Expr(4), 12)).find("store4"), std::string::npos);
  EXPECT_EQ(text(floor_mod(Expr(c.n) * Expr(4), 10)).find("store4"), std::string::npos);
  EXPECT_EQ(text(floor_div(Expr(c.n) * Expr(8), 4)).find("store4"), std::string::npos);
}

}  // namespace
}  // namespace tc::vectorize_loops_test
