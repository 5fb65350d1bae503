#include "passes/loop/trim_loops.h"

#include <gtest/gtest.h>

#include "ir/interpreter/test_arrays.h"
#include "ir/loop/build.h"
#include "ir/loop/print.h"

namespace tc {
namespace {

constexpr int64_t kRows = 12, kColumns = 5;

class TrimLoops : public ::testing::Test {
 protected:
  Floats x{"x", {kRows * kColumns}}, y{"y", {kRows * kColumns}};
  Buffer count = make_buffer("batch", DType::I64, {});
  Var i = make_var("i"), j = make_var("j"), k = make_var("k");

  Stmt row(const Expr& r) const {
    const Expr at = r * kColumns + Expr(j);
    return loop(j, kColumns, store(y.buffer, {at}, load(x.buffer, {at})));
  }
  std::string trimmed(const Stmt& s, Dims dims = {kRows, kColumns}, int axis = 0) const {
    return trimmed_at(load(count, {}), s, dims, axis);
  }
  /// `end`: of batches of 2 to 20.
  std::string trimmed_at(const Expr& end, const Stmt& s, Dims dims = {kRows, kColumns}, int axis = 0) const {
    const Buffer other = make_buffer("other", DType::F32, to_shape(dims));
    return to_text(trim_loops(s, {{{other, y.buffer}, dims, axis, end, {{count, 2, 20}}}}));
  }
};

TEST_F(TrimLoops, ALoopEndsBehindTheLastElement) {
  const std::string text = trimmed(loop(i, kRows, row(i)));
  EXPECT_NE(text.find("n = max(min(batch[], 12), 0)"), std::string::npos) << text;
  EXPECT_NE(text.find("for i in 0 .. +n:"), std::string::npos) << text;
  EXPECT_NE(text.find("for j in 0 .. +5:"), std::string::npos) << text;
}

TEST_F(TrimLoops, AnEndIsComputedFromSizesInTheirBounds) {
  const std::string text = trimmed_at(floor_div(load(count, {}) + 3, 2), loop(i, kRows, row(i)));
  EXPECT_NE(text.find("size = max(min(batch[], 20), 2)"), std::string::npos) << text;
  EXPECT_NE(text.find("n = floor_div(size + 1, 2) + 1"), std::string::npos) << text;
  EXPECT_NE(text.find("for i in 0 .. +n:"), std::string::npos) << text;
  const std::string cut = trimmed_at(load(count, {}) + 1, loop(i, kRows, row(i)));
  EXPECT_NE(cut.find("n = min(size + 1, 12)"), std::string::npos) << cut;
}

TEST_F(TrimLoops, TilesAreRoundedUpAndTheirRowsStayWhole) {
  const std::string text = trimmed(loop(i, kRows / 4, loop(k, 4, row(Expr(i) * 4 + Expr(k)), ForKind::Unroll)));
  EXPECT_NE(text.find("for i in 0 .. +floor_div(n + 3, 4):"), std::string::npos) << text;
  EXPECT_NE(text.find("unroll k in 0 .. +4:"), std::string::npos) << text;
}

TEST_F(TrimLoops, ChunksStayAndDoNothing) {
  const std::string text = trimmed(loop(i, kRows, row(i), ForKind::Parallel));
  EXPECT_NE(text.find("parallel i in 0 .. +12:"), std::string::npos) << text;
  EXPECT_NE(text.find("if i < n:"), std::string::npos) << text;
}

TEST_F(TrimLoops, AnInnerAxisIsFoundInTheFlatIndex) {
  // y[3][4][5], of which axis 1 is counted.
  const Expr r = Expr(k) * 4 + Expr(i);
  const std::string text = trimmed(loop(k, 3, loop(i, 4, row(r))), {3, 4, 5}, 1);
  EXPECT_NE(text.find("for k in 0 .. +3:"), std::string::npos) << text;
  EXPECT_NE(text.find("for i in 0 .. +n:"), std::string::npos) << text;
}

// What breaks one precondition each stays as it is.
TEST_F(TrimLoops, NearMisses) {
  const Buffer all = make_buffer("all", DType::F32, {Dim(kRows)}),
               sum = make_buffer("sum", DType::F32, {Dim(1)}, Scope::Stack);
  const Stmt into_another = loop(i, kRows, seq({row(i), store(all, {Expr(i)}, make_float(DType::F32, 1))}));
  const Stmt read_later =
      alloc(sum, seq({loop(i, kRows, seq({row(i), store(sum, {Expr(0)}, load(x.buffer, {Expr(i)}))})),
                      store(y.buffer, {Expr(0)}, load(sum, {Expr(0)}))}));
  const Stmt backwards = loop(i, kRows, row(Expr(kRows - 1) - Expr(i)));
  const Stmt unrolled = loop(i, kRows, row(i), ForKind::Unroll);
  for (const Stmt& s : {into_another, read_later, backwards, unrolled}) EXPECT_EQ(trimmed(s), to_text(s));
}

}  // namespace
}  // namespace tc
