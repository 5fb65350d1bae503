#include "passes/loop/trim_grids.h"

#include <gtest/gtest.h>

#include "ir/interpreter/test_arrays.h"
#include "ir/loop/build.h"
#include "ir/loop/print.h"

namespace tc::trim_grids_test {
namespace {

constexpr int64_t kRows = 12, kColumns = 5;

class TrimGrids : public ::testing::Test {
 protected:
  Floats x{"x", {kRows * kColumns}}, y{"y", {kRows * kColumns}};
  Buffer count = make_buffer("batch", DType::I64, {});
  Var b = make_var("b"), t = make_var("t"), i = make_var("i");

  Stmt element(const Expr& at) const { return store(y.buffer, {at}, load(x.buffer, {at})); }
  static Stmt nest(const Var& b, int64_t blocks, const Var& t, int64_t threads, const Stmt& s) {
    return loop(b, blocks, loop(t, threads, s, ForKind::ThreadX), ForKind::BlockX);
  }
  /// What is launched of the axis of `b`; "": all.
  std::string blocks(const Stmt& s, Dims dims = {kRows, kColumns}, int axis = 0, bool on_host = true) const {
    const GridSizes sizes = trim_grids(s, {{{make_buffer("other", DType::F32, to_shape(dims)), y.buffer},
                                            dims,
                                            axis,
                                            load(count, {}),
                                            {{count, 0, 20}},
                                            on_host}});
    const auto it = sizes.find(b.get());
    return it == sizes.end() ? "" : to_text(it->second);
  }
};

TEST_F(TrimGrids, RowsOfABlock) {
  // 4 rows a block, 5 columns
  const Expr row = Expr(b) * 4 + Expr(i);
  const Stmt s = nest(b, 3, t, kColumns, loop(i, 4, element(row * kColumns + Expr(t)), ForKind::Unroll));
  EXPECT_EQ(blocks(s), "max(min((batch[] + 3) / 4, 3), 1)");
  EXPECT_EQ(blocks(s, {kRows, kColumns}, 0, false), "");  // the host does not know the count
}

TEST_F(TrimGrids, ElementsThatAreDividedIntoRows) {
  // A thread an element, 16 a block, the last block not full.
  const Var e = make_var("e"), row = make_var("row");
  const Stmt at = element(Expr(row) * kColumns + floor_mod(Expr(e), kColumns));
  const Stmt s = nest(
      b, 4, t, 16, let(e, Expr(b) * 16 + Expr(t), let(row, floor_div(Expr(e), kColumns), if_then(Expr(e) < 60, at))));
  EXPECT_EQ(blocks(s), "max(min((batch[] * 5 + 15) / 16, 4), 1)");
}

TEST_F(TrimGrids, RowsThatAreHeldInFrontOfTheEnd) {
  const Var row = make_var("row");
  const auto of = [&](int64_t last) {
    const Stmt at = element(Expr(row) * kColumns + Expr(i));
    return nest(b, 3, t, 4, let(row, min(Expr(b) * 4 + Expr(t), Expr(last)), loop(i, kColumns, at)));
  };
  EXPECT_EQ(blocks(of(kRows - 1)), "max(min((batch[] + 3) / 4, 3), 1)");
  EXPECT_EQ(blocks(of(kRows - 2)), "");  // the last block stores into a row that a run with one row less needs
}

TEST_F(TrimGrids, AnInnerAxis) {
  // y[3][4][5], of which axis 1 is counted: an axis of the grid each
  const Var z = make_var("z");
  const Stmt s = loop(z, 3, nest(b, 4, t, kColumns, element(Expr(z) * 20 + Expr(b) * 5 + Expr(t))), ForKind::BlockY);
  EXPECT_EQ(blocks(s, {3, 4, 5}, 1), "max(min(batch[], 4), 1)");
  EXPECT_EQ(blocks(s, {12, 5}, 0), "max(min(batch[], 4), 1)");  // row 4 z + b is not needed where b is not below batch
}

// What breaks one precondition each.
TEST_F(TrimGrids, NearMisses) {
  const Buffer all = make_buffer("all", DType::F32, {Dim(kRows)}),
               part = make_buffer("part", DType::F32, {Dim(kRows)}, Scope::Workspace);
  const Var c = make_var("c"), u = make_var("u");
  const Stmt row = nest(b, kRows, t, kColumns, element(Expr(b) * kColumns + Expr(t)));
  EXPECT_EQ(blocks(row), "max(min(batch[], 12), 1)");
  const auto with = [&](const Stmt& s) {
    return nest(b, kRows, t, kColumns, seq({element(Expr(b) * kColumns + Expr(t)), s}));
  };
  EXPECT_EQ(blocks(with(store(all, {Expr(b)}, make_float(DType::F32, 1)))), "");
  EXPECT_EQ(blocks(alloc(part, with(store(part, {Expr(b)}, make_float(DType::F32, 1))))), "");
  EXPECT_EQ(blocks(nest(b, kRows, t, kColumns, element(Expr(55) - Expr(b) * kColumns + Expr(t)))), "");
  const Stmt later = nest(c, kRows, u, 1, store(all, {Expr(c)}, load(y.buffer, {Expr(c)})));
  EXPECT_EQ(blocks(seq({row, later})), "");
}

}  // namespace
}  // namespace tc::trim_grids_test
