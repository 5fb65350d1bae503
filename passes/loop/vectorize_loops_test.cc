#include "passes/loop/vectorize_loops.h"

#include <gtest/gtest.h>

#include "ir/loop/build.h"
#include "ir/loop/print.h"

namespace tc {
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
}  // namespace tc
