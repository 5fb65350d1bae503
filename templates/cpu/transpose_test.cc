// Transpositions in tiles equal the plain loops: sizes beside those of tiles, axes between the two, work on the way.
#include "templates/cpu/test_schedule.h"

namespace tc::transpose_test {
namespace {

using testing::FunctionBuilder;
using testing::TestFunction;

Dims permuted(const Dims& dims, const std::vector<size_t>& perm) {
  Dims out;
  for (const size_t p : perm) out.push_back(dims[p]);
  return out;
}

// y[i] = x[i with its axes exchanged], one after the other or beside a row and a tensor of the result's shape.
TestFunction transposed(const Dims& dims, const std::vector<size_t>& perm, bool with_work) {
  FunctionBuilder b;
  const Dims out = permuted(dims, perm);
  const Buffer x = b.input("x", dims), bias = b.input("b", {out.back()}), z = b.input("z", out);
  return b.take(b.compute("y", out, [&](const Exprs& i) {
    Exprs at(i.size());
    for (size_t d = 0; d < i.size(); d++) at[perm[d]] = i[d];
    const Expr e = load(x, at);
    return with_work ? max(e * load(z, i) + load(bias, {i.back()}), make_float(DType::F32, 0)) : e;
  }));
}

void expect_tiles(const Dims& dims, const std::vector<size_t>& perm) {
  for (const bool work : {false, true})
    for (const char* cpu : {"generic", "x86-64-v4"})
      testing::expect_equal(transposed(dims, perm, work), "transpose", cpu);
}

TEST(CpuTranspose, SizesBesideTiles) {
  for (const int64_t rows : {16, 17, 31, 48})
    for (const int64_t columns : {16, 19, 33}) expect_tiles({rows, columns}, {1, 0});
}

TEST(CpuTranspose, ChannelsFirstAndLast) {
  expect_tiles({2, 21, 9, 7}, {0, 2, 3, 1});
  expect_tiles({1, 9, 17, 21}, {0, 3, 1, 2});
  expect_tiles({3, 17, 4, 16}, {0, 2, 3, 1});
}

TEST(CpuTranspose, PartsCoverAllTiles) {
  expect_tiles({20, 2003}, {1, 0});
  expect_tiles({2003, 20}, {1, 0});
  expect_tiles({37, 1024}, {1, 0});
  expect_tiles({5, 160, 65}, {0, 2, 1});
}

TEST(CpuTranspose, ShortAxesMoveAsBytes) {
  for (const int64_t rows : {4, 5, 11, 15}) {
    testing::expect_equal(transposed({rows, 37}, {1, 0}, false), "transpose");
    testing::expect_equal(transposed({37, rows}, {1, 0}, false), "transpose");
  }
}

TEST(CpuTranspose, CostlyWorkOnShortAxesGoesThroughAnArray) {
  for (const Dims& dims : {Dims{37, 8}, Dims{8, 37}, Dims{5, 9}, Dims{16, 2}, Dims{3, 50}, Dims{600, 12}})
    for (const char* cpu : {"generic", "x86-64-v4"}) {
      FunctionBuilder b;
      const Buffer x = b.input("x", {2, dims[0], dims[1]}), bias = b.input("b", {dims[1]});
      const TestFunction f = b.take(b.compute("y", {2, dims[1], dims[0]}, [&](const Exprs& i) {
        return apply(Op::Floor, {load(x, {i[0], i[2], i[1]}) * make_float(DType::F32, 0.5) + load(bias, {i[1]})});
      }));
      testing::expect_equal(f, "transpose", cpu);
    }
}

TEST(CpuTranspose, TwoAndThreeChannels) {
  for (const int64_t pixels : {16, 17, 50, 2000}) {
    expect_tiles({pixels, 2}, {1, 0});
    expect_tiles({2, pixels, 2}, {0, 2, 1});
    expect_tiles({pixels, 3}, {1, 0});
    expect_tiles({2, pixels, 3}, {0, 2, 1});
  }
}

TEST(CpuTranspose, TwoOperandsAndABorder) {
  FunctionBuilder b;
  const Buffer x = b.input("x", {18, 35}), z = b.input("z", {18, 35});
  testing::expect_equal(b.take(b.compute("y", {35, 18},
                                         [&](const Exprs& i) {
                                           return load(x, {i[1], i[0]}) * load(z, {i[1], i[0]});
                                         })),
                        "transpose");
  FunctionBuilder p;
  const Buffer in = p.input("x", {20, 30});
  const Buffer t = p.compute("t", {30, 20}, [&](const Exprs& i) { return load(in, {i[1], i[0]}); });
  testing::expect_equal(p.take(p.compute("y", {33, 20},
                                         [&](const Exprs& i) {
                                           return select(i[0] - Expr(1) >= 0 && i[0] - Expr(1) < 30,
                                                         load(t, {i[0] - Expr(1), i[1]}), make_float(DType::F32, 2));
                                         })),
                        "transpose");
}

// A tile is loaded whatever a condition says: so not where the operand has no such element (y has a plane more than x), and
// not where it is one of two (c has columns that a has not).
TEST(CpuTranspose, WhatEndsBeforeTheResultIsNoTile) {
  FunctionBuilder p;
  const Buffer x = p.input("x", {2, 20, 34});
  const TestFunction padded = p.take(p.compute("y", {3, 34, 20}, [&](const Exprs& i) {
    return select(i[0] < 2, load(x, {i[0], i[2], i[1]}), make_float(DType::F32, 0));
  }));
  FunctionBuilder c;
  const Buffer a = c.input("a", {32, 18}), b = c.input("b", {16, 18});
  const TestFunction joined = c.take(c.compute("y", {18, 48}, [&](const Exprs& i) {
    return select(i[1] < 32, load(a, {i[1], i[0]}), load(b, {i[1] - Expr(32), i[0]}));
  }));
  for (const TestFunction* f : {&padded, &joined}) {
    const Scheduled s = schedule_cpu(f->fn, f->constant, *find_cpu("generic"));
    EXPECT_EQ(to_text(s.body).find("load_transposed"), std::string::npos) << to_text(s.body);
    testing::expect_equal(*f, s.family, "generic");
  }
}

// Two reads of an element are one tile, whether or not they are one object: so they are in a graph that was text.
TEST(CpuTranspose, EqualReadsAreOneTile) {
  FunctionBuilder b;
  const Buffer x = b.input("x", {40, 36});
  const TestFunction squares = b.take(b.compute("y", {36, 40}, [&](const Exprs& i) {
    return load(x, {i[1], i[0]}) * load(x, {i[1], i[0]});
  }));
  const std::string text = to_text(schedule_cpu(squares.fn, squares.constant, *find_cpu("generic")).body);
  const size_t first = text.find("load_transposed");
  EXPECT_NE(first, std::string::npos) << text;
  EXPECT_EQ(text.find("load_transposed", first + 1), std::string::npos) << text;
  testing::expect_equal(squares, "transpose", "generic");
}

// Rows of a tile that lie where no stride says: repeated borders, positions. They are computed before they are turned, unless a
// condition is one thing for some elements of a row and another for others.
TEST(CpuTranspose, RowsByPosition) {
  const auto clamped = [](const Expr& i) { return select(i < 3, Expr(0), select(i > 25, Expr(22), i - Expr(3))); };
  for (const int64_t columns : {16, 21, 40}) {
    FunctionBuilder b;
    const Buffer x = b.input("x", {2, 23, columns}), bias = b.input("b", {columns});
    const TestFunction border = b.take(b.compute("y", {2, columns, 29}, [&](const Exprs& i) {
      const Expr value = load(x, {i[0], clamped(i[2]), i[1]}) * load(bias, {i[1]});
      return select(i[2] < 2, make_float(DType::F32, 0.5), apply(Op::Abs, {value}));
    }));
    FunctionBuilder c;
    const Buffer table = c.input("t", {9, columns}), at = c.input("at", {33}, false, DType::I64);
    const TestFunction gathered = c.take(c.compute("y", {columns, 33}, [&](const Exprs& i) {
      return load(table, {apply(Op::Index, {load(at, {i[1]}), Expr(9)}), i[0]}) * make_float(DType::F32, 0.5);
    }));
    MutableTensor places = new_tensor(DType::I64, {33});
    for (int64_t k = 0; k < 33; k++) places.as<int64_t>()[k] = k * 5 % 9;
    const std::vector<Constant> none, positions = {testing::small_integers({9, columns}, 3),
                                                   std::make_shared<const TensorData>(std::move(places.data))};
    for (const char* cpu : {"generic", "x86-64-v3", "x86-64-v4"})
      for (const TestFunction* f : {&border, &gathered}) {
        testing::expect_equal(*f, "transpose", cpu, f == &border ? none : positions);
        const std::string text = to_text(schedule_cpu(f->fn, f->constant, *find_cpu(cpu)).body);
        EXPECT_NE(text.find("load_transposed"), std::string::npos) << text;
      }
  }
  FunctionBuilder b;
  const Buffer x = b.input("x", {23, 20});
  const TestFunction partly = b.take(b.compute("y", {24, 29}, [&](const Exprs& i) {
    return select(i[0] < 20, load(x, {clamped(i[1]), i[0]}), make_float(DType::F32, 1));
  }));
  EXPECT_NE(schedule_cpu(partly.fn, partly.constant, *find_cpu("generic")).family, "transpose");
}

// What lies side by side on both sides needs no tiles, and neither do axes shorter than a row of 16 bytes.
TEST(CpuTranspose, LeavesOthersAlone) {
  const auto family = [](const TestFunction& f) { return schedule_cpu(f.fn, f.constant, *find_cpu("generic")).family; };
  EXPECT_EQ(family(transposed({5, 7, 32}, {1, 0, 2}, false)), "elementwise");
  EXPECT_EQ(family(transposed({12, 2}, {1, 0}, false)), "elementwise");
  EXPECT_EQ(family(transposed({12, 40}, {1, 0}, true)), "elementwise");
}

}  // namespace
}  // namespace tc::transpose_test
