// Rows on a GPU equal the definition: bit for bit, on integers small enough that the order of sums does not matter,
// without races; as the template writes them, and with block-wide reductions and barriers lowered.
#include <gtest/gtest.h>

#include "templates/cuda/test_exact.h"

namespace tc::rows_test {
namespace {

using namespace tc::testing;

constexpr int64_t kLengths[] = {2, 7, 8, 9, 31, 32, 33, 64, 96, 100, 128, 132, 1000, 1001, 1024, 1025, 1028, 5000};

TEST(CudaRows, Lengths) {
  for (const int64_t n : kLengths)
    for (const int64_t rows : {1, 5, 16}) expect_equal(row_statistics(rows, n), "rows");
  expect_equal(row_statistics(2, 20000), "rows");
}

// A sum of two rows without its mean, times one value per column.
TestFunction normalisation(int64_t batch, int64_t rows, int64_t columns) {
  FunctionBuilder b;
  const Buffer x = b.input("x", {batch, rows, columns}), r = b.input("r", {batch, rows, columns}),
               g = b.input("g", {columns});
  const Dims whole{batch, rows, columns};
  const Buffer add = b.compute("add", whole, [&](const Exprs& i) { return load(x, i) + load(r, i); });
  const Buffer sum = b.reduce("sum", Op::Add, {batch, rows, 1}, {columns}, [&](const Exprs& i, const Exprs& k) {
    return load(add, {i[0], i[1], k[0]});
  });
  const Buffer d = b.compute("centred", whole, [&](const Exprs& i) {
    return load(add, i) - load(sum, {i[0], i[1], 0});
  });
  const Buffer low = b.reduce("low", Op::Min, {batch, rows, 1}, {columns}, [&](const Exprs& i, const Exprs& k) {
    return load(d, {i[0], i[1], k[0]});
  });
  return b.take(b.compute("y", whole, [&](const Exprs& i) {
    return (load(d, i) - load(low, {i[0], i[1], 0})) * load(g, {i[2]});
  }));
}

TEST(CudaRows, OfSeveralOperands) {
  for (const int64_t n : {9, 33, 128, 1000, 1025, 5000}) expect_equal(normalisation(2, 3, n), "rows");
  EXPECT_EQ(expect_equal(normalisation(9, 13, 768), "rows"), "a warp per row, 1 row a block, the row in registers");
  EXPECT_EQ(expect_equal(normalisation(1, 2, 20000), "rows"), "a block of 1024 threads per row");
}

TestFunction row_sum(int64_t rows, int64_t columns) {
  FunctionBuilder b;
  const Buffer x = b.input("x", {rows, columns});
  const Buffer s = b.reduce("sum", Op::Add, {rows}, {columns}, [&](const Exprs& i, const Exprs& r) {
    return load(x, {i[0], r[0]});
  });
  return b.take(b.compute("y", {rows}, [&](const Exprs& i) { return load(s, i) * make_float(DType::F32, 2); }));
}

TEST(CudaRows, OneValueARow) {
  for (const int64_t n : kLengths) expect_equal(row_sum(37, n), "rows");
}

// The sum over one of three axes, the largest value over two.
TestFunction across(Op op, int64_t outer, int64_t depth, int64_t inner) {
  FunctionBuilder b;
  const Buffer x = b.input("x", {outer, depth, inner}), g = b.input("g", {inner});
  const Buffer s = b.reduce("total", op, {outer, inner}, {depth}, [&](const Exprs& i, const Exprs& r) {
    return load(x, {i[0], r[0], i[1]});
  });
  return b.take(b.compute("y", {outer, inner}, [&](const Exprs& i) { return load(s, i) * load(g, {i[1]}); }));
}

TEST(CudaColumns, Tails) {
  for (const int64_t depth : {16, 17, 64, 1001})
    for (const int64_t inner : {32, 33, 96, 130}) {
      expect_equal(across(Op::Add, 1, depth, inner), "columns");
      expect_equal(across(Op::Max, 3, depth, inner), "columns");
    }
  expect_equal(across(Op::Add, 2, 3, 64), "window");
  expect_equal(across(Op::Add, 2, 100, 5), "rows");
}

TEST(CudaColumns, FewAndLongReductionsAreShared) {
  for (const int64_t n : {100000, 131072, 65537 * 3}) {
    EXPECT_EQ(expect_equal(row_sum(1, n), ""), "blocks share a reduction, whose parts a second launch joins");
    expect_equal(row_sum(3, n), "");
  }
}

// A softmax's steps over the middle axis of three.
TestFunction statistics_across(int64_t outer, int64_t depth, int64_t inner) {
  FunctionBuilder b;
  const Dims whole{outer, depth, inner}, rows{outer, 1, inner};
  const Buffer x = b.input("x", whole);
  const Buffer top = b.reduce("top", Op::Max, rows, {depth}, [&](const Exprs& i, const Exprs& r) {
    return load(x, {i[0], r[0], i[2]});
  });
  const Buffer d = b.compute("d", whole, [&](const Exprs& i) {
    return apply(Op::Floor, {load(x, i) - load(top, {i[0], 0, i[2]})});
  });
  const Buffer sum = b.reduce("sum", Op::Add, rows, {depth}, [&](const Exprs& i, const Exprs& r) {
    return load(d, {i[0], r[0], i[2]});
  });
  return b.take(b.compute("y", whole, [&](const Exprs& i) { return load(d, i) * load(sum, {i[0], 0, i[2]}); }));
}

TEST(CudaRows, AcrossMemory) {
  for (const int64_t depth : {2, 9, 21, 64, 150, 700})
    for (const int64_t inner : {2, 5, 31, 32, 33, 100})
      for (const int64_t outer : {1, 3}) expect_equal(statistics_across(outer, depth, inner), "rows");
  expect_equal(statistics_across(1, 3000, 40), "rows");
}

// Groups of channels, with a factor for each channel, and the result transposed to channels last if `transposed`.
TestFunction group_statistics(bool channels_last, int64_t groups, int64_t channels, int64_t pixels,
                              bool transposed = false) {
  FunctionBuilder b;
  const int64_t n = 2, c = groups * channels;
  const Dims whole = channels_last ? Dims{n, pixels, c} : Dims{n, c, pixels};
  const Buffer x = b.input("x", whole), g = b.input("g", {c});
  auto at = [&](const Expr& n, const Expr& c, const Expr& p) {
    return channels_last ? Exprs{n, p, c} : Exprs{n, c, p};
  };
  const Buffer sum = b.reduce("sum", Op::Add, {n, groups}, {channels, pixels}, [&](const Exprs& i, const Exprs& r) {
    return load(x, at(i[0], i[1] * Expr(channels) + r[0], r[1]));
  });
  const Buffer d = b.compute("d", whole, [&](const Exprs& i) {
    const Expr channel = i[channels_last ? 2 : 1];
    return load(x, i) - load(sum, {i[0], floor_div(channel, Expr(channels))}) * load(g, {channel});
  });
  const Buffer low = b.reduce("low", Op::Min, {n, groups}, {channels, pixels}, [&](const Exprs& i, const Exprs& r) {
    return load(d, at(i[0], i[1] * Expr(channels) + r[0], r[1]));
  });
  const Buffer y = b.compute("y", whole, [&](const Exprs& i) {
    return load(d, i) - load(low, {i[0], floor_div(i[channels_last ? 2 : 1], Expr(channels))});
  });
  if (!transposed) return b.take(y);
  return b.take(b.compute("turned", {whole[0], whole[2], whole[1]}, [&](const Exprs& i) {
    return load(y, {i[0], i[2], i[1]});
  }));
}

TEST(CudaRows, GroupsOfChannels) {
  for (const bool last : {false, true})
    for (const bool transposed : {false, true}) {
      expect_equal(group_statistics(last, 4, 3, 16, transposed), "rows");
      expect_equal(group_statistics(last, 2, 8, 49, transposed), "rows");
      expect_equal(group_statistics(last, 3, 1, 100, transposed), "rows");
      expect_equal(group_statistics(last, 1, 5, 64, transposed), "rows");
      expect_equal(group_statistics(last, 2, 10, 1024, transposed), "rows");
    }
}

TEST(CudaRows, WithoutElements) {
  for (const Dims& d : {Dims{0, 5}, Dims{3, 0}}) {
    const TestFunction f = row_sum(d[0], d[1]);
    const std::vector<Constant> in = {small_integers(d, 1)};
    expect_cuda_schedule(f.fn, in, evaluate(f.fn, in), 0);
  }
}

}  // namespace
}  // namespace tc::rows_test
