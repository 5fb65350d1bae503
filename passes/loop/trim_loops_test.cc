#include "passes/loop/trim_loops.h"

#include <gtest/gtest.h>

#include "ir/interpreter/test_arrays.h"
#include "ir/loop/build.h"
#include "ir/loop/intrin.h"
#include "ir/loop/print.h"
#include "ir/open_size.h"

namespace tc::trim_loops_test {
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

// As many along both axes, which are not equally long.
TEST_F(TrimLoops, EveryAxisHasItsOwnExtent) {
  const Dims dims = {kRows, kColumns};
  const Buffer other = make_buffer("other", DType::F32, to_shape(dims));
  const auto live = [&](int axis) {
    return KernelInterface::Live{{other, y.buffer}, dims, axis, load(count, {}), {{count, 2, 20}}};
  };
  const std::string text = to_text(trim_loops(loop(i, kRows, row(i)), {live(1), live(0)}));
  EXPECT_NE(text.find("min(batch[], 12)"), std::string::npos) << text;
  EXPECT_NE(text.find("min(batch[], 5)"), std::string::npos) << text;
}

TEST_F(TrimLoops, TilesAreRoundedUpAndTheirRowsStayWhole) {
  const std::string text = trimmed(loop(i, kRows / 4, loop(k, 4, row(Expr(i) * 4 + Expr(k)), ForKind::Unroll)));
  EXPECT_NE(text.find("for i in 0 .. +floor_div(n + 3, 4):"), std::string::npos) << text;
  EXPECT_NE(text.find("unroll k in 0 .. +4:"), std::string::npos) << text;
}

// Tiles of 5 rows, and one of 2 behind them.
TEST_F(TrimLoops, TheRestOfTheTilesIsAskedForAsAWhole) {
  const Buffer acc = make_buffer("acc", DType::F32, {Dim(kColumns)}, Scope::Register);
  const Stmt rest = alloc(acc, loop(k, 2, row(Expr(k) + 10), ForKind::Unroll));
  const std::string text = trimmed(seq({loop(i, 2, loop(k, 5, row(Expr(i) * 5 + Expr(k)), ForKind::Unroll)), rest}));
  EXPECT_NE(text.find("for i in 0 .. +min(2, floor_div(n + 4, 5)):"), std::string::npos) << text;
  EXPECT_NE(text.find("if 10 < n:"), std::string::npos) << text;
  const Stmt first = alloc(acc, loop(k, 2, row(Expr(k)), ForKind::Unroll));  // there is one, whatever n is
  EXPECT_EQ(trimmed(seq({first, rest})).find("if 0 < n"), std::string::npos);
}

// The border behind a size without an upper bound, of 128 times as many rows as any run has.
TEST_F(TrimLoops, WhatLiesBehindAllRunsIsNotStored) {
  const auto bordered = [&](int64_t most) {
    const Dims dims = {most + 2, kColumns};
    const Stmt all = seq({row(Expr(0)), row(Expr(most + 1)), loop(i, most, row(Expr(i) + 1))});
    return to_text(trim_loops(all, {{{y.buffer}, dims, 0, load(count, {}) + 2, {{count, 1, most}}}}));
  };
  const std::string open = bordered(kOpenSize), known = bordered(10);
  EXPECT_NE(open.find("y[j] = x[j]"), std::string::npos) << open;
  EXPECT_EQ(open.find("y[472331059205 + j]"), std::string::npos) << open;
  EXPECT_NE(known.find("y[55 + j]"), std::string::npos) << known;
}

TEST_F(TrimLoops, ChunksStayAndDoNothing) {
  const std::string text = trimmed(loop(i, kRows, row(i), ForKind::Parallel));
  EXPECT_NE(text.find("parallel i in 0 .. +12:"), std::string::npos) << text;
  EXPECT_NE(text.find("if i < n:"), std::string::npos) << text;
}

// [12][5] in chunks of 8 elements, which are no whole rows.
TEST_F(TrimLoops, ChunksOfTheFlatTensorEndBehindTheLastElement) {
  const Expr at = Expr(i) * 8 + Expr(j);
  const Stmt chunk = loop(j, 8, store(y.buffer, {at}, load(x.buffer, {at})));
  const std::string text = trimmed(loop(i, 7, chunk, ForKind::Parallel));
  EXPECT_NE(text.find("if i * 8 < n * 5:"), std::string::npos) << text;
  EXPECT_NE(text.find("for j in 0 .. +min(8, n * 5 - i * 8):"), std::string::npos) << text;
}

TEST_F(TrimLoops, VectorsOfTheFlatTensorEndBehindTheLastElement) {
  const auto vectors = [&](int64_t elements, const Expr& from) {
    const Expr at = Expr(j) * lanes() + from;
    return loop(j, floor_div(elements, lanes()), store(y.buffer, {ramp(at)}, load(x.buffer, {ramp(at)})));
  };
  const std::string whole = trimmed(loop(i, 3, vectors(16, Expr(i) * 16), ForKind::Parallel));
  EXPECT_NE(whole.find("if i * 16 < n * 5:"), std::string::npos) << whole;
  EXPECT_NE(whole.find("+(min(16, n * 5 - i * 16) + VL - 1) / VL:"), std::string::npos) << whole;
  // No vector more than before, where the last is a partial one that stands behind the loop.
  const std::string partial = trimmed(vectors(12, 48));
  EXPECT_NE(partial.find("+min(floor_div(12, VL), (n * 5 - 48 + VL - 1) / VL):"), std::string::npos) << partial;
  // Within a row there is nothing behind the last element.
  const std::string row = trimmed(vectors(12, 0), {5, 12});
  EXPECT_NE(row.find("for j in 0 .. +floor_div(12, VL):"), std::string::npos) << row;
}

// Whatever the chunks, what is needed is computed, and no more than a vector beyond it.
TEST_F(TrimLoops, WhatIsNeededIsComputedForEveryCount) {
  x.count();
  for (const int64_t chunk : {1, 4, 8, 12, 16, 32})
    for (const int vl : {1, 4, 16})
      for (int64_t n = 0; n <= kRows; n++) {
        const bool vector = chunk % 16 == 0;
        const Expr step = Expr(j) * (vector ? lanes() : Expr(1)), at = Expr(i) * chunk + step;
        const auto element = [&](const Expr& e) { return vector ? ramp(e) : e; };
        const Stmt copy = store(y.buffer, {element(at)}, load(x.buffer, {element(at)}));
        const Stmt inner = loop(j, vector ? floor_div(chunk, lanes()) : Expr(chunk), copy);
        const int64_t chunks = kRows * kColumns / chunk;
        y.data.assign(y.data.size(), -1);
        const Stmt s = trim_loops(loop(i, chunks, inner, ForKind::Parallel),
                                  {{{make_buffer("other", DType::F32, {Dim(kRows), Dim(kColumns)}), y.buffer},
                                    {kRows, kColumns},
                                    0,
                                    load(count, {}),
                                    {{count, 0, kRows}}}});
        RunOptions options;
        options.vl = vl;
        run(s, {x.bind(), y.bind(), {count, reinterpret_cast<uint8_t*>(&n)}}, options);
        const int64_t all = std::min(n * kColumns, chunks * chunk);
        for (int64_t k = 0; k < all; k++) ASSERT_EQ(y.data[size_t(k)], float(k)) << chunk << " " << vl << " " << n;
        for (int64_t k = all + (vector ? vl : 1) - 1; k < kRows * kColumns; k++)
          ASSERT_EQ(y.data[size_t(k)], -1) << chunk << " " << vl << " " << n;
      }
}

TEST_F(TrimLoops, AnInnerAxisIsFoundInTheFlatIndex) {
  // y[3][4][5], of which axis 1 is counted.
  const Expr r = Expr(k) * 4 + Expr(i);
  const std::string text = trimmed(loop(k, 3, loop(i, 4, row(r))), {3, 4, 5}, 1);
  EXPECT_NE(text.find("for k in 0 .. +3:"), std::string::npos) << text;
  EXPECT_NE(text.find("for i in 0 .. +n:"), std::string::npos) << text;
}

// A tile of 4 x 4 that begins in one row of the axis may end in the next.
TEST_F(TrimLoops, TilesOfInstructionsReachBeyondTheirBeginning) {
  const Stmt tiles =
      loop(k, 2, intrin("transpose_tile", {{y.buffer, {Expr(k) * 4}}, {x.buffer, {Expr(k) * 16}}}, {10, 4}));
  const std::string within = trimmed(tiles, {6, 10}, 1);
  EXPECT_NE(within.find("floor_div(n + 3, 4)"), std::string::npos) << within;
  EXPECT_EQ(trimmed(tiles, {6, 2, 5}, 2), to_text(tiles));
}

// y[i] = x[0] + .. + x[i]: nobody reads the sum behind the loop. One that is left from the iteration before of a loop around it
// is read.
TEST_F(TrimLoops, ALoopMayAddToWhatIsStoredInFrontOfIt) {
  const Buffer sum = make_buffer("sum", DType::F32, {}, Scope::Register);
  const auto element = [&](const Expr& at, std::optional<Op> join) {
    return seq({store(sum, {}, load(x.buffer, {at}), join), store(y.buffer, {at}, load(sum, {}))});
  };
  const Dims dims = {kRows * kColumns};
  const Stmt rest = loop(i, kRows * kColumns - 1, element(Expr(i), Op::Add), ForKind::Serial, 1);
  const std::string text = trimmed(alloc(sum, seq({element(0, {}), rest})), dims);
  EXPECT_NE(text.find("for i in 1 .. +n - 1:"), std::string::npos) << text;
  const Stmt kept = alloc(sum, seq({store(sum, {}, make_float(DType::F32, 0)), loop(k, 3, rest)}));
  EXPECT_EQ(trimmed(kept, dims), to_text(kept));
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
}  // namespace tc::trim_loops_test
